"""Records what gives the gradients of single records while a model runs forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from shapedp.sampling import Source, source
from shapedp.torch.detour import Detour, enrolled, notice
from shapedp.torch.detour import RecordError as RecordError
from shapedp.torch.gradients import Gradients, added
from shapedp.torch.layout import Layout
from shapedp.torch.probe import Probe
from shapedp.torch.refusals import refusal
from shapedp.torch.rules import Rule, rule_for
from shapedp.torch.secret import secret_states
from shapedp.torch.single import Piece

_CALL = "_call_impl"  # what torch runs when a module is called: its hooks, and its forward


@dataclass(frozen=True)
class Site:
    """A module whose calls are recorded, and where its parameters stand in the layout."""

    name: str
    module: nn.Module
    rule: Rule
    places: dict[str, int]


def sites_of(model: nn.Module, layout: Layout, rule: Callable[[nn.Module], Rule]) -> list[Site]:
    """The modules to record: known layers, and the smallest unknown modules that own a trainable parameter."""
    place = {name: k for k, name in enumerate(layout.names)}
    first = {id(p): place[name] for name, p in model.named_parameters() if name in place}
    found: list[Site] = []
    seen: set[int] = set()

    def visit(name: str, module: nn.Module) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        inner = {id(p) for child in module.children() for p in child.parameters()}
        own = any(p.requires_grad and id(p) not in inner for p in module.parameters(recurse=False))
        if not own and not is_parametrized(module):
            for key, child in module.named_children():
                visit(f"{name}.{key}" if name else key, child)
            return
        places = {key: first[id(p)] for key, p in module.named_parameters() if p.requires_grad}
        if places:
            found.append(Site(name or "the model", module, rule(module), places))

    visit("", model)
    return found


@dataclass(eq=False)
class Call:
    """One run of a recorded module."""

    site: Site
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    records: int
    versions: list[int]
    grad: Tensor | None = None
    over: bool = False

    def take(self, grad: Tensor) -> None:
        """The gradient of the output; those of one pass add up."""
        self.grad = grad if self.grad is None else self.grad + grad

    def end(self) -> None:
        """Forget the records: a graph that somebody keeps still refers to the call."""
        self.over, self.args, self.kwargs, self.grad = True, (), {}, None

    def pieces(self) -> dict[int, Piece]:
        """The gradients of the module's parameters."""
        assert self.grad is not None
        if self.versions != _versions(self.args, self.kwargs):
            raise RecordError(refusal("changed-in-place", name=self.site.name))
        grad = self.grad
        if not self.site.rule.cast:
            grad = grad.to(next(self.site.module.parameters()).dtype)
        parts = self.site.rule.pieces(self.site.module, self.args, self.kwargs, grad)
        if parts.keys() != self.site.places.keys():
            raise RecordError(f"{self.site.name} has parameters whose gradients of single records are not known")
        return {self.site.places[name]: piece for name, piece in parts.items()}


class _Tap(torch.autograd.Function):
    """The identity on a module's output; keeps the output's gradient."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, anchor: Tensor, call: Call) -> Tensor:
        ctx.call = call
        if call.site.rule.fresh:
            ctx.mark_dirty(output)
            return output
        return output.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        call = ctx.call
        if call.over:
            name = call.site.name
            del ctx, grad, call  # the error's frames hold no record
            raise RecordError(refusal("gradient-too-late", name=name))
        call.take(grad)
        return grad, None, None


class _Linear(torch.autograd.Function):
    """A linear layer on sequences, and the gradient of its output kept.

    torch's own returns a view, and to mark a view would copy its gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, call: Call) -> Tensor:
        ctx.call = call
        layer: Any = call.site.module
        weight, bias = layer.weight.to(x.dtype), layer.bias
        ctx.save_for_backward(weight)
        output = x.new_empty(*x.shape[:-1], len(weight))
        rows, flat = x.reshape(-1, x.shape[-1]), output.view(-1, len(weight))
        if bias is None:
            torch.mm(rows, weight.t(), out=flat)
        else:
            torch.addmm(bias.to(x.dtype), rows, weight.t(), out=flat)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        call = ctx.call
        if call.over:
            name = call.site.name
            del ctx, grad, call
            raise RecordError(refusal("gradient-too-late", name=name))
        call.take(grad)
        if not ctx.needs_input_grad[0]:
            return None, None, None
        (weight,) = ctx.saved_tensors
        return torch.mm(grad.reshape(-1, grad.shape[-1]), weight).view(*grad.shape[:-1], -1), None, None


_apply: Any = _Tap.apply
_apply_linear: Any = _Linear.apply


@dataclass(eq=False)
class Recorder:
    """Runs the model's layers with detached weights, and keeps what gives the gradients of single records.

    Parameters
    ----------
    model, layout : what is recorded.
    mean : whether the loss is a mean over the batch, which divides every gradient by the number of records.
    on_pass : called with (records, gradients, scale) for each pass that was run backward, before the next one and on
        `flush`; the gradients are to be multiplied by `scale`.
    probe : from the model and its recorded layers to what checks that records are not mixed.
    draws : the bits of the model's random numbers.
    rule : how a module runs, and what its gradients are.
    fixed : whether all batches have one shape, so that a mean divides by the same number whoever is in them.

    Guarantee: nothing that is recorded can be reached from the model.
    """

    model: nn.Module
    layout: Layout
    mean: bool
    on_pass: Callable[[int, Gradients, float], None]
    probe: Callable[..., Probe] = Probe
    draws: Source = field(default_factory=source)
    rule: Callable[[nn.Module], Rule] = rule_for
    fixed: bool = False
    calls: list[Call] = field(default_factory=list)

    def attach(self) -> None:
        """Start recording: the forward of each recorded module, and the model's own call, are replaced on them."""
        if (
            self.mean and not self.fixed and next(self.model.parameters()).is_cuda
        ):  # TF32 is off in this process; see `check_precision`
            torch.set_float32_matmul_precision("highest")
            torch.backends.cudnn.allow_tf32 = False
        self.anchor = torch.zeros((), requires_grad=True)
        number = enrolled(self)
        self._sites = {id(site.module): site for site in sites_of(self.model, self.layout, self.rule)}
        for site in self._sites.values():
            Detour(site.module, "forward", number)
        Detour(self.model, _CALL, number)
        layers = [(site.name, site.module) for site in self._sites.values()]
        self._probe, self.probe = self.probe(self.model, layers), Probe  # what was given leads to the records
        for name, parameter in self.model.named_parameters():
            if name in self.layout.names:
                parameter.register_post_accumulate_grad_hook(partial(notice, name, number))  # type: ignore[no-untyped-call]

    def secret(self) -> AbstractContextManager[None]:
        """Secret states for all random generators that the model may draw from."""
        devices = {p.device for p in self.model.parameters() if p.is_cuda}
        return secret_states(self.draws, devices)

    def show(self, batch: Any) -> None:
        """What the loader hands out, for the check on the first batch."""
        self._probe.show(batch)

    def run(self, module: nn.Module, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a recorded module, or of the model."""
        if not self.model.training or not torch.is_grad_enabled():
            return getattr(type(module), method)(module, *args, **kwargs)
        if method != _CALL:
            return self._recorded(self._sites[id(module)], args, kwargs)
        self.flush()
        with self.secret(), self._probe.around(args, kwargs):
            return getattr(type(module), _CALL)(module, *args, **kwargs)

    def forget(self) -> None:
        """Drop what was recorded."""
        calls, self.calls = self.calls, []
        for call in calls:
            call.end()
        self._probe.show(None)

    def _recorded(self, site: Site, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._probe.called(site.name)
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        records = next((len(value) for value in tensors if value.ndim), None)
        if records is None:
            raise RecordError(f"{site.name} was called without a tensor whose first axis is the record")
        if site.rule.cast:
            args, kwargs = _cast(args), {name: _cast((one,))[0] for name, one in kwargs.items()}
        versions = _versions(args, kwargs)
        if site.rule.cast and args and not kwargs and _on_sequences(site.module, args[0]):
            call = Call(site, (args[0].detach(),), {}, records, versions)
            self.calls.append(call)
            return _apply_linear(args[0], self.anchor, call)
        output = site.rule.forward(site.module, *args, **kwargs)
        rest: tuple[Any, ...] = ()
        if isinstance(output, tuple) and isinstance(site.module, nn.MultiheadAttention):
            output, rest = output[0], tuple(map(_detached, output[1:]))
        if not isinstance(output, Tensor):
            raise RecordError(refusal("not-one-tensor", name=site.name, kind=type(output).__name__))
        kept, named = tuple(map(_detached, args)), {key: _detached(one) for key, one in kwargs.items()}
        call = Call(site, kept, named, records, versions)
        self.calls.append(call)
        tapped = _apply(output, self.anchor, call)
        return (tapped, *rest) if rest else tapped

    def stray(self, name: str, parameter: Tensor) -> None:
        """A gradient reached the parameter itself, not through its layer."""
        if self.model.training:
            parameter.grad = None
            self.forget()
            raise RecordError(refusal("past-the-layer", name=name))

    def flush(self) -> None:
        """Hand over the pass that was run backward, if one was."""
        recorded, self.calls = self.calls, []
        try:
            calls = [call for call in recorded if call.grad is not None]
            if calls:
                self._hand_over(calls)
        finally:
            for call in recorded:
                call.end()

    def _hand_over(self, calls: list[Call]) -> None:
        sizes = {call.records for call in calls}
        if len(sizes) > 1:
            names = ", ".join(call.site.name for call in calls[:8])
            raise RecordError(refusal("layers-disagree", names=names))
        records = sizes.pop()
        scale = float(records) if self.mean else 1.0  # a mean over the batch divided every gradient
        found: dict[int, list[Piece]] = {}
        grads = [call.grad for call in calls if call.grad is not None]
        if self.mean and not self.fixed:
            check_precision(grads)
        device = grads[0].device.type
        with torch.no_grad(), torch.autocast(device, enabled=False):
            del grads
            for call in calls:
                for place, piece in call.pieces().items():
                    found.setdefault(place, []).append(piece)
                call.end()  # what is kept from here on is the pieces'
            del calls
            self.on_pass(records, {place: added(found.pop(place)) for place in [*found]}, scale)


def check_precision(grads: list[Tensor]) -> None:
    """Refuse gradients of a mean that were rounded to fewer digits than float32 has.

    Each is divided by the size of the batch first, so that all are rounded otherwise when one record leaves.
    """
    if any(grad.dtype in (torch.bfloat16, torch.float16) for grad in grads):
        raise RecordError(refusal("mean-in-half-precision"))
    coarse = torch.get_float32_matmul_precision() != "highest" or torch.backends.cudnn.allow_tf32
    if grads[0].is_cuda and coarse:
        raise RecordError(refusal("mean-with-tf32"))


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _on_sequences(layer: Any, x: Tensor) -> bool:
    """Whether a linear layer is called on sequences in its own precision or in that of autocast."""
    return x.ndim > 2 and (x.dtype == layer.weight.dtype or torch.is_autocast_enabled(x.device.type))


def _cast(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values in the precision that autocast would turn them to, if it is on."""

    def one(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.is_floating_point() or value.dtype == torch.float64:
            return value
        kind = value.device.type
        return value.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else value

    return tuple(map(one, values))


def _versions(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int]:
    """How often each tensor was changed in place."""
    tensors = (value for value in (*args, *kwargs.values()) if isinstance(value, Tensor))
    return [0 if value.is_inference() else value._version for value in tensors]
