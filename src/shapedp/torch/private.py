"""From a model, an optimizer and a loader to their private counterparts."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from shapedp.accounting import Plan, Step
from shapedp.mechanisms import Additive, certify
from shapedp.numerics.checks import count, one_of, positive, probability
from shapedp.sampling import source
from shapedp.torch import gpu
from shapedp.torch.accountant import Account
from shapedp.torch.clips import Clip, clip_from
from shapedp.torch.hooks import OpacusRecorder
from shapedp.torch.layout import Layout
from shapedp.torch.loader import Part, PoissonBatches, PoissonLoader, checked_loader
from shapedp.torch.noise import Noise, noise_from
from shapedp.torch.planning import least_scale
from shapedp.torch.processes import Processes
from shapedp.torch.recorder import Recorder
from shapedp.torch.training import Progress, Training, margin
from shapedp.torch.validate import check_model

Report = Callable[[Progress], None]


def make_private(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: DataLoader[Any],
    *,
    clip: Clip | float,
    noise: Noise | str = "gaussian",
    delta: float,
    epsilon: float | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    noise_multiplier: float | None = None,
    physical_batch_size: int | None = None,
    loss_reduction: str = "mean",
    rng: np.random.Generator | None = None,
    journal: str | Path | None = None,
    progress: Report | bool = False,
    gradients: str = "fast",
    check_records: bool = True,
) -> tuple[nn.Module, torch.optim.Optimizer, PoissonLoader]:
    """The same model and optimizer, whose steps are now private, and a loader of Poisson batches.

    Either `epsilon` and the number of `epochs` (or `steps`) are given, and the least noise that meets the claim is
    solved for; or `noise_multiplier` is, and the epsilon spent is read off `optimizer.privacy_`. `clip` is a number
    (flat clipping) or a `Clip`; `noise` a name or a `Noise`. `gradients` says who computes the gradients of single
    records: "fast" (this library) or "opacus" (its hooks).

    Guarantee: what leaves is the sequence of noisy sums; `optimizer.privacy_.certificate` is computed for them under
    add-remove neighbours. The expected batch size and the number of records are taken as public.
    """
    if loss_reduction not in ("mean", "sum"):
        raise ValueError(f"loss_reduction must be 'mean' or 'sum', got {loss_reduction!r}")
    check_model(model)
    processes = Processes.current()
    records, batch_size, _ = checked_loader(loader)
    expected = batch_size * processes.count
    if expected > records:
        raise ValueError(f"{processes.count} processes with batches of {batch_size} exceed the {records} records")
    rate, per_epoch = (
        expected / records,
        max(-(-records // expected) if not loader.drop_last else records // expected, 1),
    )
    layout = Layout.of(model)
    _check_optimizer(optimizer, model, layout)
    chosen, shaped = clip_from(clip), noise_from(noise)
    randomness = source(rng)
    delta = probability("delta", delta)
    sensitivity = chosen.sensitivity(layout)
    scale, limit = _scale(shaped, sensitivity, layout, rate, per_epoch, epsilon, delta, epochs, steps, noise_multiplier)
    mechanism, scale = _mechanism(shaped, sensitivity, layout, rate, limit, scale, expected, epsilon, delta)
    account = Account(
        Step(mechanism, rate), epsilon, delta, limit if epsilon is not None else None,
        None if journal is None or not processes.first else Path(journal), secure=randomness.secure,
    )  # fmt: skip
    training = Training(
        model, layout, chosen, shaped, scale, mechanism, account, float(expected), processes, randomness,
        mean=loss_reduction == "mean", report=_report(progress), report_every=per_epoch,
    )  # fmt: skip
    if gpu.serves(mechanism.law, next(model.parameters())):
        training.draw = partial(gpu.draw, source=randomness)
    recorder: Recorder | OpacusRecorder
    if one_of("gradients", gradients, ("fast", "opacus")) == "fast":
        recorder = Recorder(model, layout, training.mean, training.add, probe=check_records)
    else:
        recorder = OpacusRecorder(model, layout, training.mean, training.add)
    recorder.attach()
    training._flush = recorder.flush
    processes.share_model(model)
    optimizer.register_step_pre_hook(training.before_step)
    optimizer.privacy_ = training  # type: ignore[attr-defined]
    parts: deque[Part] = deque()
    most = None if physical_batch_size is None else count("physical_batch_size", physical_batch_size)
    indices = range(processes.rank, records, processes.count)
    batches = PoissonBatches(indices, rate, per_epoch, randomness, most, parts.append)
    private_loader = PoissonLoader(loader, batches, parts, training.receive)
    private_loader.privacy_ = training
    return model, optimizer, private_loader


def _scale(
    noise: Noise,
    sensitivity: Any,
    layout: Layout,
    rate: float,
    per_epoch: int,
    epsilon: float | None,
    delta: float,
    epochs: int | None,
    steps: int | None,
    multiplier: float | None,
) -> tuple[float, int]:
    """The noise scale and the number of steps it is for."""
    if epochs is not None and steps is not None:
        raise ValueError("give epochs or steps, not both")
    total = count("epochs", epochs) * per_epoch if epochs is not None else count("steps", steps or 1)
    if multiplier is not None:
        if epsilon is not None:
            raise ValueError("give epsilon (the noise is solved for) or noise_multiplier, not both")
        return positive("noise_multiplier", multiplier), total
    if epsilon is None or (epochs is None and steps is None):
        raise ValueError("give epsilon together with epochs or steps, or a noise_multiplier")
    family = noise.family(sensitivity, layout)
    return least_scale(epsilon=epsilon, delta=delta, sampling_rate=rate, steps=total, family=family), total


def _mechanism(
    noise: Noise,
    sensitivity: Any,
    layout: Layout,
    rate: float,
    steps: int,
    scale: float,
    expected: float,
    epsilon: float | None,
    delta: float,
) -> tuple[Additive, float]:
    """The step's mechanism; the scale is raised a little where rounding leaves the claim undecided."""
    for _ in range(20):
        widened = sensitivity.scaled(1 + margin(expected, sensitivity.dim, scale), "add-remove")
        mechanism = Additive(noise.law(widened, layout, scale), widened, epsilon or 1.0, delta)
        if epsilon is None:
            return mechanism, scale
        found = certify(Plan((Step(mechanism, rate, steps),)), epsilon=epsilon, delta=delta)
        if found.verdict == "certified":
            return mechanism, scale
        scale *= 1 + 2e-4
    found.require()
    raise AssertionError("unreachable")


def _check_optimizer(optimizer: Any, model: nn.Module, layout: Layout) -> None:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer must be a torch Optimizer, got {type(optimizer).__name__}")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("LBFGS evaluates the loss inside its step: use a first-order optimizer")
    if hasattr(optimizer, "privacy_"):
        raise ValueError("this optimizer is private already: make a new one")
    known = {id(parameter) for parameter in model.parameters()}
    if any(id(p) not in known for group in optimizer.param_groups for p in group["params"]):
        raise ValueError("the optimizer holds parameters that are not the model's: they would be trained without noise")


def _report(progress: Report | bool) -> Report | None:
    if callable(progress):
        return progress
    return (lambda line: print(line, file=sys.stderr, flush=True)) if progress else None
