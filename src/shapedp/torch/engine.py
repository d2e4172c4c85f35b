"""The names Opacus uses, for code that was written for it."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from shapedp.accounting import Plan, Step
from shapedp.boundary.files import atomic
from shapedp.boundary.values import boolean
from shapedp.numerics.checks import one_of
from shapedp.torch.accountant import Account, same_unit, steps_of
from shapedp.torch.clips import Clip, Flat, PerLayer
from shapedp.torch.opacus_names import Refused, from_opacus, take_names, unprefixed
from shapedp.torch.private import make_private
from shapedp.torch.refusals import refusal
from shapedp.torch.training import Training
from shapedp.torch.validate import check_model, check_optimizer, checked_loader

Norm = float | Sequence[float]
Private = tuple[Any, ...]  # module, optimizer, loader; or module, optimizer, criterion, loader
_STATE = "privacy_accountant_state_dict"


class PrivacyEngine:
    """For code written for Opacus: `from shapedp.torch import PrivacyEngine` in place of `from opacus import ...`.

    The methods take Opacus' arguments, and any other of `make_private` besides (`noise`, `clip`, ...).

    Parameters
    ----------
    accountant : a name that Opacus knows; epsilon is always the certified one.
    secure_mode : taken and not needed; noise is always secure unless `rng` is passed to `make_private`.

    Guarantee: `get_epsilon` is that of all trainings the engine made, together.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from shapedp.torch import PrivacyEngine
    >>> model, engine = torch.nn.Linear(3, 1), PrivacyEngine()
    >>> model, optimizer, loader = engine.make_private(
    ...     module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=1.0,
    ...     data_loader=DataLoader(TensorDataset(torch.zeros(50, 3)), batch_size=10), max_grad_norm=1.0,
    ... )
    >>> engine.get_epsilon(delta=1e-5)
    0.0
    """

    def __init__(self, *, accountant: str = "prv", secure_mode: bool = True) -> None:
        boolean("secure_mode", secure_mode)
        one_of("accountant", accountant, ("prv", "rdp", "gdp"))
        self.training: Training | None = None
        self.accountant = Accountant()

    def make_private(
        self, *, module: nn.Module, optimizer: Any, data_loader: DataLoader[Any], max_grad_norm: Norm, **options: Any
    ) -> Private:
        """Private counterparts with a given `noise_multiplier`; with grad_sample_mode="ghost" the criterion too."""
        if options.get("noise_multiplier") is None and self.accountant.steps:
            raise ValueError(refusal("engine-spent"))
        clipping, criterion = options.pop("clipping", "flat"), options.pop("criterion", None)
        mode = options.get("grad_sample_mode", "hooks")
        for name, (served, remedy) in _SERVED.items():
            if options.pop(name, served[0]) not in served:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, served))}: {remedy}")
        options.pop("alphas", None)
        options.setdefault("clip", _clip(max_grad_norm, clipping))
        loss = None
        if mode == "ghost":
            loss = PerRecordLoss(criterion or nn.CrossEntropyLoss(), options.get("loss_reduction", "mean"))
        module, optimizer, loader = make_private(module, optimizer, data_loader, **options)
        take_names(module, optimizer)
        same_unit((optimizer.privacy_.account.step, *self.accountant.steps))
        self.training = optimizer.privacy_
        self.accountant.accounts.append(optimizer.privacy_.account)
        return (module, optimizer, loader) if loss is None else (module, optimizer, loss, loader)

    def make_private_with_epsilon(
        self, *, target_epsilon: float, target_delta: float, epochs: int, **options: Any
    ) -> Private:
        """Private counterparts with the least noise that meets the target; other arguments as in `make_private`."""
        return self.make_private(epsilon=target_epsilon, delta=target_delta, epochs=epochs, **options)

    def get_epsilon(self, delta: float) -> float:
        """The upper end of the epsilon spent so far."""
        self._made()
        return self.accountant.get_epsilon(delta)

    def is_compatible(self, *, module: nn.Module, optimizer: Any = None, data_loader: Any = None) -> bool:
        """Whether `validate` has nothing to say."""
        try:
            self.validate(module=module, optimizer=optimizer, data_loader=data_loader)
        except ValueError:
            return False
        return True

    def validate(self, *, module: nn.Module, optimizer: Any = None, data_loader: Any = None) -> None:
        """Raise ValueError with cause and remedy where `make_private` would refuse these."""
        check_model(module)
        if optimizer is not None:
            check_optimizer(optimizer, module)
        if data_loader is not None:
            checked_loader(data_loader)

    @classmethod
    def get_compatible_module(cls, module: nn.Module) -> nn.Module:
        """The module with what mixes records replaced by Opacus' fixes; raises if something is left."""
        try:
            from opacus.validators import ModuleValidator
        except ImportError:
            raise ImportError("get_compatible_module needs opacus: pip install 'shapedp[torch]'") from None
        fixed: nn.Module = ModuleValidator.fix(module)
        check_model(fixed)
        return fixed

    def save_checkpoint(
        self, *, path: Any, module: nn.Module, optimizer: torch.optim.Optimizer | None = None, **options: Any
    ) -> None:
        """Write the states of module, optimizer and account, and `checkpoint_dict`, to a path or a file.

        `module_state_dict_kwargs` and `torch_save_kwargs` are passed on.
        """
        names = ("checkpoint_dict", "module_state_dict_kwargs", "torch_save_kwargs")
        more, for_module, for_torch = _options(options, names)
        account = self.accountant.state_dict() | {"training": self._made().state_dict()}
        states = more | {"module_state_dict": module.state_dict(**for_module), _STATE: account}
        if optimizer is not None:
            states["optimizer_state_dict"] = optimizer.state_dict()
        with atomic(path) if isinstance(path, str | os.PathLike) else nullcontext(path) as stream:
            torch.save(states, stream, **for_torch)

    def load_checkpoint(
        self, *, path: Any, module: nn.Module, optimizer: torch.optim.Optimizer | None = None, **options: Any
    ) -> dict[str, Any]:
        """Go on from a checkpoint, after `make_private` and before the first step; returns what it holds.

        `module_load_dict_kwargs` and `torch_load_kwargs` are passed on.
        """
        for_module, for_torch = _options(options, ("module_load_dict_kwargs", "torch_load_kwargs"))
        training = self._made()
        states: dict[str, Any] = torch.load(path, **{"weights_only": True, **for_torch})
        account = states[_STATE]
        if isinstance(account, dict) and "history" in account:
            if account["history"]:
                training.account.take_over(from_opacus(account))
        elif isinstance(account, dict) and "training" in account:
            training.load_state_dict(account["training"])
            self.accountant.load_state_dict(account)
        else:
            raise ValueError("the checkpoint's account is neither one of shapedp nor one of Opacus")
        module.load_state_dict(unprefixed(states["module_state_dict"]), **for_module)
        found = states.pop("optimizer_state_dict", None)
        if optimizer is not None and found is not None:
            optimizer.load_state_dict(found)
        elif optimizer is not None or found is not None:
            warnings.warn("the checkpoint and the call do not both have an optimizer: none was loaded", stacklevel=2)
        return states

    def _made(self) -> Training:
        if self.training is None:
            raise RuntimeError("nothing is private yet: call make_private first")
        return self.training


_SERVED: dict[str, tuple[tuple[Any, ...], str]] = {
    "poisson_sampling": ((True,), "without Poisson sampling there is no amplification that was proved; leave it on"),
    "batch_first": ((True,), "the record must be the first axis"),
    "noise_generator": ((None,), "noise is secure; for a simulation pass rng="),
    "grad_sample_mode": (("hooks", "functorch", "ew", "ghost"), "gradients are the same in each of them"),
    "wrap_model": ((True,), "what is returned is your model itself, with its own names; leave it out"),
    "rand_on_empty": ((False, True), "an empty draw has no weight, whatever stands for it"),
}


class Accountant:
    """The accounts of all trainings of one engine, as one."""

    def __init__(self) -> None:
        self.accounts: list[Account] = []
        self.past: tuple[Step, ...] = ()

    step = get_optimizer_hook_fn = history = Refused(refusal("steps-are-counted"))

    @property
    def steps(self) -> tuple[Step, ...]:
        """What all trainings have released so far."""
        return (*self.past, *(step for account in self.accounts for step in account.steps))

    def __len__(self) -> int:
        return sum(step.count for step in self.steps)

    def get_epsilon(self, delta: float) -> float:
        """The upper end of the epsilon spent so far."""
        return Plan(self.steps).epsilon(delta).upper if self.steps else 0.0

    def state_dict(self) -> dict[str, Any]:
        """What was spent before the last training; that one's own state stands beside it in a checkpoint."""
        before = [account.state_dict() for account in self.accounts[:-1]]
        return {"past": Plan(self.past).to_json() if self.past else None, "earlier": before}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Add what an earlier engine had spent before its last training."""
        past = () if state["past"] is None else Plan.from_json(state["past"]).steps
        self.past = (*self.past, *past, *(step for one in state["earlier"] for step in steps_of(one)))


class PerRecordLoss:
    """A criterion whose value is the mean (or sum) of one loss per record, whatever else it averages over.

    `shape`, that of the logits before they were flattened, makes a sequence one record, as in Opacus; tokens with the
    criterion's ignore_index do not count in its mean.
    """

    def __init__(self, criterion: Any, reduction: str) -> None:
        if getattr(criterion, "reduction", None) != one_of("loss_reduction", reduction, ("mean", "sum")):
            raise ValueError(f"the criterion must have the attribute reduction = {reduction!r}, as loss_reduction says")
        self.criterion, self.reduction = copy.copy(criterion), reduction
        self.criterion.reduction = "none"

    def __call__(self, *args: Any, shape: Sequence[int] | None = None, **kwargs: Any) -> torch.Tensor:
        losses: torch.Tensor = self.criterion(*args, **kwargs)
        valid = None
        if shape is not None and len(losses) == shape[0] * shape[1]:
            losses = losses.reshape(shape[0], shape[1])
            target = kwargs.get("target", args[1] if len(args) > 1 else None)
            ignored = getattr(self.criterion, "ignore_index", None)
            if ignored is not None and target is not None:
                valid = (target.reshape(shape[0], shape[1]) != ignored).sum(1).clamp(min=1)
        inner = losses.flatten(1) if losses.ndim > 1 else losses[:, None]
        if self.reduction == "sum":
            return inner.sum()
        return (inner.mean(1) if valid is None else inner.sum(1) / valid).mean()


def _clip(norm: Norm, clipping: str) -> Clip:
    if one_of("clipping", clipping, ("flat", "ghost", "per_layer")) == "per_layer":
        return PerLayer(norm)
    if isinstance(norm, Sequence):
        raise ValueError("several max_grad_norm go with clipping='per_layer'")
    return Flat(norm)


def _options(given: dict[str, Any], served: tuple[str, ...]) -> list[dict[str, Any]]:
    """Further arguments of a call by name, each {} where it is not given; those that are not served are refused."""
    if any(given.pop(name, None) is not None for name in ("noise_scheduler", "grad_clip_scheduler")):
        raise ValueError(
            f"noise and clip schedulers are not served: {refusal('noise-schedule')}; {refusal('clip-schedule')}"
        )
    if unknown := sorted(set(given) - set(served)):
        raise TypeError(f"unexpected arguments {', '.join(unknown)}: the call takes {', '.join(served)}")
    return [given.get(name) or {} for name in served]
