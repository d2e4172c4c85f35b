"""Noise over time with a few buffers (BLT): C is Toeplitz with c_0 = 1 and c_k = sum_i w_i d_i^(k-1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, entries, nonnegative, positive
from shapedp.numerics.outward import UNIT
from shapedp.workloads.time_bands import BITS, ONE, Correlation, steady
from shapedp.workloads.time_maps import STEPS, StepSums

_NEAREST, _KEPT = 2.0**-14, 2.0**5  # 1 - decay, and how much a buffer may stretch noise


@dataclass(frozen=True)
class Buffered(Correlation):
    """Noise whose history is kept in a few buffers; a record takes part in every `separation`-th step, from its own on.

    Decays and weights are multiples of 2^-18. All entries of C are at least 0, so that the worst record adds its
    gradients up with one sign: `reach` is the norm of the sum of the columns of the first group.

    Parameters
    ----------
    steps : the number of steps.
    separation : the number of groups; step t takes all records of group t mod separation.
    decays, weights : d_i in (0, 1) and w_i >= 0 of each buffer.

    Examples
    --------
    >>> found = Buffered.best(StepSums(64), separation=64, buffers=3)
    >>> round(found.reach**2 * found.error(StepSums(64)))
    304
    """

    steps: int
    separation: int
    decays: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", count("steps", self.steps, most=STEPS))
        object.__setattr__(self, "separation", count("separation", self.separation))
        decays = tuple(positive("decays", one) for one in entries("decays", self.decays))
        weights = tuple(nonnegative("weights", one) for one in entries("weights", self.weights))
        if not decays or len(decays) != len(weights):
            raise ValueError("decays and weights must hold one number for each buffer, and at least one")
        if not max(decays) <= 1 - _NEAREST or not sum(weights) <= 1:
            raise ValueError("decays must be at most 1 - 2^-14, and weights add up to at most 1")
        if any(one * ONE % 1 for one in (*decays, *weights)):
            raise ValueError(f"decays and weights must be multiples of 2^-{BITS}, which the noise keeps exactly")
        object.__setattr__(self, "decays", decays)
        object.__setattr__(self, "weights", weights)
        steady(float(np.linalg.norm(self._response)))
        steady(max(float(np.linalg.norm(one)) for one in self._kept()), _KEPT)

    @property
    def unit(self) -> int:
        return self.steps

    @property
    def sampled(self) -> bool:
        return False

    @property
    def copies(self) -> int:
        return 2 * len(self.decays)

    @cached_property
    def reach(self) -> float:
        """|sum_i column(i separation)|: of the records of all groups those of the first move the most."""
        column = self._column()
        total = np.zeros(self.steps)
        for start in range(0, self.steps, self.separation):
            total[start:] += column[: self.steps - start]
        return float(np.linalg.norm(total)) * (1 + (16 * self.steps + 1024) * UNIT)

    @property
    def stray(self) -> float:
        """By how many units of 2^-8 of the grid rounding in the buffers may move C g, per entry and step."""
        return sum(w / (1 - d) for d, w in zip(self.decays, self.weights, strict=True)) + 2.0**-9

    def _column(self) -> Floats:
        """The first column of C: each entry within a relative 4 steps 2^-53."""
        powers = np.arange(self.steps - 1, dtype=np.float64)
        terms = [w * np.power(d, powers) for d, w in zip(self.decays, self.weights, strict=True)]
        return np.concatenate([[1.0], np.sum(terms, axis=0)])

    @cached_property
    def _response(self) -> Floats:
        return _inverse(np.array(self.decays), np.array(self.weights), self.steps)

    def _kept(self) -> list[Floats]:
        """What each buffer holds of a unit of noise, step by step."""
        from scipy import signal

        return [signal.lfilter([1.0], [1.0, -d], self._response) for d in self.decays]

    def matrix(self) -> Floats:
        from scipy import linalg

        return np.asarray(linalg.toeplitz(self._column(), np.zeros(self.steps)))

    def error(self, workload: StepSums) -> float:
        return workload.squares(self._response)

    @classmethod
    def best(cls, workload: StepSums, separation: int, buffers: int = 4) -> Self:
        """At most so many buffers with little reach^2 times error at a constant learning rate, by local searches."""
        separation, found = count("separation", separation), []
        for number in range(1, count("buffers", buffers, most=64) + 1):
            decays, weights = _search(workload, separation, number)
            decays = np.clip(np.rint(decays * ONE), 1, ONE * (1 - _NEAREST)) / ONE
            weights = np.floor(weights * min(1.0, 1 / max(float(weights.sum()), 1e-300)) * ONE) / ONE
            found.append(cls(workload.steps, separation, tuple(decays.tolist()), tuple(weights.tolist())))
        plain = StepSums(workload.steps, workload.momentum)
        return min(found, key=lambda one: one.reach**2 * one.error(plain))


def _inverse(decays: Floats, weights: Floats, steps: int) -> Floats:
    """The first column of C^-1: with D = prod (1 - d_i x) it is that of D/(D + x sum_i w_i D/(1 - d_i x))."""
    from scipy import signal

    below = np.ones(1)
    for d in decays:
        below = np.convolve(below, [1.0, -d])
    above = below.copy()
    for at, w in enumerate(weights):
        rest = np.ones(1)
        for d in np.delete(decays, at):
            rest = np.convolve(rest, [1.0, -d])
        above[1:] += w * rest
    impulse = np.zeros(steps)
    impulse[0] = 1.0
    return np.asarray(signal.lfilter(below, above, impulse))


def _search(workload: StepSums, separation: int, buffers: int) -> tuple[Floats, Floats]:
    from scipy import optimize

    steps, plain = workload.steps, StepSums(workload.steps, workload.momentum)

    def parts(point: Floats) -> tuple[Floats, Floats]:
        decays = (1 - _NEAREST) / (1 + np.exp(-point[:buffers]))
        return decays, np.exp(point[buffers:])

    def loss(point: Floats) -> float:
        decays, weights = parts(np.clip(point, -20.0, 20.0))
        powers = np.arange(steps - 1, dtype=np.float64)
        column = np.concatenate([[1.0], weights @ decays[:, None] ** powers])
        total = np.zeros(steps)
        for start in range(0, steps, separation):
            total[start:] += column[: steps - start]
        with np.errstate(all="ignore"):
            response = _inverse(decays, weights, steps)
            found = float(np.log(total @ total) + np.log(plain.squares(response)))
        return found + 100 * max(float(weights.sum()) - 1, 0.0) ** 2 if np.isfinite(found) else 1e6

    near = np.geomspace(1.5 / max(min(steps, separation), 4), 0.8, buffers) if buffers > 1 else np.array([0.2])
    start = np.concatenate([np.log((1 - near) / near), np.log(0.5 * near**0.5 / np.sum(near**0.5))])
    options: Any = {"maxiter": 400, "maxfun": 20000, "ftol": 1e-11, "gtol": 1e-9}
    found = optimize.minimize(loss, start, method="L-BFGS-B", options=options)
    return parts(np.clip(found.x, -20.0, 20.0))
