"""Log-space tails, monotone searches that return the safe side, and sums with error bounds."""

from shapedp.numerics.roots import (
    SearchError,
    SelfCheckError,
    falling_root,
    first_true,
    first_true_near,
    last_true,
    last_true_near,
)
from shapedp.numerics.sums import sum_bounds
from shapedp.numerics.tails import (
    laplace_log_tail,
    log1mexp,
    log_difference,
    mills,
    normal_log_density,
    normal_log_tail,
)

__all__ = [
    "SearchError",
    "SelfCheckError",
    "falling_root",
    "first_true",
    "first_true_near",
    "laplace_log_tail",
    "last_true",
    "last_true_near",
    "log1mexp",
    "log_difference",
    "mills",
    "normal_log_density",
    "normal_log_tail",
    "sum_bounds",
]
