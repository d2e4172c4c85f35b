"""How each kind of layer runs without its weights' gradient, and what that gradient is per record."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, vjp, vmap
from torch.nn import functional as F
from torch.nn.utils.parametrize import is_parametrized

from shapedp.torch import gpu
from shapedp.torch.detour import RecordError
from shapedp.torch.pieces import GRAMS, Dense, Outer, Piece, Products, Scattered

Tensor = torch.Tensor
Parts = dict[str, Piece]
_CACHED = 1 << 19  # entries of a buffer that stays in a core's cache
WIDE = 1 << 16  # entries of a weight from which Gram matrices are worth their products


@dataclass(frozen=True)
class Rule:
    """`forward(module, *args)` with detached parameters; `pieces(module, args, grad)` per own parameter name.

    `gradient(...)` may assume the record is the first axis of the first argument. `fresh` says that nothing keeps
    the output for its own backward pass, so that it may be marked in place.
    """

    forward: Callable[..., Any]
    pieces: Callable[[Any, tuple[Any, ...], dict[str, Any], Tensor], Parts]
    fresh: bool = True


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


def _frozen(module: nn.Module, name: str) -> Tensor | None:
    value = getattr(module, name)
    return None if value is None else value.detach()


def _wanted(module: nn.Module, name: str) -> bool:
    value = getattr(module, name, None)
    return value is not None and value.requires_grad


def _linear_forward(module: nn.Linear, x: Tensor) -> Tensor:
    return F.linear(x, module.weight.detach(), _frozen(module, "bias"))


def _linear(module: nn.Linear, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> Parts:
    x = args[0].to(grad.dtype)
    parts: Parts = {}
    if x.ndim == 2:
        if _wanted(module, "weight"):
            parts["weight"] = Outer(grad, x)
        if _wanted(module, "bias"):
            parts["bias"] = Dense(grad)
        return parts
    left, right = grad.flatten(1, -2), x.flatten(1, -2)
    if _wanted(module, "weight"):
        wide = module.weight.numel() >= WIDE and 2 * left.shape[1] ** 2 <= module.weight.numel()
        wide = wide and Products.size(left.shape[1:], right.shape[2]) <= GRAMS
        parts["weight"] = Products(left, right) if wide else Dense(torch.bmm(left.transpose(1, 2), right))
    if _wanted(module, "bias"):
        parts["bias"] = Dense(left.sum(1))
    return parts


def _conv_forward(module: Any, x: Tensor) -> Any:
    return module._conv_forward(x, module.weight.detach(), _frozen(module, "bias"))


def _conv(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> Parts:
    parts: Parts = {}
    fast = gpu.conv_rows(module, args[0], grad) if grad.is_cuda and _wanted(module, "weight") else None
    if fast is not None:
        parts["weight"] = Dense(fast)
    elif _wanted(module, "weight"):
        parts["weight"] = Dense(_conv_rows(module, args[0].to(grad.dtype), grad))
    if _wanted(module, "bias"):
        parts["bias"] = Dense(grad.flatten(2).sum(2))
    return parts


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


def _embedding_forward(module: nn.Embedding, x: Tensor) -> Tensor:
    return F.embedding(x, module.weight.detach(), module.padding_idx)


def _embedding(module: nn.Embedding, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> Parts:
    index = args[0].reshape(len(args[0]), -1)
    values = grad.reshape(*index.shape, module.embedding_dim)
    if module.padding_idx is not None:
        values = values.masked_fill((index == module.padding_idx)[..., None], 0.0)
    return {"weight": Scattered(index, values, module.num_embeddings)}


def _layer_norm_forward(module: nn.LayerNorm, x: Tensor) -> Tensor:
    weight, bias = _frozen(module, "weight"), _frozen(module, "bias")
    return F.layer_norm(x, module.normalized_shape, weight, bias, module.eps)


def _layer_norm(module: nn.LayerNorm, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> Parts:
    normal = F.layer_norm(args[0].to(grad.dtype), module.normalized_shape, None, None, module.eps)
    inner = len(module.normalized_shape)

    def summed(values: Tensor) -> Dense:
        return Dense(values.flatten(1, -inner - 1).sum(1) if values.ndim > inner + 1 else values)

    return _scale_and_shift(module, grad * normal, grad, summed)


def _rms_forward(module: nn.RMSNorm, x: Tensor) -> Any:
    return F.rms_norm(x, module.normalized_shape, _frozen(module, "weight"), module.eps)


def _rms(module: nn.RMSNorm, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> Parts:
    product = grad * F.rms_norm(args[0].to(grad.dtype), module.normalized_shape, None, module.eps)
    inner = len(module.normalized_shape)
    return {"weight": Dense(product.flatten(1, -inner - 1).sum(1) if product.ndim > inner + 1 else product)}


def _group_norm_forward(module: nn.GroupNorm, x: Tensor) -> Tensor:
    return F.group_norm(x, module.num_groups, _frozen(module, "weight"), _frozen(module, "bias"), module.eps)


def _group_norm(module: nn.GroupNorm, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> Parts:
    fast = gpu.group_norm_rows(args[0], grad, module.num_groups, module.eps) if grad.is_cuda else None
    if fast is not None:
        return {name: Dense(v) for name, v in zip(("weight", "bias"), fast, strict=True) if _wanted(module, name)}
    normal = F.group_norm(args[0].to(grad.dtype), module.num_groups, None, None, module.eps)
    return _scale_and_shift(module, grad * normal, grad, _per_channel)


def _instance_norm_forward(module: Any, x: Tensor) -> Any:
    weight, bias = _frozen(module, "weight"), _frozen(module, "bias")
    return F.instance_norm(x, None, None, weight, bias, True, 0.0, module.eps)


def _instance_norm(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> Parts:
    normal = F.instance_norm(args[0].to(grad.dtype), None, None, None, None, True, 0.0, module.eps)
    return _scale_and_shift(module, grad * normal, grad, _per_channel)


def _per_channel(values: Tensor) -> Dense:
    return Dense(values.flatten(2).sum(2) if values.ndim > 2 else values)


def _scale_and_shift(module: nn.Module, product: Tensor, grad: Tensor, summed: Callable[[Tensor], Dense]) -> Parts:
    values = {"weight": product, "bias": grad}
    return {name: summed(value) for name, value in values.items() if _wanted(module, name)}


def argument_names(module: nn.Module, number: int) -> list[str | None]:
    """The names of a module's first arguments, as far as its forward tells them."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    told = inspect.signature(type(module).forward).parameters.values()
    names = [one.name for one in told if one.kind in kinds][1:]
    return [*names, *[None] * number][:number]


def is_shared(module: nn.Module, name: str | None, value: Tensor) -> bool:
    """Whether an argument belongs to all records alike, whatever its length: torch's mask of places by places."""
    return isinstance(module, nn.MultiheadAttention) and name == "attn_mask" and value.ndim == 2


@contextmanager
def bare(module: nn.Module) -> Iterator[None]:
    """The module with the methods of its class."""
    kept: dict[str, Any] = {
        name: module.__dict__.pop(name) for name in ("forward", "_call_impl") if name in module.__dict__
    }
    try:
        yield
    finally:
        module.__dict__.update(kept)


def unit_forward(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    with bare(module):
        return functional_call(module, parameters, args, kwargs)


def _unit(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], grad: Tensor) -> Parts:
    """The module's vector-Jacobian product, record by record; tensors whose first axis is the record are split."""
    n = len(grad)
    wanted = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
    fixed = {name: p.detach() for name, p in module.named_parameters() if not p.requires_grad}

    def split(name: str | None, value: Any) -> int | None:
        if not isinstance(value, Tensor) or not value.ndim or is_shared(module, name, value):
            return None
        if len(value) != n:
            raise RecordError(
                f"{type(module).__name__} was called with a tensor whose first axis is not the record: expand shared "
                "inputs (such as positions) to the batch, or keep them in the module as a buffer"
            )
        return 0

    named_args = zip(argument_names(module, len(args)), args, strict=True)
    places = tuple(split(*pair) for pair in named_args), {name: split(name, value) for name, value in kwargs.items()}

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


UNIT = Rule(unit_forward, _unit, fresh=False)
RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: Rule(_linear_forward, _linear),
    nn.Conv1d: Rule(_conv_forward, _conv),
    nn.Conv2d: Rule(_conv_forward, _conv),
    nn.Conv3d: Rule(_conv_forward, _conv),
    nn.Embedding: Rule(_embedding_forward, _embedding),
    nn.LayerNorm: Rule(_layer_norm_forward, _layer_norm),
    nn.RMSNorm: Rule(_rms_forward, _rms),
    nn.GroupNorm: Rule(_group_norm_forward, _group_norm),
    nn.InstanceNorm1d: Rule(_instance_norm_forward, _instance_norm),
    nn.InstanceNorm2d: Rule(_instance_norm_forward, _instance_norm),
    nn.InstanceNorm3d: Rule(_instance_norm_forward, _instance_norm),
}
