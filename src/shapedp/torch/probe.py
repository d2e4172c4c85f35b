"""Checks, on made-up records and before the first step, that a model mixes no records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from shapedp.torch.detour import RecordError
from shapedp.torch.madeup import filled, leaves, made_record, made_up, plans
from shapedp.torch.refusals import refusal
from shapedp.torch.rules import shared_mask
from shapedp.torch.secret import kept_states

_SAME = 1e-4  # between two batches of one size, whose arithmetic is the same
_PADDED = 1e-4  # between batches of one size, padded to different lengths: masked places change sums in their last bits
_NEAR = 1e-2  # between batches of two sizes; ten times that in half precision
_ROWS = 4  # of made-up records
_SEEDS = (1, 11, 21)  # of records to collate: by chance one of them may be answered as another is
_HALF = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Seen:
    """What a layer, or the caller, got for some records of a batch."""

    where: str
    rows: list[int]
    tensors: list[Tensor]


@dataclass(eq=False)
class Probe:
    """Runs the model, without gradients, on made-up records before the first batch it is trained on.

    They have the types and shapes of that batch and none of its values, so that no finding depends on a record.

    The model's output for the first and the last record must not change when all others are replaced by copies of it
    (in training mode, with the same random numbers), nor when it is alone (in evaluation mode). What each recorded
    layer receives is compared too, and its first axis must follow the batch. Buffers and attributes that are tensors
    must end up the same whatever the records are. A batch of one record shows the axes only; the comparison then
    waits for a larger batch.

    A `collate` function of the user's own is run on made-up records of the shape of `example()`, and on longer ones:
    what the model answers for a record must not depend on what it was collated with (evaluation mode, padding cut
    off). That needs the model to be called with what the loader gave; otherwise it is left out.

    With `exact` all batches have one shape: what a row gets must then be the same to the last bit, in that shape.

    `layers` are the recorded modules by name; `on` says whether anything is checked; `real` says whether the batch
    holds records. Layers may be called inside the model's own forward only: what is done outside of it would go
    unchecked.
    """

    model: nn.Module
    layers: Sequence[tuple[str, nn.Module]]
    on: bool = True
    real: Callable[[], bool] = lambda: True
    collate: Callable[[list[Any]], Any] | None = None
    example: Callable[[], Any] | None = None
    exact: bool = False
    _axes: bool = True
    _inside: bool = False
    _refused: bool = False
    _batch: Any = None
    _kept: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.waiting = self.on

    def show(self, batch: Any) -> None:
        """What the loader hands out."""
        self._batch = batch if self.waiting and self.collate is not None else None

    def called(self, name: str) -> None:
        """A layer is being called."""
        if self.on and not self._inside:
            raise RecordError(refusal("called-outside-forward", name=name))

    @contextmanager
    def around(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        """A call of the model, in training; raises RecordError where records mix.

        So it does where the model takes the batch, but not made-up records of the same shape.
        """
        self._inside = True
        try:
            if self.waiting and self.real():
                self.waiting = not self._passed(args, kwargs)
                if not self.waiting:
                    self.collate = self.example = None  # they lead to the records
            del args, kwargs
            yield
        finally:
            self._inside, self._batch = False, None
        if self._refused:
            raise RecordError(refusal("made-up-not-taken"))

    # How.

    def _passed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether all was checked; raises RecordError where records mix."""
        n = next((len(value) for value in leaves([args, kwargs]) if value.ndim), None)
        if n is None:
            raise RecordError(refusal("no-record-axis"))
        if n == 0 or (n == 1 and not self._axes):
            return False
        versions = {name: p._version for name, p in self.model.named_parameters()}
        for plain in (False, True):
            try:
                self._run_all([args, kwargs], n, plain)
                break
            except RecordError:
                raise
            except Exception:  # of the model: it may not take such values
                self._refused = plain
        self._axes = False
        moved = [name for name, p in self.model.named_parameters() if p._version != versions[name]]
        if moved:
            raise RecordError(f"the forward pass changes {', '.join(moved)} in place: its records would leave traces")
        if n > 1 and self.collate is not None and self.example is not None and not self._refused:
            self._check_collate([args, kwargs], n, self.collate, self.example())
        return n > 1

    def _run_all(self, given: list[Any], n: int, plain: bool) -> None:
        size = max(n, 2) if self.exact or n < 2 else _ROWS
        last = size - 1
        made = [
            made_up(one, size, seed, plain) if one.ndim and len(one) == n else None
            for seed, one in enumerate(leaves(given))
        ]

        run = partial(self._run, given, made)
        whole = run([*range(size)] if n > 1 else [0, 0], last, False)
        alone = run([last if n > 1 else 0], 0, False)
        _compare_axes(whole, alone, size)
        if n > 1:
            half = torch.is_autocast_enabled(next(self.model.parameters()).device.type)
            _compare(whole, alone, 10 * _NEAR if half else _NEAR)
            for row in (0, last):
                mixed, kept = run([*range(size)], row, True), self._kept
                copies = run([row] * size, row, True)
                _compare(mixed, copies, _SAME)
                if self.exact:
                    _compare_bits(mixed, copies)
                _compare_kept(kept, self._kept)

    def _run(self, given: list[Any], made: list[Any], rows: list[int], row: int, train: bool) -> list[Seen]:
        """What layers and caller get for one row of a batch that holds the given rows of what was made up."""
        found: list[Seen] = []
        n, parts = len(rows), [None if one is None else one[rows] for one in made]

        def see(name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
            mask = shared_mask(module, args, kwargs)
            values = [leaf for leaf in leaves((*args, *kwargs.values())) if leaf is not mask]
            found.append(Seen(name, [len(v) for v in values if v.ndim], [v[row] for v in _floats(values, n)]))

        handles = [m.register_forward_pre_hook(partial(see, name), with_kwargs=True) for name, m in self.layers]
        try:
            answer = self._answer(filled(given, parts), train)
        finally:
            for handle in handles:
                handle.remove()
        return [*found, Seen("the caller", [], [v[row] for v in _floats(leaves(answer), n)])]

    def _answer(self, given: list[Any], train: bool) -> Any:
        with torch.no_grad(), _undone(self.model):
            if not train:
                self.model.eval()
            answer = self.model(*given[0], **given[1])
            self._kept = _held(self.model)
            return answer

    def _check_collate(self, given: list[Any], n: int, collate: Callable[[list[Any]], Any], example: Any) -> None:
        """A record that is collated with others, longer ones too, must be answered as with copies of itself."""
        places = _places(leaves(given), leaves(self._batch), n)
        if places is None:
            return

        def answers(records: list[Any]) -> list[Tensor]:
            with _undone(self.model):
                batch = leaves(collate(records))
            parts = [None if place is None else batch[place] for place in places]
            return _floats(leaves(self._answer(filled(given, parts), False)), len(records))

        half = torch.is_autocast_enabled(next(self.model.parameters()).device.type)
        for longer, seed in itertools.product(plans(example), _SEEDS):
            first = made_record(example, seed)
            others = [made_record(example, seed + k, longer) for k in range(1, _ROWS)]
            try:
                copies, mixed = answers([first] * _ROWS), answers([first, *others])
            except Exception:  # records of other lengths are not taken, or made-up ones at all
                continue
            if not any(_answered(copies, mixed, row, half) for row in range(_ROWS)):
                raise RecordError(refusal("collate-mixes"))


def _places(given: list[Tensor], batch: list[Tensor], n: int) -> list[int | None] | None:
    """Which tensor of the loader's batch each of the model's inputs is; None where one of them is not among them."""
    found: list[int | None] = []
    for one in given:
        place = None
        if one.ndim and len(one) == n:
            place = next((k for k, other in enumerate(batch) if _same(one, other)), None)
            if place is None:
                return None
        found.append(place)
    return found


def _same(one: Tensor, other: Tensor) -> bool:
    same = one.shape == other.shape and torch.equal(one.to("cpu", torch.float64), other.to("cpu", torch.float64))
    return one is other or same


def _floats(values: list[Tensor], n: int) -> list[Tensor]:
    """Copies of those that hold a number for each of n records."""
    return [v.clone() for v in values if v.ndim and len(v) == n and v.is_floating_point()]


def _answered(copies: list[Tensor], mixed: list[Tensor], row: int, half: bool) -> bool:
    """Whether a row of the mixed batch is answered as the record alone, up to padding before or after."""
    return all(
        any(_close(*_cut(a[0], b[row], ends), _NEAR if half or a.dtype in _HALF else _PADDED) for ends in (False, True))
        for a, b in zip(copies, mixed, strict=False)
        if a.ndim == b.ndim
    )


def _cut(a: Tensor, b: Tensor, ends: bool) -> tuple[Tensor, Tensor]:
    """The parts that two tensors share: their beginnings or their ends along each axis."""
    for axis in range(a.ndim):
        size = min(a.shape[axis], b.shape[axis])
        a, b = (t.narrow(axis, t.shape[axis] - size if ends else 0, size) for t in (a, b))
    return a, b


def _compare_axes(whole: list[Seen], alone: list[Seen], n: int) -> None:
    for one, two in _pairs(whole, alone):
        odd = next((sizes for sizes in zip(one.rows, two.rows, strict=False) if sizes != (n, 1)), None)
        if odd is not None:
            raise RecordError(refusal("rows-follow-no-batch", layer=one.where, rows=odd[0], alone=odd[1], n=n))


def _compare(first: list[Seen], second: list[Seen], tolerance: float) -> None:
    for one, two in _pairs(first, second):
        for a, b in zip(one.tensors, two.tensors, strict=False):
            allowed = 10 * tolerance if a.dtype in _HALF and tolerance == _NEAR else tolerance
            if not _close(a, b, allowed):
                raise RecordError(refusal("records-mix", layer=one.where))


def _compare_bits(first: list[Seen], second: list[Seen]) -> None:
    for one, two in _pairs(first, second):
        if not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(one.tensors, two.tensors, strict=True)):
            raise RecordError(refusal("bits-follow-others", layer=one.where))


def _held(model: nn.Module) -> dict[str, Tensor]:
    """Copies of the tensors that leave with a model beside its parameters: buffers, and attributes of its modules."""
    own = {f"{name}.{key}": v for name, m in model.named_modules() for key, v in vars(m).items() if key[0] != "_"}
    held = {**dict(model.named_buffers()), **{name.lstrip("."): v for name, v in own.items()}}
    return {name: v.detach().clone() for name, v in held.items() if isinstance(v, Tensor)}


def _compare_kept(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    """Other records must leave the same behind, to the last bit: an average may move by little."""
    for name, one in first.items():
        other = second.get(name)
        if other is None or one.shape != other.shape or not torch.equal(one.nan_to_num(), other.nan_to_num()):
            raise RecordError(refusal("model-keeps-records", name=name))


def _close(a: Tensor, b: Tensor, allowed: float) -> bool:
    size = float(a.abs().amax().nan_to_num()) if a.numel() else 0.0
    return a.shape == b.shape and torch.allclose(a, b, rtol=allowed, atol=allowed * size / 10, equal_nan=True)


def _pairs(first: list[Seen], second: list[Seen]) -> Iterator[tuple[Seen, Seen]]:
    if [one.where for one in first] != [one.where for one in second]:
        raise RecordError("which layers run for one record depends on the others of its batch: run the same for all")
    return zip(first, second, strict=True)


@contextmanager
def _undone(model: nn.Module) -> Iterator[None]:
    """Modes, buffers and random states as they were before."""
    modes = {module: module.training for module in model.modules()}
    buffers = [(module, key, b, b.clone()) for module in modes for key, b in module._buffers.items() if b is not None]
    devices = {p.device for p in model.parameters() if p.is_cuda}
    try:
        with kept_states(devices):
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode
        for module, key, buffer, value in buffers:
            with torch.no_grad():
                module._buffers[key] = buffer.copy_(value)
