"""Solvers of the estimators, one short file each, all of the shape `solvers.base.Solver`.

`linear.SOLVERS` and `erm.SOLVERS` list those that a user chooses by name; `cd.CD` and `covariance.COVARIANCE` are the
only ones for their problem.
"""
