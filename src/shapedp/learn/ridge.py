"""Linear regression with an l2 penalty, by private coordinate descent."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from shapedp.learn.lasso import CoordinateDescentRegressor
from shapedp.learn.solvers.cd import Penalty
from shapedp.sensitivity import Adjacency


class Ridge(CoordinateDescentRegressor):
    """Least |y - Xw|^2 + alpha |w|_2^2 by private proximal coordinate descent, alpha as scikit-learn counts it.

    Parameters, fitted attributes and guarantee are those of `Lasso`. Where second moments are small enough to
    be released at once, `LinearRegression` needs less noise; this one clips derivatives instead of rows, so it suits
    features of very different sizes.

    Guarantee: see `PrivateEstimator`; errors depend on parameters and sizes, never on a record.
    Reference: Mangold, Bellet, Salmon and Tommasi 2022; i.n.i.d. noise paper, section VI.A and appendix C.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        epsilon: float,
        delta: float,
        feature_bounds: ArrayLike,
        target_bound: float,
        passes: int = 20,
        step: float = 1.0,
        clip: float = 1.0,
        noise: str = "objective",
        share: float = 0.1,
        mean_squares: ArrayLike | None = None,
        fit_intercept: bool = True,
        adjacency: Adjacency = "zero-out",
        random_state: Any = None,
        unsafe: bool = False,
        progress: bool = False,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bounds = feature_bounds
        self.target_bound = target_bound
        self.passes = passes
        self.step = step
        self.clip = clip
        self.noise = noise
        self.share = share
        self.mean_squares = mean_squares
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.random_state = random_state
        self.unsafe = unsafe
        self.progress = progress

    def _penalty(self, records: int) -> Penalty:
        return Penalty(l2=float(self.alpha) / records)
