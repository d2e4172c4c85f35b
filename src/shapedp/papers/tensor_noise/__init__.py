"""Noise for tensor-valued queries: recipes, claims, noise for training."""
