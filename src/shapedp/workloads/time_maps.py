"""What a training makes of its gradients: the linear map whose error noise over time keeps small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, entries, positive, real

STEPS = 1 << 24  # of one training: a few arrays of one number for each fit into memory


@dataclass(frozen=True)
class StepSums:
    """The parameters after every step as linear maps of the gradients: sums, with momentum and learning rates.

    Parameters
    ----------
    steps : the number of steps.
    momentum : m in v_t = m v_(t-1) + g_t, in [0, 1).
    rates : the learning rate of every step, known in advance; None for a constant one.

    Examples
    --------
    >>> StepSums(3).matrix().tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    >>> StepSums(2, momentum=0.5, rates=[1.0, 0.1]).matrix().round(6).tolist()
    [[1.0, 0.0], [1.05, 0.1]]
    """

    steps: int
    momentum: float = 0.0
    rates: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", count("steps", self.steps, most=STEPS))
        momentum = real("momentum", self.momentum)
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1), got {momentum!r}")
        object.__setattr__(self, "momentum", momentum)
        if self.rates is not None:
            rates = tuple(positive("rates", one) for one in entries("rates", self.rates))
            if len(rates) != self.steps:
                raise ValueError(f"rates must hold one learning rate for each of {self.steps} steps, got {len(rates)}")
            object.__setattr__(self, "rates", rates)

    @property
    def weights(self) -> Floats:
        """The learning rates, or ones."""
        return np.ones(self.steps) if self.rates is None else np.array(self.rates)

    def coefficients(self) -> Floats:
        """Entry k: what a gradient weighs k steps later, at a constant learning rate of 1."""
        powers = self.momentum ** np.arange(self.steps, dtype=np.float64)
        return np.asarray(np.cumsum(powers))

    def matrix(self) -> Floats:
        """The map itself: row t holds the weights of gradients 0..t in the parameters after step t."""
        apart = np.subtract.outer(np.arange(self.steps), np.arange(self.steps))
        moved = np.where(apart >= 0, self.momentum ** np.maximum(apart, 0).astype(np.float64), 0.0)
        return np.asarray(np.cumsum(self.weights[:, None] * moved, axis=0))

    def squares(self, response: Floats) -> float:
        """The sum of squares of the map times a lower triangular Toeplitz matrix, given by its first column."""
        from scipy import signal

        if self.rates is None:
            seen = signal.fftconvolve(self.coefficients(), response)[: self.steps]
            return float(np.square(seen) @ np.arange(self.steps, 0, -1))
        slow = signal.lfilter([1.0], [1.0, -self.momentum], response)
        total, rates = 0.0, self.weights
        for column in range(self.steps):
            total += float(np.square(np.cumsum(rates[column:] * slow[: self.steps - column])).sum())
        return total
