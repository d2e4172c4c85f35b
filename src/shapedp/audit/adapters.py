"""Mechanisms of other libraries as functions f(x, rng) that can be audited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shapedp.numerics.arrays import Floats


@dataclass(frozen=True, eq=False)
class OpenDP:
    """An OpenDP measurement: f(x, rng) invokes it on x. Its randomness is its own; rng is not used."""

    measurement: Any

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        return self.measurement(x.tolist() if isinstance(x, np.ndarray) else x)


@dataclass(frozen=True, eq=False)
class Diffprivlib:
    """A diffprivlib mechanism: f(x, rng) calls its `randomise` on the number x. rng is not used."""

    mechanism: Any

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        return self.mechanism.randomise(x.item() if isinstance(x, np.ndarray) else x)


@dataclass(frozen=True, eq=False)
class Opacus:
    """One step of an Opacus DPOptimizer: x holds the per-example gradients, one row per example.

    f(x, rng) clips, sums, adds noise and scales as the optimizer does, and returns the gradient it would apply.
    Neighbours differ in one row. Parameters are not changed.
    """

    optimizer: Any

    def __call__(self, x: Any, rng: np.random.Generator) -> Floats:
        import torch

        rows = torch.as_tensor(np.asarray(x, dtype=np.float64))
        parameters = list(self.optimizer.params)
        sizes = [parameter.numel() for parameter in parameters]
        if rows.ndim != 2 or rows.shape[1] != sum(sizes):
            raise ValueError(f"x must hold one row of {sum(sizes)} gradient entries per example, got {rows.shape}")
        self.optimizer.zero_grad()
        self.optimizer.generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        for parameter, stop, size in zip(parameters, np.cumsum(sizes).tolist(), sizes, strict=True):
            parameter.grad_sample = rows[:, stop - size : stop].reshape(-1, *parameter.shape).to(parameter.dtype)
        self.optimizer.clip_and_accumulate()
        self.optimizer.add_noise()
        self.optimizer.scale_grad()
        gradient = torch.cat([parameter.grad.reshape(-1) for parameter in parameters])
        return np.asarray(gradient.detach().numpy(), dtype=np.float64)


def opendp(measurement: Any) -> OpenDP:
    """An OpenDP measurement as a function to audit."""
    if not callable(measurement):
        raise TypeError(f"opendp takes a measurement that can be invoked, got {type(measurement).__name__}")
    return OpenDP(measurement)


def diffprivlib(mechanism: Any) -> Diffprivlib:
    """A diffprivlib mechanism as a function to audit."""
    if not hasattr(mechanism, "randomise"):
        raise TypeError(f"diffprivlib takes a mechanism with `randomise`, got {type(mechanism).__name__}")
    return Diffprivlib(mechanism)


def opacus(optimizer: Any) -> Opacus:
    """One step of an Opacus DPOptimizer as a function of per-example gradients to audit."""
    if not hasattr(optimizer, "clip_and_accumulate"):
        raise TypeError(f"opacus takes a DPOptimizer, got {type(optimizer).__name__}")
    return Opacus(optimizer)
