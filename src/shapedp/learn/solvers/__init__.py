"""Solvers of the estimators, one short file each, all of the shape `Solver`, by name where a task has several."""
