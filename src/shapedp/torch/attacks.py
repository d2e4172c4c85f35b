"""Attacks on private training: canary gradients through the steps of a real run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shapedp.accounting import Plan
from shapedp.audit.membership import epsilon_bound
from shapedp.audit.result import Result
from shapedp.mechanisms.watch import watching
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, probability
from shapedp.torch.clips import Adaptive
from shapedp.torch.training import Training

_LOUD = 1e6  # length of a canary's gradient before it is clipped


@dataclass(frozen=True)
class CanaryResult(Result, kind="canary", stated="violation"):
    """A lower bound on the epsilon of `steps` steps, beside the certified upper bound.

    Examples
    --------
    >>> from shapedp.torch import CanaryResult
    >>> CanaryResult(epsilon_lower=0.8, certified=1.2, delta=0.01, confidence=0.99, steps=1, runs=2000).violation
    False

    Guarantee: with probability at least `confidence` the training is not (e, delta)-DP for any e < `epsilon_lower`.
    """

    epsilon_lower: float
    certified: float
    delta: float
    confidence: float
    steps: int
    runs: int

    @property
    def violation(self) -> bool:
        """Whether the steps gave away more than their certificate allows."""
        return self.epsilon_lower > self.certified

    def explain(self) -> str:
        """The finding in one line."""
        word = "violation" if self.violation else "no violation found"
        return (
            f"{word}: with confidence {self.confidence:g}, {self.steps} steps have epsilon >= {self.epsilon_lower:.4g} "
            f"at delta {self.delta:g} ({self.runs} runs); certified is {self.certified:.4g}"
        )


def canary(
    training: Training,
    loop: Callable[[], object],
    *,
    delta: float,
    steps: int = 1,
    confidence: float = 0.99,
    rng: np.random.Generator,
) -> CanaryResult:
    """Audit the noise of a training: `loop` is run, and each `steps` consecutive steps count as one run.

    In half of the runs, chosen at random, an extra record (the canary) takes part. Its gradient has a random direction
    and is far longer than the clip. It is clipped, enters each batch with the sampling rate, and is added to the sum.
    The observer knows all other records, sees each noisy sum, and scores it by the likelihood ratio of the noise that
    is accounted for.

    Parameters
    ----------
    training : what `optimizer.privacy_` is. No planned limit may stop `loop`: use `noise_multiplier`.
    loop : trains for some thousand steps; its releases are watched, so that the certificate says secure: false after.
    delta : where epsilon is bounded; a few thousand runs show more at some percent than at a tiny delta.
    steps : the number of steps that make one run.
    confidence : of the lower bound.
    rng : of the canary.

    Returns
    -------
    A `CanaryResult`: the lower bound on epsilon beside the certified upper bound.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from shapedp.torch import canary, make_private
    >>> model, data = torch.nn.Linear(1, 1), TensorDataset(torch.zeros(4, 1))
    >>> model, optimizer, loader = make_private(
    ...     model, torch.optim.SGD(model.parameters(), lr=0.0), DataLoader(data, batch_size=4), clip=1.0,
    ...     noise_multiplier=1.0, delta=1e-5, rng=np.random.default_rng(0),
    ... )
    >>> def loop():
    ...     for _ in range(40):
    ...         for (x,) in loader:
    ...             model(x).mean().backward()
    ...             optimizer.step()
    >>> canary(optimizer.privacy_, loop, delta=0.05, rng=np.random.default_rng(1)).violation
    False

    Reference: Nasr et al. 2023, Tight auditing of differentially private machine learning (gradient canaries).
    """
    if isinstance(training.clip, Adaptive):
        raise ValueError("a clip that adapts has no fixed canary: audit the same training with Flat")
    watcher = _Watcher(training, count("steps", steps), rng)
    with watching(watcher):
        loop()
    scores = {arm: np.array(found) for arm, found in watcher.scores.items()}
    if min(map(len, scores.values())) < 8:
        raise ValueError("too few runs for a bound: let the loop take at least some dozen times `steps` steps")
    bound = epsilon_bound(scores[True], scores[False], delta=probability("delta", delta), confidence=confidence)
    step = training.account.step
    certified = Plan((replace(step, count=steps),)).epsilon(delta).upper
    return CanaryResult(bound, certified, delta, confidence, steps, sum(map(len, scores.values())))


@dataclass(eq=False)
class _Watcher:
    """Adds the canary's row to the sums it is drawn for, lets the training draw its noise, keeps the scores."""

    training: Training
    steps: int
    rng: np.random.Generator
    scores: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})
    present: bool = False
    taken: int = 0
    total: float = 0.0

    def __call__(self, mechanism: Any, x: NDArray[Any], draw: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        if self.taken == 0:
            self.present = bool(self.rng.integers(2))
        step = self.training.account.step
        if step.scheme != "poisson":
            raise ValueError("this attack plays Poisson samples: audit a training with sampling='poisson'")
        row, others = self._row(), x.astype(np.float64)
        if self.present and self.rng.random() < step.sampling_rate:
            x += row.astype(x.dtype)
        noisy = draw()
        noise = noisy.astype(np.float64) - others
        law: Any = step.subject.law  # what is accounted for, not what may really be drawn
        ratio = float(law.log_density(noise - row) - law.log_density(noise))
        rate = step.sampling_rate
        kept = float(np.log1p(-rate)) if rate < 1 else -np.inf
        self.total += float(np.logaddexp(kept, np.log(rate) + ratio))
        self.taken += 1
        if self.taken == self.steps:
            self.scores[self.present].append(self.total)
            self.taken, self.total = 0, 0.0
        return noisy

    def _row(self) -> Floats:
        layout = self.training.layout
        gradient = self.rng.normal(size=layout.dim)
        loud = torch.from_numpy((gradient / np.linalg.norm(gradient) * _LOUD).astype(np.float32))
        return self.training.clip.rows(loud[None], layout)[0].double().numpy()
