"""Solvers of private classification."""
