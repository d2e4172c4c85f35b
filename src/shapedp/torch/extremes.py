"""Which operations a model runs on a batch, and batches in which one record is like no other."""

from __future__ import annotations

from typing import Any

from torch import Tensor, finfo, full_like, strided
from torch.utils._python_dispatch import TorchDispatchMode

from shapedp.torch.madeup import leaves


class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Lists the operations that run inside, with the shapes, types and strides of the tensors they are given."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [form(value) for value in leaves([args, kwargs or {}])]
        self.found.append((str(func), given))
        return func(*args, **kwargs or {})


def form(leaf: Tensor) -> tuple[Any, ...]:
    """What decides how an operation runs on a tensor, beside its values."""
    return leaf.shape, leaf.dtype, leaf.stride() if leaf.layout == strided else leaf.layout


def all_rows(one: Tensor | None, row: int, value: float | None) -> Tensor | None:
    """Every row as that one is, or filled with a value."""
    if one is None:
        return None
    return one[[row] * len(one)] if value is None else full_like(one, value)


def but_one(one: Tensor | None, row: int, value: float | None) -> Tensor | None:
    """All rows but one filled with a value; whole numbers and truth values with 0 or 1 (any table has two rows)."""
    if one is None or value is None:
        return one
    if not (one.is_floating_point() or one.is_complex()):
        value = float(value == 1)
    elif value == value:
        value = min(value, finfo(one.dtype).max)
    filled = full_like(one, value)
    filled[row] = one[row]
    return filled
