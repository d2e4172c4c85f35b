"""Made-up values in the shapes of a batch or a record: what is checked with them says nothing about any record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

Tensor = torch.Tensor
_LONGER = 2  # how much longer than the example a stretched part is


def made_up(like: Tensor, rows: int, seed: int, plain: bool = False) -> Tensor:
    """`rows` rows of the shape, type and device of those of `like`; no value of it is used.

    Floats are uniform on [0, 1); whole numbers and truth values are 0 or 1 (any table has two rows), with a 1 at the
    start of each row and, for truth values, one of each. With `plain` whole numbers are 1.
    """
    generator = torch.Generator().manual_seed(seed)
    shape = (rows, *like.shape[1:])
    if like.dtype.is_floating_point or like.dtype.is_complex:
        return torch.rand(shape, generator=generator, dtype=torch.float64).to(like.device, like.dtype)
    values = torch.randint(0, 2, shape, generator=generator)
    flat = values.reshape(rows, -1)
    if like.ndim == 1:
        flat = torch.arange(rows)[:, None] % 2
    elif flat.shape[1]:
        flat[:, 0] = 1
        if like.dtype == torch.bool:
            flat[:, 0], flat[:, -1] = 0, 1
    if plain and like.dtype != torch.bool:
        flat = torch.ones_like(flat)
    return flat.reshape(shape).to(like.device, like.dtype)


def leaves(values: Any) -> list[Tensor]:
    """All tensors of nested lists, tuples and dicts, in order."""
    found: list[Tensor] = []

    def keep(leaf: Tensor) -> Tensor:
        found.append(leaf)
        return leaf

    mapped(values, keep)
    return found


def mapped(values: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same nest with `change` applied to each tensor, in order."""
    if isinstance(values, Tensor):
        return change(values)
    if isinstance(values, dict):
        pairs = {key: mapped(value, change) for key, value in values.items()}
        return pairs if type(values) is dict else _as(values, pairs)
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*(mapped(value, change) for value in values))
    if isinstance(values, tuple | list):
        return type(values)(mapped(value, change) for value in values)
    return values


def _as(values: Any, pairs: dict[Any, Any]) -> Any:
    """A dict of another kind (as tokenizers return) with other values."""
    try:
        return type(values)(pairs)
    except TypeError:
        return pairs


class Example:
    """Records of the types and shapes of an example, with made-up values; parts can be made longer.

    A part is an array, a list of numbers or a text, at any depth. Anything else stays as it is.
    """

    def __init__(self, record: Any) -> None:
        self.record = record
        self.parts = self._count()

    def made(self, seed: int, longer: frozenset[int] = frozenset()) -> Any:
        """A record; the parts whose numbers are in `longer` are twice as long along their first axis."""
        rng = np.random.default_rng(seed)
        numbers = iter(range(self.parts))
        return self._walk(self.record, lambda part: _made_part(part, rng, next(numbers) in longer))

    def _count(self) -> int:
        seen: list[Any] = []

        def keep(part: Any) -> Any:
            seen.append(part)
            return part

        self._walk(self.record, keep)
        return len(seen)

    def _walk(self, value: Any, change: Callable[[Any], Any]) -> Any:
        if isinstance(value, bool | int | float | np.number):
            return value if isinstance(value, bool) else type(value)(change(np.asarray(value))[()])
        if isinstance(value, Tensor | np.ndarray | str) or _numbers(value):
            return change(value)
        if isinstance(value, dict):
            return {key: self._walk(one, change) for key, one in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self._walk(one, change) for one in value))
        if isinstance(value, tuple | list):
            return type(value)(self._walk(one, change) for one in value)
        return value


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, int | float) for one in value)


def _made_part(part: Any, rng: np.random.Generator, longer: bool) -> Any:
    if isinstance(part, str):
        return " ".join(rng.choice(["a", "b", "c"], size=6 if longer else 3))
    array = part.numpy(force=True) if isinstance(part, Tensor) else np.asarray(part)
    shape = (array.shape[0] * _LONGER, *array.shape[1:]) if longer and array.ndim else array.shape
    values = rng.random(shape)
    if array.dtype.kind not in "fc":
        values = np.asarray(values < 0.5)
        values.reshape(-1)[:1] = True
    made = np.asarray(values).astype(array.dtype)
    if isinstance(part, Tensor):
        return torch.from_numpy(made).to(part.dtype)
    return made.tolist() if isinstance(part, list) else made


def plans(example: Example) -> Iterator[frozenset[int]]:
    """Which parts are made longer: none, each, all."""
    yield frozenset()
    for part in range(example.parts):
        yield frozenset({part})
    if example.parts > 1:
        yield frozenset(range(example.parts))
