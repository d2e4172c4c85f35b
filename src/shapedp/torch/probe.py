"""Whether the records of a batch stay apart in a model: checked on its first batch, before any gradient counts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

Tensor = torch.Tensor
_SAME = 1e-4  # between two batches of one size, whose arithmetic is the same
_NEAR = 1e-2  # between batches of two sizes; ten times that in half precision
_HALF = (torch.bfloat16, torch.float16)


class RecordError(RuntimeError):
    """The gradients of single records cannot be told apart; the message says where and what to do."""


@dataclass(frozen=True)
class Seen:
    """What a layer, or the caller, got for some records of a batch."""

    where: str
    rows: int | None
    tensors: list[Tensor]


@dataclass(eq=False)
class Probe:
    """Runs the model, without gradients, on the first batch it is trained on, and on variants of that batch.

    A record of the batch, the first or the last one, must be answered as before when all others are replaced by
    copies of it (in training mode, with the same random numbers), and when it is alone (in evaluation mode). What
    each recorded layer receives is compared as well as the answer, and its first axis must follow the batch. A
    batch of one record shows the axes only, so that the comparison waits for a larger one.

    `layers` are the recorded modules by name; `real` says whether the batch holds records. Layers may be called
    inside the model's own forward only: what is done outside of it would go unchecked.
    """

    model: nn.Module
    layers: Sequence[tuple[str, nn.Module]]
    real: Callable[[], bool] = lambda: True
    waiting: bool = True
    _axes: bool = True
    _inside: bool = False
    _busy: bool = False
    _handles: list[Any] = field(default_factory=list)

    def attach(self, *, guard: bool = False) -> None:
        """Watch the model's calls; with `guard` those of its layers too."""
        self._handles.append(self.model.register_forward_pre_hook(self._enter, with_kwargs=True))
        self._handles.append(self.model.register_forward_hook(self._leave, always_call=True))
        if guard:
            for name, module in self.layers:
                self._handles.append(module.register_forward_pre_hook(partial(self._guard, name)))

    def detach(self) -> None:
        """Stop watching."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def called(self, name: str) -> None:
        """A layer is being called."""
        if not self._inside and self._active:
            raise RecordError(
                f"{name} was called outside the model's own forward, where nothing checks that records stay apart: "
                "call the model itself (not its forward or its parts), put what you do into its forward, or pass "
                "check_records=False if you know that nothing mixes records"
            )

    @property
    def _active(self) -> bool:
        return self.model.training and torch.is_grad_enabled() and not self._busy

    def _guard(self, name: str, module: nn.Module, args: Any) -> None:
        self.called(name)

    def _enter(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.waiting and self._active and self.real():
            self._busy = True
            try:
                self.waiting = not self._passed(args, kwargs)
            finally:
                self._busy = False
        self._inside = True

    def _leave(self, model: nn.Module, args: Any, answer: Any) -> None:
        self._inside = False

    # How.

    def _passed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether all was checked; raises RecordError where records mix."""
        n = next((len(value) for value in _tensors([args, kwargs]) if value.ndim), None)
        if n is None:
            raise RecordError(
                "the model was called without a tensor whose first axis is the record, so that nothing can be checked: "
                "pass tensors (or lists and dicts of them), or check_records=False"
            )
        if n == 0 or (n == 1 and not self._axes):
            return False
        versions = {name: p._version for name, p in self.model.named_parameters()}
        run = partial(self._run, args, kwargs, n)
        last = n - 1
        whole, alone = run([*range(n)] if n > 1 else [0, 0], last, False), run([last], 0, False)
        self._axes = False
        _compare_axes(whole, alone, max(n, 2))
        if n > 1:
            half = torch.is_autocast_enabled(next(self.model.parameters()).device.type)
            _compare(whole, alone, 10 * _NEAR if half else _NEAR)
            for row in (0, last):
                _compare(run([*range(n)], row, True), run([row] * n, row, True), _SAME)
        moved = [name for name, p in self.model.named_parameters() if p._version != versions[name]]
        if moved:
            raise RecordError(f"the forward pass changes {', '.join(moved)} in place: its records would leave traces")
        return n > 1

    def _run(self, args: Any, kwargs: Any, n: int, rows: list[int], row: int, train: bool) -> list[Seen]:
        """What layers and caller get for the given row of a batch of the given records."""
        found: list[Seen] = []

        def see(name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
            values = _tensors([args, kwargs])
            size = next((len(value) for value in values if value.ndim), None)
            found.append(Seen(name, size, _row(values, row, len(rows))))

        handles = [m.register_forward_pre_hook(partial(see, name), with_kwargs=True) for name, m in self.layers]
        try:
            with torch.no_grad(), _undone(self.model):
                if not train:
                    self.model.eval()
                given = _picked([args, kwargs], n, rows)
                answer = self.model(*given[0], **given[1])
        finally:
            for handle in handles:
                handle.remove()
        return [*found, Seen("the caller", None, _row(_tensors(answer), row, len(rows)))]


def _compare_axes(whole: list[Seen], alone: list[Seen], n: int) -> None:
    for one, two in _pairs(whole, alone):
        if one.rows is not None and (one.rows, two.rows) != (n, 1):
            raise RecordError(
                f"{one.where} saw {one.rows} and {two.rows} rows for batches of {n} and 1 records: the first axis of "
                "its input must be the record; expand shared inputs (such as positions) to the batch, and do not fold "
                "other axes into the first"
            )


def _compare(first: list[Seen], second: list[Seen], tolerance: float) -> None:
    for one, two in _pairs(first, second):
        for a, b in zip(one.tensors, two.tensors, strict=False):
            allowed = 10 * tolerance if a.dtype in _HALF and tolerance == _NEAR else tolerance
            size = float(a.abs().amax().nan_to_num()) if a.numel() else 0.0
            if a.shape != b.shape or not torch.allclose(a, b, rtol=allowed, atol=allowed * size / 10, equal_nan=True):
                raise RecordError(
                    f"what {one.where} gets for one record depends on the others of its batch: replace what mixes "
                    "records (statistics over the batch, attention across it)"
                )


def _pairs(first: list[Seen], second: list[Seen]) -> Iterator[tuple[Seen, Seen]]:
    if [one.where for one in first] != [one.where for one in second]:
        raise RecordError("which layers run for one record depends on the others of its batch: run the same for all")
    return zip(first, second, strict=True)


@contextmanager
def _undone(model: nn.Module) -> Iterator[None]:
    """Modes, buffers and random states as they were before."""
    modes = {module: module.training for module in model.modules()}
    buffers = [(module, key, b, b.clone()) for module in modes for key, b in module._buffers.items() if b is not None]
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 (a model may draw from it)
    devices = {p.device for p in model.parameters() if p.is_cuda}
    try:
        with torch.random.fork_rng(devices=list(devices)):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        for module, mode in modes.items():
            module.training = mode
        for module, key, buffer, value in buffers:
            with torch.no_grad():
                module._buffers[key] = buffer.copy_(value)


def _picked(values: Any, n: int, rows: list[int]) -> Any:
    if isinstance(values, Tensor):
        return values[rows] if values.ndim and len(values) == n else values
    if isinstance(values, dict):
        return {key: _picked(value, n, rows) for key, value in values.items()}
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*(_picked(value, n, rows) for value in values))
    if isinstance(values, tuple | list):
        return type(values)(_picked(value, n, rows) for value in values)
    return values


def _row(values: list[Tensor], row: int, n: int) -> list[Tensor]:
    return [v[row].clone() for v in values if v.ndim and len(v) == n and v.is_floating_point()]


def _tensors(values: Any) -> list[Tensor]:
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, tuple | list):
        return [one for part in values for one in _tensors(part)]
    return []
