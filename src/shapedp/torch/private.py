"""From a model, an optimizer and a loader to their private counterparts, by a plan."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, default_collate

from shapedp.accounting.passes import PASSES
from shapedp.boundary.values import boolean
from shapedp.numerics.checks import count, one_of, positive
from shapedp.sampling import Source, source
from shapedp.torch import gpu
from shapedp.torch.batches import AllocatedBatches, FixedBatches, PlacedBatches, PoissonBatches, ShuffledBatches
from shapedp.torch.clips import Clip, clip_from
from shapedp.torch.correlated import KINDS, chosen
from shapedp.torch.layout import Layout
from shapedp.torch.loader import PoissonLoader
from shapedp.torch.noise import Noise, noise_from
from shapedp.torch.overtime import CyclicBatches, drawn_groups
from shapedp.torch.owners import Owners
from shapedp.torch.plan import EXACT_SIZES, SAMPLING, TrainingPlan, steps_of_epoch
from shapedp.torch.probe import Probe
from shapedp.torch.recorder import Recorder
from shapedp.torch.refusals import refusal
from shapedp.torch.rules import ROUTES
from shapedp.torch.secret import side_stream
from shapedp.torch.training import Processes, Progress, Training
from shapedp.torch.validate import check_model, check_optimizer, checked_loader
from shapedp.workloads import Correlation, StepSums

P = ParamSpec("P")
R = TypeVar("R")
Report = Callable[[Progress], None]
Private = tuple[nn.Module, torch.optim.Optimizer, PoissonLoader]


def _named_here(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, with a hint for an argument that is known by another name."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if "max_grad_norm" in kwargs:
            raise TypeError(refusal("max-grad-norm"))
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
    owner: Any = None,
    per_owner: int | None = None,
    sampling: str = "poisson",
    correlated: Correlation | str | None = None,
    independent: bool | None = None,
    unsafe: bool = False,
) -> Private:
    """The same model and optimizer, whose steps are now private, and a loader of batches drawn anew.

    Give `epsilon`, `delta` and the number of `epochs` (or `steps`): the least noise that meets the claim is solved
    for. Or give `noise_multiplier`, and ask `optimizer.privacy_.epsilon(delta)` what was spent. Or give a published
    noise, which brings its own claim.

    Parameters
    ----------
    model, optimizer, loader : what you would train with; the loader's batch size is the expected one of its draws.
    clip : the norm of a flat clip, or a `Clip`.
    noise : "gaussian", "laplace", "radial", "tensor", or a `Noise`.
    physical_batch_size : the most records that are handed out at once.
    loss_reduction : "mean" or "sum": what your loss does with the losses of single records.
    rng : a generator for simulations; the certificate then says that noise was not secure.
    journal : a file that counts started steps and outlives a killed run.
    progress : True for a line per epoch on standard error, or a function that is given a `Progress`.
    gradients : who computes the gradients of single records: "fast" (this library) or "opacus".
    check_records : False leaves out the check that the model mixes no records.
    owner : the person of each record (a text or a whole number), one per record: all that is theirs is protected
        together. The loader's batch size then counts persons, and so do epochs.
    per_owner : with `owner`, the most of a person's records that one step uses.
    sampling : "poisson", "allocation", "shuffle" or "fixed": how batches are drawn, as `TrainingPlan` says. Each has a
        guarantee of its own, under neighbours of its own: shuffled batches blank a record, fixed ones replace it.
    correlated : noise that cancels over the steps: None, "banded", "blt", "auto" (the least error of these and of none,
        at your claim), or one of `workloads.Banded`, `Toeplitz`, `Buffered` made for the number of steps.
    independent : True puts the records of a draw at random places of batches of one fixed shape, the other places
        without weight: no record's gradient then depends on who else is in the batch, and the certificate says so. None
        means where it costs next to nothing: batches of a fixed size ("shuffle", "fixed") put together by torch itself.
    unsafe : True lets published noise run although its claim is refuted.

    Returns
    -------
    The model, the optimizer (its `privacy_` is the `Training`) and the loader to iterate over.

    Guarantee: what leaves is the sequence of noisy sums; `optimizer.privacy_.certificate` is computed for them under
    add-remove neighbours: data that differ in one record, or with `owner` in one person with all their records. The
    expected batch size and the number of records (of persons) are taken as public.

    Examples
    --------
    >>> import torch, shapedp as sdp
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> model, data = torch.nn.Linear(3, 1), TensorDataset(torch.zeros(50, 3), torch.zeros(50, 1))
    >>> model, optimizer, loader = sdp.torch.make_private(
    ...     model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size=10), clip=1.0,
    ...     noise_multiplier=1.0, delta=1e-5,
    ... )
    >>> len(loader), optimizer.privacy_.steps
    (5, 0)
    """
    check_records, unsafe = boolean("check_records", check_records), boolean("unsafe", unsafe)
    one_of("sampling", sampling, tuple(SAMPLING))
    independent = None if independent is None else boolean("independent", independent)
    owners = _owners(owner, per_owner, loader)
    layout, records, expected = _known(model, optimizer, loader, loss_reduction, gradients, owners)
    if independent is None:
        independent = sampling in EXACT_SIZES and loader.collate_fn is default_collate
    if epochs is not None and steps is not None:
        raise ValueError("give epochs or steps, not both")
    if epochs is not None:
        steps = count("epochs", epochs) * steps_of_epoch(records, expected, loader.drop_last and sampling not in PASSES)

    def planned(kept: Correlation | None) -> TrainingPlan:
        return TrainingPlan(
            layout, records, expected, clip_from(clip), noise_from(noise), epsilon, delta, steps,
            _given_scale(noise_multiplier, epsilon), check_records, gpu.at_hand(next(model.parameters())), per_owner,
            sampling, kept, independent,
        )  # fmt: skip

    plan = _over_time(correlated, planned, optimizer, records // expected, steps)
    return attach(
        plan, model, optimizer, loader, physical_batch_size=physical_batch_size, loss_reduction=loss_reduction,
        rng=rng, journal=journal, progress=progress, gradients=gradients, owner=owner, unsafe=unsafe,
    )  # fmt: skip


def attach(
    plan: TrainingPlan,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: DataLoader[Any],
    *,
    physical_batch_size: int | None = None,
    loss_reduction: str = "mean",
    rng: np.random.Generator | None = None,
    journal: str | Path | None = None,
    progress: Report | bool = False,
    gradients: str = "fast",
    owner: Any = None,
    unsafe: bool = False,
) -> Private:
    """Train a model by a plan that was made, and perhaps saved, before; parameters and results as in `make_private`.

    Guarantee: a plan for other parameters, records or batches is refused, and so is one whose claim does not hold.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from shapedp.torch import Flat, Layout, TrainingPlan, attach
    >>> model, data = torch.nn.Linear(3, 1), TensorDataset(torch.zeros(50, 3), torch.zeros(50, 1))
    >>> plan = TrainingPlan(Layout.of(model), records=50, batch_size=10, clip=Flat(1.0), scale=1.0, delta=1e-5)
    >>> model, optimizer, loader = attach(
    ...     plan, model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size=10)
    ... )
    >>> optimizer.privacy_.scale
    1.0
    """
    unsafe = boolean("unsafe", unsafe)
    if (owner is None) != (plan.per_owner is None):
        units = ["records" if given is None else "persons" for given in (plan.per_owner, owner)]
        raise ValueError(refusal("owner-plan", planned=units[0], given=units[1]))
    owners = _owners(owner, plan.per_owner, loader)
    known = _known(model, optimizer, loader, loss_reduction, gradients, owners)
    if (plan.layout, plan.records, plan.batch_size) != known:
        raise ValueError("the plan was made for other parameters, records or batches: make one for these")
    if not unsafe and plan.epsilon is not None:
        plan.certificate.require()
    if progress and plan.delta is None:
        raise ValueError("progress reports the epsilon spent: pass a delta to report it at")
    processes, randomness = Processes.current(), source(rng)
    per_epoch = steps_of_epoch(plan.records, plan.batch_size, loader.drop_last and plan.sampling not in PASSES)
    if plan.sampling in ("shuffle", "fixed") and processes.count > 1:
        raise ValueError(refusal("several-processes", sampling=plan.sampling))
    most = None if physical_batch_size is None else count("physical_batch_size", physical_batch_size)
    account = plan.account(Path(journal) if journal is not None and processes.first else None, randomness.secure)
    to_screen = partial(print, file=sys.stderr, flush=True) if progress else None
    report = progress if callable(progress) else to_screen
    training = Training(model, plan, account, processes, randomness, loss_reduction == "mean", report, per_epoch)
    collate = None if loader.collate_fn is default_collate else loader.collate_fn
    example = partial(loader.dataset.__getitem__, 0)
    probe = partial(
        Probe,
        on=plan.check_records,
        real=training.has_records,
        collate=collate,
        example=example,
        exact=plan.independent,
    )
    draws, rule = side_stream(randomness, rng), ROUTES[gradients]
    recorder = Recorder(model, plan.layout, training.mean, training.add, probe, draws, rule, plan.independent)
    recorder.attach()
    training.flush = recorder.flush
    processes.share_model(model)
    account.taken = processes.largest(account.taken)
    optimizer.register_step_pre_hook(training.before_step)
    optimizer.privacy_ = training  # type: ignore[attr-defined]
    indices = range(processes.rank, plan.records, processes.count)
    batches = _drawn(plan, indices, per_epoch, randomness, most, lambda: training.turn)
    batches = batches if owners is None else owners.drawn_by(batches, randomness, most)
    if plan.independent:
        places = 0 if plan.sampling in EXACT_SIZES else plan.places(processes.count)
        batches = partial(_placed, batches, places, randomness, most)
    return model, optimizer, PoissonLoader(loader, batches, per_epoch, recorder, training)


def _over_time(
    correlated: Any, planned: Callable[[Correlation | None], TrainingPlan], optimizer: Any, separation: int, steps: Any
) -> TrainingPlan:
    """The plan, its noise over time given or chosen for the optimizer's own map."""
    if correlated is None or isinstance(correlated, Correlation):
        return planned(correlated)
    one_of("correlated", correlated, KINDS)
    if steps is None:
        raise ValueError(refusal("correlated-needs-claim"))
    found: TrainingPlan = chosen(correlated, planned, StepSums(steps, _momentum(optimizer)), separation)
    return found


def _momentum(optimizer: Any) -> float:
    """The momentum of all groups, if it is one; otherwise sums of gradients stand for what is learned."""
    found = {group.get("momentum", 0.0) for group in optimizer.param_groups}
    value = found.pop() if len(found) == 1 else 0.0
    return float(value) if isinstance(value, float | int) and 0 <= value < 1 else 0.0


def _drawn(
    plan: TrainingPlan, indices: range, steps: int, randomness: Source, most: int | None, turn: Callable[[], int]
) -> Any:
    """What draws the batches that the plan certifies, but for who is told of them."""
    size = plan.batch_size
    if (kept := plan.correlated) is not None:
        groups = drawn_groups(indices, kept.separation, randomness)
        cyclic = partial(CyclicBatches, indices, plan.rate, steps, randomness, most)
        return partial(cyclic, groups=groups, separation=kept.separation, next_turn=turn)
    drawn: dict[str, Any] = {
        "poisson": partial(PoissonBatches, indices, plan.sampling_rate, steps, randomness, most),
        "allocation": partial(AllocatedBatches, indices, plan.batches, randomness, most),
        "shuffle": partial(ShuffledBatches, indices, size, randomness, most),
        "fixed": partial(FixedBatches, indices, size, steps, randomness, most),
    }
    return drawn[plan.sampling]


def _placed(batches: Any, places: int, randomness: Source, most: int | None, announce: Any) -> PlacedBatches:
    return PlacedBatches(batches(announce), places, randomness, most, announce)


def _given_scale(multiplier: float | None, epsilon: float | None) -> float:
    """The noise scale that was given; 0 where it is solved for."""
    if multiplier is not None and epsilon is not None:
        raise ValueError("give epsilon (the noise is solved for) or noise_multiplier, not both")
    return 0.0 if multiplier is None else positive("noise_multiplier", multiplier)


def _owners(owner: Any, cap: int | None, loader: Any) -> Owners | None:
    """Whose the records are, where persons are protected."""
    if owner is None and cap is None:
        return None
    if owner is None or cap is None:
        raise ValueError(refusal("owner-cap"))
    return Owners.of(owner, checked_loader(loader)[0], count("per_owner", cap))


def _known(
    model: nn.Module, optimizer: Any, loader: Any, reduction: str, gradients: str, owners: Owners | None
) -> tuple[Layout, int, int]:
    """What a plan must know: layout, records, expected batch size; raises for what cannot be trained privately."""
    one_of("loss_reduction", reduction, ("mean", "sum"))
    one_of("gradients", gradients, tuple(ROUTES))
    check_model(model)
    records, batch_size = checked_loader(loader)
    records, unit = (records, "records") if owners is None else (len(owners), "persons")
    processes = Processes.current().count
    if batch_size * processes > records:
        raise ValueError(f"{processes} processes with batches of {batch_size} exceed the {records} {unit}")
    layout = Layout.of(model)
    check_optimizer(optimizer, model)
    return layout, records, batch_size * processes
