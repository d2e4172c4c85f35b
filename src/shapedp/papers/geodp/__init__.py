"""GeoDP, geometric perturbation of DP-SGD: recipe, diagnostics, claims."""
