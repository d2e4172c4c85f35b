"""Near-optimal private linear regression via iterative Hessian mixing (arXiv 2601.07545)."""
