"""Solvers of the estimators, one short file each."""
