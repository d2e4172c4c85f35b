"""What code for Opacus reaches into: its account's history, its optimizer's names, its state dicts, its pieces."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn

import torch
from torch import nn

from shapedp.accounting import Plan, Step
from shapedp.numerics.checks import count, numeric, positive
from shapedp.privacy import GaussianLoss
from shapedp.torch.loader import PoissonLoader
from shapedp.torch.refusals import refusal

PREFIX = "_module."
_TRUE = (
    "The history of an Opacus accountant is true: each step added Gaussian noise of the stated multiplier to a sum of "
    "clipped gradients over a Poisson sample of the stated rate."
)


def from_opacus(account: Any) -> Plan:
    """The steps that an Opacus accountant counted, as a plan: its `epsilon(delta)` is a certified bracket.

    Parameters
    ----------
    account : an accountant of Opacus ("rdp", "prv" or "gdp"), its `state_dict()`, or its `history`: a list of
        (noise multiplier, sampling rate, steps).

    Returns
    -------
    A `Plan` under add-remove neighbours, to compose with ours, to certify, or to spend in a ledger.

    Guarantee: the bracket is that of subsampled Gaussian steps; that they were taken so is `vouched` for.

    Examples
    --------
    >>> from shapedp.torch import from_opacus
    >>> plan = from_opacus([(1.1, 0.01, 1000)])
    >>> round(plan.epsilon(1e-5).upper, 2)
    1.52
    """
    history: Any = account.get("history") if isinstance(account, Mapping) else getattr(account, "history", account)
    if not isinstance(history, list | tuple) or not history:
        raise ValueError(refusal("not-a-history"))
    return Plan(tuple(_step(entry) for entry in history), (_TRUE,))


def _step(entry: Any) -> Step:
    if not isinstance(entry, list | tuple) or len(entry) != 3:
        raise ValueError(refusal("not-a-history"))
    scale = positive("the noise multiplier of the history", entry[0])
    loss = GaussianLoss(math.nextafter(1 / scale, math.inf), adjacency="add-remove")
    return Step(loss, entry[1], count("the steps of the history", entry[2]))


class BatchMemoryManager:
    """For code written for Opacus: a draw is handed out in pieces of at most `max_physical_batch_size` records.

    Parameters
    ----------
    data_loader, optimizer : what `make_private` returned.
    max_physical_batch_size : the most records of a piece.

    Guarantee: the optimizer moves the model on the last piece of a draw only. All draws have the same number of
    pieces, the last ones empty (see `physical_batch_size`).

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from shapedp.torch import BatchMemoryManager, make_private
    >>> model, data = torch.nn.Linear(3, 1), TensorDataset(torch.zeros(50, 3))
    >>> model, optimizer, loader = make_private(
    ...     model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size=20), clip=1.0,
    ...     noise_multiplier=1.0,
    ... )
    >>> with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as pieces:
    ...     print(len(next(iter(pieces))[0]) <= 8)
    True
    """

    def __init__(self, *, data_loader: PoissonLoader, max_physical_batch_size: int, optimizer: Any) -> None:
        if not isinstance(data_loader, PoissonLoader):
            raise TypeError(f"data_loader must be what make_private returned, got {type(data_loader).__name__}")
        if getattr(optimizer, "privacy_", None) is not data_loader.privacy_:
            raise ValueError("the optimizer is not the one that make_private returned with this loader")
        self.loader = data_loader.in_pieces(count("max_physical_batch_size", max_physical_batch_size))

    def __enter__(self) -> PoissonLoader:
        return self.loader

    def __exit__(self, *_: object) -> None:
        """Nothing was changed: the loader itself hands out what it did before."""


class Refused:
    """An attribute that is refused with its remedy."""

    def __init__(self, remedy: str) -> None:
        self.remedy = remedy

    def __get__(self, holder: Any, kind: Any = None) -> NoReturn:
        raise AttributeError(self.remedy)


class _Names:
    """What Opacus' optimizer has beside torch's."""

    privacy_: Any
    step_hook: Any = None
    accumulated_iterations = 1
    grad_samples = Refused(refusal("no-grad-samples"))
    pre_step = clip_and_accumulate = add_noise = scale_grad = Refused(refusal("no-parts-of-a-step"))
    signal_skip_step = Refused(refusal("no-skipped-steps"))

    @property
    def noise_multiplier(self) -> float:
        """The noise scale over the clip."""
        return float(self.privacy_.scale)

    @noise_multiplier.setter
    def noise_multiplier(self, value: float) -> None:
        if value != self.noise_multiplier:
            raise ValueError(refusal("noise-schedule"))

    @property
    def max_grad_norm(self) -> Any:
        """The bounds of the clip: one number, or one per layer."""
        clip = self.privacy_.clip
        return clip.radius if hasattr(clip, "radius") else clip.radii

    @max_grad_norm.setter
    def max_grad_norm(self, value: Any) -> None:
        if numeric("max_grad_norm", value).tolist() != numeric("max_grad_norm", self.max_grad_norm).tolist():
            raise ValueError(refusal("clip-schedule"))

    @property
    def expected_batch_size(self) -> int:
        """The expected number of records of a draw."""
        return int(self.privacy_.expected)

    @property
    def original_optimizer(self) -> Any:
        """This optimizer, which was never wrapped."""
        return self

    def attach_step_hook(self, function: Any) -> None:
        """Call `function(optimizer)` after the noise of a step and before the model moves; one hook at a time."""
        self.step_hook = function

    def __reduce__(self) -> Any:
        plain: Any = type(self).__bases__[1]
        return _bare, (plain,), self.__getstate__()


def _bare(kind: type[Any]) -> Any:
    """An optimizer of its own class, before its state is set."""
    return object.__new__(kind)


@cache
def _with_names(kind: Any) -> type[Any]:
    return type(kind.__name__, (_Names, kind), {"__module__": kind.__module__})


def take_names(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Give a private model and its optimizer the names that Opacus gives to its own.

    Guarantee: `state_dict` keys stay as they are; copies and pickles of the optimizer are of its own class.
    """
    kind: Any = type(optimizer)
    optimizer.__class__ = _with_names(kind)
    optimizer.register_step_pre_hook(_after_the_noise)
    model.__dict__["_module"] = model  # no submodule: nothing is renamed
    model.__dict__["load_state_dict"] = TakesPrefixed(model)


def _after_the_noise(optimizer: Any, args: Any, kwargs: Any) -> None:
    """A pre-step hook behind that of the training: it forgets a draw once its noisy sum is in place."""
    if optimizer.step_hook is not None and optimizer.privacy_.part is None:
        optimizer.step_hook(optimizer)


class TakesPrefixed:
    """`model.load_state_dict`, which takes the names that Opacus' wrapper gives as well."""

    __slots__ = ("module",)

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __call__(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        return type(self.module).load_state_dict(self.module, unprefixed(state_dict), *args, **kwargs)

    def __reduce__(self) -> Any:
        return getattr, (self.module, "load_state_dict")  # that of the class: the module is restored before its fields


def unprefixed(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """A state dict with its plain names, if all of them have Opacus' prefix."""
    if not state or not all(name.startswith(PREFIX) for name in state):
        return state
    return {name.removeprefix(PREFIX): value for name, value in state.items()}
