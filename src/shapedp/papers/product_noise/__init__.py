"""Product noise (Liu, Ji et al.): recipes, claims, noise for training."""
