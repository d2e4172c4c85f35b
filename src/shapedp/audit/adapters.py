"""Mechanisms of other libraries as functions f(x, rng) that can be audited."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from shapedp.numerics.arrays import Floats


def opendp(measurement: Any) -> partial[Any]:
    """An OpenDP measurement as a function to audit.

    f(x, rng) invokes it on x. Its randomness is its own; rng is not used.

    Parameters
    ----------
    measurement : what OpenDP's `make_` and `then_` functions return.

    Returns
    -------
    f(x, rng).

    Examples
    --------
    >>> from shapedp.audit import opendp
    >>> opendp(sum)([1.0, 2.0], rng=None)  # the built-in sum in place of a measurement
    3.0
    """
    if not callable(measurement):
        raise TypeError(f"opendp takes a measurement that can be invoked, got {type(measurement).__name__}")
    return partial(_invoked, measurement)


def diffprivlib(mechanism: Any) -> partial[Any]:
    """A diffprivlib mechanism as a function to audit.

    f(x, rng) calls its `randomise` on the number x. rng is not used.

    Parameters
    ----------
    mechanism : an object with `randomise`.

    Returns
    -------
    f(x, rng).

    Examples
    --------
    >>> import numpy as np, shapedp as sdp
    >>> from types import SimpleNamespace
    >>> f = sdp.audit.diffprivlib(SimpleNamespace(randomise=lambda x: x + 1.0))  # in place of a mechanism
    >>> f(0.5, np.random.default_rng(0))
    1.5
    """
    if not hasattr(mechanism, "randomise"):
        raise TypeError(f"diffprivlib takes a mechanism with `randomise`, got {type(mechanism).__name__}")
    return partial(_randomised, mechanism)


def opacus(optimizer: Any) -> partial[Floats]:
    """One step of an Opacus DPOptimizer as a function of per-example gradients to audit.

    x holds one row per example. f(x, rng) clips, sums, adds noise and scales as the optimizer does, and returns the
    gradient it would apply. Neighbours differ in one row. Parameters are not changed.

    Parameters
    ----------
    optimizer : the optimizer that Opacus' `make_private` returns.

    Returns
    -------
    f(x, rng).

    Examples
    --------
    >>> import shapedp as sdp
    >>> sdp.audit.opacus("not an optimizer")
    Traceback (most recent call last):
        ...
    TypeError: opacus takes a DPOptimizer, got str
    """
    if not hasattr(optimizer, "clip_and_accumulate"):
        raise TypeError(f"opacus takes a DPOptimizer, got {type(optimizer).__name__}")
    return partial(_stepped, optimizer)


def _invoked(measurement: Any, x: Any, rng: np.random.Generator) -> Any:
    return measurement(x.tolist() if isinstance(x, np.ndarray) else x)


def _randomised(mechanism: Any, x: Any, rng: np.random.Generator) -> Any:
    return mechanism.randomise(x.item() if isinstance(x, np.ndarray) else x)


def _stepped(optimizer: Any, x: Any, rng: np.random.Generator) -> Floats:
    import torch

    rows = torch.as_tensor(np.asarray(x, dtype=np.float64))
    parameters = list(optimizer.params)
    sizes = [parameter.numel() for parameter in parameters]
    if rows.ndim != 2 or rows.shape[1] != sum(sizes):
        raise ValueError(f"x must hold one row of {sum(sizes)} gradient entries per example, got {rows.shape}")
    optimizer.zero_grad()
    optimizer.generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
    for parameter, part in zip(parameters, torch.split(rows, sizes, dim=1), strict=True):
        parameter.grad_sample = part.reshape(-1, *parameter.shape).to(parameter.dtype)
    optimizer.clip_and_accumulate()
    optimizer.add_noise()
    optimizer.scale_grad()
    gradient = torch.cat([parameter.grad.reshape(-1) for parameter in parameters])
    return np.asarray(gradient.detach().numpy(), dtype=np.float64)
