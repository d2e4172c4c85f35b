"""From a model, an optimizer and a loader to their private counterparts."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, default_collate

from shapedp.accounting import Plan, PlanningError, Step, plan
from shapedp.boundary.values import boolean
from shapedp.mechanisms import Additive, certify
from shapedp.noise import Law
from shapedp.numerics.checks import count, one_of, positive, probability
from shapedp.privacy import loss_of
from shapedp.privacy.losses.base import EPSILON_LIMIT
from shapedp.sampling import source
from shapedp.sensitivity import Sensitivity
from shapedp.torch import gpu
from shapedp.torch.accountant import Account
from shapedp.torch.clips import Clip, NormClip, PerValue, clip_from
from shapedp.torch.hooks import OpacusRecorder
from shapedp.torch.layout import Layout
from shapedp.torch.loader import PoissonBatches, PoissonLoader, checked_loader
from shapedp.torch.noise import Noise, noise_from
from shapedp.torch.processes import Processes
from shapedp.torch.published import Published
from shapedp.torch.recorder import Recorder
from shapedp.torch.rounding import margin
from shapedp.torch.secret import side_stream
from shapedp.torch.training import Progress, StepMechanism, Training
from shapedp.torch.validate import check_model

P = ParamSpec("P")
R = TypeVar("R")
Report = Callable[[Progress], None]
_RELATIVE = 3e-4  # how much more noise than the least is accepted
LABEL = 2.0**-30  # the delta at which a step states its own epsilon where no claim was made


def _named_here(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, with a hint for an argument that is known by another name."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if "max_grad_norm" in kwargs:
            raise TypeError(
                "make_private takes no max_grad_norm: pass clip=, a number for flat clipping at that norm or a Clip"
            )
        return function(*args, **kwargs)

    return call


@_named_here
def make_private(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: DataLoader[Any],
    *,
    clip: Clip | float,
    noise: Noise | str = "gaussian",
    delta: float | None = None,
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
    unsafe: bool = False,
) -> tuple[nn.Module, torch.optim.Optimizer, PoissonLoader]:
    """The same model and optimizer, whose steps are now private, and a loader of Poisson batches.

    Either `epsilon` and the number of `epochs` (or `steps`) are given, and the least noise that meets the claim is
    solved for; or `noise_multiplier` is, and `optimizer.privacy_.epsilon(delta)` tells what was spent; or `noise` is
    a published one, with its own claim, which is refused where it is refuted (unless `unsafe=True`). `clip` is a
    number (flat clipping) or a `Clip`; `noise` a name or a `Noise`. `gradients` says who computes the gradients of
    single records: "fast" (this library) or "opacus" (its hooks).

    Guarantee: what leaves is the sequence of noisy sums; `optimizer.privacy_.certificate` is computed for them under
    add-remove neighbours. The expected batch size and the number of records are taken as public.
    """
    check_records = boolean("check_records", check_records)
    unsafe = boolean("unsafe", unsafe)
    if loss_reduction not in ("mean", "sum"):
        raise ValueError(f"loss_reduction must be 'mean' or 'sum', got {loss_reduction!r}")
    check_model(model)
    processes = Processes.current()
    records, batch_size, _ = checked_loader(loader)
    expected = batch_size * processes.count
    if expected > records:
        raise ValueError(f"{processes.count} processes with batches of {batch_size} exceed the {records} records")
    rate = expected / records
    per_epoch = max(records // expected if loader.drop_last else -(-records // expected), 1)
    layout = Layout.of(model)
    check_optimizer(optimizer, model)
    chosen, shaped = clip_from(clip), noise_from(noise)
    randomness = source(rng)
    if delta is None and epsilon is not None:
        raise ValueError("epsilon needs a delta: name both parts of the claim")
    delta = None if delta is None else probability("delta", delta)
    sensitivity = chosen.sensitivity(layout)
    total = _planned_steps(epochs, steps, per_epoch)
    if isinstance(shaped, Published):
        if epsilon is not None or delta is not None or noise_multiplier is not None or total is None:
            raise ValueError("published noise brings its own scale and claim: give epochs or steps, nothing else")
        claimed = shaped.claim(sensitivity, rate, total)
        scale, delta = 1.0, claimed[1]
    else:
        scale = _scale(shaped, sensitivity, layout, rate, total, epsilon, delta, noise_multiplier)
    premises = partial(_premises, chosen, model, check_records)
    make = partial(
        _mechanism, shaped, sensitivity, layout, expected, delta=delta, steepness=chosen.steepness, premises=premises
    )
    if epsilon is not None and delta is not None and total is not None:
        mechanism, scale = _certified(make, scale, rate, total, epsilon, delta)
    else:
        mechanism = make(scale)
    if isinstance(shaped, Published):
        epsilon = claimed[0]
        judged = shaped.judged(mechanism, rate, total or 1, *claimed)
        if not unsafe:
            judged.require()
    if progress and delta is None:
        raise ValueError("progress reports the epsilon spent: pass a delta to report it at")
    account = Account(
        Step(mechanism, rate), epsilon, delta, total if epsilon is not None else None,
        None if journal is None or not processes.first else Path(journal), secure=randomness.secure,
    )  # fmt: skip
    training = Training(
        model, layout, chosen, shaped, scale, mechanism, account, float(expected), processes, randomness,
        mean=loss_reduction == "mean", report=_report(progress), report_every=per_epoch,
        check_rows=check_records,
    )  # fmt: skip
    if gpu.serves(mechanism.law, next(model.parameters())):
        training.draw = partial(gpu.draw, source=randomness)
    route = Recorder if one_of("gradients", gradients, ("fast", "opacus")) == "fast" else OpacusRecorder
    recorder = route(
        model, layout, training.mean, training.add, check_records, training.has_records,
        None if loader.collate_fn is default_collate else loader.collate_fn, partial(loader.dataset.__getitem__, 0),
        side_stream(randomness, rng),
    )  # fmt: skip
    recorder.attach()
    training._flush = recorder.flush
    processes.share_model(model)
    account.taken = processes.largest(account.taken)
    optimizer.register_step_pre_hook(training.before_step)
    optimizer.privacy_ = training  # type: ignore[attr-defined]
    most = None if physical_batch_size is None else count("physical_batch_size", physical_batch_size)
    indices = range(processes.rank, records, processes.count)
    batches = partial(PoissonBatches, indices, rate, per_epoch, randomness, most)
    private_loader = PoissonLoader(
        loader, batches, per_epoch, training.receive, recorder.show, recorder.secret, randomness.secure
    )
    private_loader.privacy_ = training
    return model, optimizer, private_loader


def _scale(
    noise: Noise,
    sensitivity: Sensitivity,
    layout: Layout,
    rate: float,
    total: int | None,
    epsilon: float | None,
    delta: float | None,
    multiplier: float | None,
) -> float:
    """The noise scale: given, or the least that meets the claim."""
    if multiplier is not None:
        if epsilon is not None:
            raise ValueError("give epsilon (the noise is solved for) or noise_multiplier, not both")
        return positive("noise_multiplier", multiplier)
    if epsilon is None or delta is None or total is None:
        raise ValueError("give epsilon and delta together with epochs or steps, or a noise_multiplier")
    if delta == 0:
        raise ValueError("delta must be > 0: a composition of noisy gradients has no pure guarantee worth its noise")
    found = plan(
        epsilon=epsilon,
        delta=delta,
        sampling_rate=rate,
        steps=total,
        family=noise.family(sensitivity, layout),
        relative=_RELATIVE,
        seconds=3600.0,
    )
    return found.scale


def _planned_steps(epochs: int | None, steps: int | None, per_epoch: int) -> int | None:
    if epochs is not None and steps is not None:
        raise ValueError("give epochs or steps, not both")
    if epochs is not None:
        return count("epochs", epochs) * per_epoch
    return None if steps is None else count("steps", steps)


def _mechanism(
    noise: Noise,
    sensitivity: Sensitivity,
    layout: Layout,
    expected: float,
    scale: float,
    delta: float | None,
    steepness: float,
    premises: Callable[[Law], tuple[str, ...]],
) -> Additive:
    """The step's mechanism; what it claims for itself is the epsilon of one step."""
    widened = sensitivity.scaled(1 + margin(expected, sensitivity.dim, scale, steepness), "add-remove")
    law = noise.law(widened, layout, scale)
    at = delta or LABEL
    if isinstance(noise, Published):
        return StepMechanism(law, widened, noise.step_epsilon, at, premises=premises(law))
    epsilon = loss_of(law, widened).epsilon(at).upper
    return StepMechanism(law, widened, epsilon if 0 < epsilon < math.inf else EPSILON_LIMIT, at, premises=premises(law))


def _premises(clip: Clip, model: nn.Module, checked: bool, law: Law) -> tuple[str, ...]:
    """What a training rests on beyond what is computed; see privacy.assumptions."""
    smooth = isinstance(clip, NormClip | PerValue)
    ours = type(clip).__module__.split(".")[0] == "shapedp"
    names = ["gradients" if smooth else "jumps", "records" if checked else "unchecked", "draws"]
    names += [] if ours else ["own"]
    return (*names, "gpu") if gpu.serves(law, next(model.parameters())) else tuple(names)


def _certified(
    make: Callable[[float], Additive], scale: float, rate: float, steps: int, epsilon: float, delta: float
) -> tuple[Additive, float]:
    """The mechanism at the least scale found; raised a little where rounding leaves the claim undecided."""
    for _ in range(20):
        mechanism = make(scale)
        found = certify(Plan((Step(mechanism, rate, steps),)), epsilon=epsilon, delta=delta)
        if found.verdict == "certified":
            return mechanism, scale
        scale *= 1 + 2e-4
    raise PlanningError(f"the claim could not be certified near the noise scale {scale:g}: {found.explain()}")


def check_optimizer(optimizer: Any, model: nn.Module) -> None:
    """Raise where the optimizer cannot be made private, or holds parameters that are not the model's."""
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
