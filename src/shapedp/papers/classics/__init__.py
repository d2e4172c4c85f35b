"""Older work that the papers compare with or build on: recipes and claims."""
