"""Solvers of the estimators, one short file each, all of the shape `Solver`, in one registry by task and name."""

from typing import Any

from shapedp.learn.solvers import erm, linear
from shapedp.learn.solvers.base import Solver
from shapedp.learn.solvers.cd import CD
from shapedp.learn.solvers.covariance import COVARIANCE

SOLVERS: dict[str, dict[str, Solver[Any, Any]]] = {
    "least squares": linear.SOLVERS,
    "classification": erm.SOLVERS,
    "penalized regression": {"cd": CD},
    "covariance": {"moments": COVARIANCE},
}
