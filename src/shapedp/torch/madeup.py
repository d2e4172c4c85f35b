"""Made-up values in the shapes of a batch or a record: a check that uses them says nothing about any record."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
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


def mapped(values: Any, change: Callable[[Any], Any], is_leaf: Callable[[Any], bool] = torch.is_tensor) -> Any:
    """The same nested lists, tuples and dicts with `change` applied to each leaf, in order; the rest stays."""
    if is_leaf(values):
        return change(values)
    if isinstance(values, Mapping):
        pairs = {key: mapped(value, change, is_leaf) for key, value in values.items()}
        try:
            made: Any = type(values)
            return pairs if made is dict else made(pairs)  # of another kind, as tokenizers return
        except TypeError:
            return pairs
    if isinstance(values, tuple | list):
        inner = [mapped(value, change, is_leaf) for value in values]
        return type(values)(*inner) if hasattr(values, "_fields") else type(values)(inner)
    return values


def filled(values: Any, parts: Iterable[Tensor | None]) -> Any:
    """The same nested values with other tensors in place of theirs, in order; None keeps one."""
    given = iter(parts)

    def change(leaf: Tensor) -> Tensor:
        part = next(given)
        return leaf if part is None else part.to(leaf.device, leaf.dtype)

    return mapped(values, change)


def leaves(values: Any, is_leaf: Callable[[Any], bool] = torch.is_tensor) -> list[Any]:
    """All leaves of nested lists, tuples and dicts, in order."""
    found: list[Any] = []
    mapped(values, found.append, is_leaf)
    return found


def made_record(like: Any, seed: int, longer: frozenset[int] = frozenset()) -> Any:
    """A record of the types and shapes of another, with made-up values.

    A part is a number, an array, a list of numbers or a text, at any depth. Anything else stays as it is. The parts
    whose numbers are in `longer` are twice as long along their first axis.
    """
    rng, numbers = np.random.default_rng(seed), itertools.count()
    return mapped(like, lambda part: _made_part(part, rng, next(numbers) in longer), _is_part)


def _is_part(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, int | float) for one in value)
    return isinstance(value, int | float | np.number | Tensor | np.ndarray | str) and not isinstance(value, bool)


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
    if isinstance(part, int | float | np.number):
        return type(part)(made[()])
    return made.tolist() if isinstance(part, list) else made


def plans(record: Any) -> list[frozenset[int]]:
    """Which parts of records like this are made longer: none, each, all."""
    parts = range(len(leaves(record, _is_part)))
    return list(dict.fromkeys([frozenset(), *(frozenset({part}) for part in parts), frozenset(parts)]))
