"""How each kind of layer runs without its weights' gradient, and what that gradient is per record."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap
from torch.nn import functional as F
from torch.nn.utils.parametrize import is_parametrized

from shapedp.torch import gpu
from shapedp.torch.detour import RecordError
from shapedp.torch.fused import Factors, Fused
from shapedp.torch.refusals import refusal
from shapedp.torch.single import GRAMS, Dense, Outer, Piece, Products, Scattered

Parts = dict[str, Piece]
Given = dict[str, Callable[[], Piece]]  # how to compute the gradients of a parameter, by its name
_CACHED = 1 << 19  # entries of a buffer that stays in a core's cache
WIDE = 1 << 16  # entries of a weight from which Gram matrices are worth their products


@dataclass(frozen=True)
class Rule:
    """How a layer runs with detached parameters (`forward`), and its gradients per record (`pieces`).

    `forward(module, *args, **kwargs)` returns the layer's output; `pieces(module, args, kwargs, grad)` returns the
    gradients of its own parameters by name, from the gradient of its output. The record is the first axis of both.
    `fresh` says that nothing keeps the output for its own backward pass, so that it may be marked in place. `cast` says
    that autocast runs the layer in half precision: its input is turned once, and its gradient is taken as it comes.
    """

    forward: Callable[..., Any]
    pieces: Callable[[Any, tuple[Any, ...], dict[str, Any], Tensor], Parts]
    fresh: bool = True
    cast: bool = False


def rule_for(module: nn.Module) -> Rule:
    """The rule of a module; any module of which none is known is differentiated record by record.

    So is a known layer whose weight is computed from other parameters.
    """
    kind = type(module)
    if is_parametrized(module) or any(name not in ("weight", "bias") for name, _ in module.named_parameters()):
        return UNIT
    for known, rule in RULES.items():
        same = all(getattr(kind, name, None) is getattr(known, name, None) for name in ("forward", "_conv_forward"))
        if kind is known or (issubclass(kind, known) and same):
            return rule
    return UNIT


def _layer(
    run: Callable[[Any, Tensor, Any, Any], Any], gradients: Callable[[Any, Tensor, Tensor], Given], cast: bool = False
) -> Rule:
    """The rule of a layer with a weight and a bias.

    `run(module, x, weight, bias)` is its forward; `gradients(module, x, grad)` gives, by the parameters' names, what
    computes the gradients per record of those that are trained.
    """

    def forward(module: nn.Module, x: Tensor) -> Any:
        weight, bias = (getattr(module, name, None) for name in ("weight", "bias"))
        return run(module, x, None if weight is None else weight.detach(), None if bias is None else bias.detach())

    def pieces(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> Parts:
        trained = {name for name, p in module._parameters.items() if p is not None and p.requires_grad}
        return {name: made() for name, made in gradients(module, args[0], grad).items() if name in trained}

    return Rule(forward, pieces, cast=cast)


def _linear(module: nn.Linear, x: Tensor, grad: Tensor) -> Given:
    if x.ndim > 2 and gpu.has_room(grad) and grad.dtype != torch.float64:
        return _linear_on_device(module, x, grad)
    grad = grad.to(module.weight.dtype)
    x = x.to(grad.dtype)
    if x.ndim == 2:
        return {"weight": lambda: Outer(grad, x), "bias": lambda: Dense(grad)}
    left, right = grad.flatten(1, -2), x.flatten(1, -2)

    def weight() -> Piece:
        wide = module.weight.numel() >= WIDE and 2 * left.shape[1] ** 2 <= module.weight.numel()
        wide = wide and Products.size(left.shape[1:], right.shape[2]) <= GRAMS
        return Products(left, right) if wide else Dense(torch.bmm(left.transpose(1, 2), right))

    return {"weight": weight, "bias": lambda: Dense(left.sum(1))}


def _linear_on_device(module: nn.Linear, x: Tensor, grad: Tensor) -> Given:
    """Sequences on a GPU: wide weights are never laid out."""
    left, right = grad.flatten(1, -2), x.flatten(1, -2)
    if left.dtype != right.dtype:
        left, right = left.float(), right.float()

    def weight() -> Piece:
        if module.weight.numel() >= WIDE:
            return Fused(Factors(left, right))
        if left.dtype == torch.float32:
            return Dense(torch.bmm(left.transpose(1, 2), right))
        return Dense(gpu.products_of_half(left, right))

    return {"weight": weight, "bias": lambda: Dense(left.sum(1, dtype=torch.float32))}


def _conv(module: Any, x: Tensor, grad: Tensor) -> Given:
    def weight() -> Piece:
        fast = gpu.conv_rows(module, x, grad) if grad.is_cuda else None
        return Dense(_conv_rows(module, x.to(grad.dtype), grad) if fast is None else fast)

    return {"weight": weight, "bias": lambda: Dense(grad.flatten(2).sum(2))}


def _conv_rows(module: Any, x: Tensor, grad: Tensor) -> Tensor:
    """Per record the product of the output's gradient with what the kernel saw, some records at a time (in cache)."""
    n, groups, size = len(x), module.groups, module.weight[0].numel()
    patches = _patches(module, x)  # a view: (n, channels, *kernel, *positions)
    rows = grad.reshape(n, groups, module.out_channels // groups, -1)
    out = grad.new_empty(n, *module.weight.shape)
    positions = rows.shape[-1]
    few = max(1, min(n, _CACHED // max(groups * size * positions, 1))) if not x.is_cuda else n
    buffer = grad.new_empty(few, *patches.shape[1:])
    columns = buffer.view(few * groups, size, positions).transpose(1, 2)
    single = torch.get_num_threads() == 1 and buffer.device.type == "cpu" and buffer.dtype != torch.bfloat16
    for start in range(0, n, few):
        many = min(few, n - start)
        if single:
            np.copyto(buffer[:many].numpy(), patches[start : start + many].numpy())  # faster than torch on one thread
        else:
            buffer[:many].copy_(patches[start : start + many])
        part = rows[start : start + many].reshape(many * groups, -1, positions)
        torch.bmm(part, columns[: many * groups], out=out[start : start + many].view(*part.shape[:2], size))
    return out


def _patches(module: Any, x: Tensor) -> Tensor:
    """What the kernel sees at each position: a view of shape (n, channels, *kernel, *positions)."""
    size, stride, dilation = module.kernel_size, module.stride, module.dilation
    pads = module._reversed_padding_repeated_twice
    if any(pads):
        x = F.pad(x, pads, mode="constant" if module.padding_mode == "zeros" else module.padding_mode)
    for axis in range(len(size)):
        x = x.unfold(2 + axis, dilation[axis] * (size[axis] - 1) + 1, stride[axis])
        if dilation[axis] > 1:
            x = x[..., :: dilation[axis]]
    spatial = len(size)
    return x.permute(0, 1, *range(2 + spatial, 2 + 2 * spatial), *range(2, 2 + spatial))


def _embedding(module: nn.Embedding, index: Tensor, grad: Tensor) -> Given:
    index = index.reshape(len(index), -1)
    values = grad.reshape(*index.shape, module.embedding_dim)
    if module.padding_idx is not None:
        values = values.masked_fill((index == module.padding_idx)[..., None], 0.0)
    return {"weight": lambda: Scattered(index, values, module.num_embeddings)}


def _norm(run: Callable[[Any, Tensor, Any, Any], Any], summed: Callable[[Any, Tensor], Tensor]) -> Rule:
    """The rule of a layer that normalises, scales by its weight and shifts by its bias.

    `summed(module, values)` adds up, per record, what shares an entry of the weight.
    """

    def gradients(module: nn.Module, x: Tensor, grad: Tensor) -> Given:
        if grad.is_cuda and isinstance(module, nn.GroupNorm):
            fast = gpu.group_norm_rows(x, grad, module.num_groups, module.eps)
            if fast is not None:
                return {"weight": lambda: Dense(fast[0]), "bias": lambda: Dense(fast[1])}

        def weight() -> Piece:
            return Dense(summed(module, grad * run(module, x.to(grad.dtype), None, None)))

        return {"weight": weight, "bias": lambda: Dense(summed(module, grad))}

    return _layer(run, gradients)


def _over_positions(module: nn.LayerNorm | nn.RMSNorm, values: Tensor) -> Tensor:
    """Sums over all axes between the record and those that are normalised."""
    inner = len(module.normalized_shape)
    return values.flatten(1, -inner - 1).sum(1) if values.ndim > inner + 1 else values


def _per_channel(module: nn.Module, values: Tensor) -> Tensor:
    """Sums over all axes behind the channel."""
    return values.flatten(2).sum(2) if values.ndim > 2 else values


def shared_mask(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """torch's mask of places by places, which belongs to all records alike, whatever its length."""
    if not isinstance(module, nn.MultiheadAttention):
        return None
    mask = inspect.signature(type(module).forward).bind_partial(module, *args, **kwargs).arguments.get("attn_mask")
    return mask if isinstance(mask, Tensor) and mask.ndim == 2 else None


@contextmanager
def bare(module: nn.Module) -> Iterator[None]:
    """The module with the methods of its class."""
    own = module.__dict__
    kept: dict[str, Any] = {name: own.pop(name) for name in ("forward", "_call_impl") if name in own}
    try:
        yield
    finally:
        own.update(kept)


def unit_forward(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    with bare(module):
        return functional_call(module, parameters, args, kwargs)


def _unit(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> Parts:
    """The module's vector-Jacobian product, record by record; tensors whose first axis is the record are split."""
    n, mask = len(grad), shared_mask(module, args, kwargs)
    wanted = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
    fixed = {name: p.detach() for name, p in module.named_parameters() if not p.requires_grad}

    def split(value: Any) -> int | None:
        if not isinstance(value, Tensor) or not value.ndim or value is mask:
            return None
        if len(value) != n:
            raise RecordError(refusal("first-axis-not-record", kind=type(module).__name__))
        return 0

    places = tuple(map(split, args)), {name: split(value) for name, value in kwargs.items()}

    def one(args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> dict[str, Tensor]:
        alone = tuple(v[None] if place == 0 else v for v, place in zip(args, places[0], strict=True))
        named = {name: v[None] if places[1][name] == 0 else v for name, v in kwargs.items()}

        def run(parameters: dict[str, Tensor]) -> Any:
            answer = functional_call(module, parameters | fixed, alone, named)
            return answer[0] if isinstance(answer, tuple) else answer

        return dict(vjp(run, wanted)[1](grad[None])[0])

    with torch.enable_grad(), bare(module):
        found = vmap(one, in_dims=(places[0], places[1], 0))(args, kwargs, grad)
    return {name: Dense(value.detach()) for name, value in found.items()}


def _opacus(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> Parts:
    """The gradients of Opacus' grad sampler; its own hooks would leave records on the layers and the parameters."""
    from opacus.grad_sample import GradSampleModule
    from opacus.grad_sample.functorch import ft_compute_per_sample_gradient

    if kwargs:
        raise RecordError("gradients='opacus' takes a layer's inputs by position: call it so, or use gradients='fast'")
    sampler = GradSampleModule.GRAD_SAMPLERS.get(type(module), ft_compute_per_sample_gradient)
    try:
        with torch.enable_grad(), bare(module):
            found = sampler(module, list(args), grad)
    finally:
        vars(module).pop("ft_compute_sample_grad", None)
    names = {id(p): name for name, p in module.named_parameters() if p.requires_grad}
    return {names[id(p)]: Dense(value.detach()) for p, value in found.items() if id(p) in names}


def opacus_rule(module: nn.Module) -> Rule:
    """The rule of any module where Opacus computes the gradients: the same numbers by another route."""
    if find_spec("opacus") is None:
        raise ImportError("gradients='opacus' needs opacus: pip install 'shapedp[torch]'")
    return Rule(unit_forward, _opacus, fresh=False)


UNIT = Rule(unit_forward, _unit, fresh=False)
_CONV = _layer(lambda m, x, w, b: m._conv_forward(x, w, b), _conv)
_INSTANCE = _norm(lambda m, x, w, b: F.instance_norm(x, None, None, w, b, True, 0.0, m.eps), _per_channel)
RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: _layer(lambda m, x, w, b: F.linear(x, w, b), _linear, cast=True),
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, nn.Conv3d), _CONV),
    nn.Embedding: _layer(lambda m, x, w, b: F.embedding(x, w, m.padding_idx), _embedding),
    nn.LayerNorm: _norm(lambda m, x, w, b: F.layer_norm(x, m.normalized_shape, w, b, m.eps), _over_positions),
    nn.RMSNorm: _norm(lambda m, x, w, b: F.rms_norm(x, m.normalized_shape, w, m.eps), _over_positions),
    nn.GroupNorm: _norm(lambda m, x, w, b: F.group_norm(x, m.num_groups, w, b, m.eps), _per_channel),
    **dict.fromkeys((nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d), _INSTANCE),
}
ROUTES: dict[str, Callable[[nn.Module], Rule]] = {"fast": rule_for, "opacus": opacus_rule}
