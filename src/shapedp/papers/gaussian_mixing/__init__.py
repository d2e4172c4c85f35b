"""The Gaussian mixing mechanism (Lev et al. 2025): recipes, claims, regression solvers."""
