"""What a guarantee rests on that is not proved: one sentence for each premise, written here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from shapedp.privacy.losses import Loss
from shapedp.sensitivity import Sensitivity

SENTENCES: dict[str, str] = {
    "sensitivity": "The sensitivity set holds all that one person can change: the user vouches for it, since no "
    "neighbour relation was named.",
    "loss": "The privacy loss is that of what is released: it was stated, not computed from a mechanism.",
    "own": "A class from outside this library computes a part of the guarantee: what it says is taken as true.",
    "gradients": "When a record joins or leaves a batch, the clipped gradients of the other records change by at most "
    "2^-22 of the clip on average: torch computes them in float32, and for many networks this is not so. A GPU's "
    "matrix instructions give the same bits for the same operands.",
    "jumps": "When a record joins or leaves a batch, the gradients of the other records do not change at all: this "
    "clip may jump where a gradient changes in its last bits.",
    "places": "The shapes of a batch do not depend on who is in it, and in them what torch computes for a record "
    "follows from that record, its place, the weights and the random numbers alone: the values of other rows decide "
    "neither which kernels run nor what these do for it. The rows of a batch reach the model and the loss in the "
    "loader's order. The data set reads a record by its index and the global random generators alone.",
    "records": "No record changes what another one adds: the loss is the mean (or the sum) of one loss per record, and "
    "the model, the collate function and the loop mix no records, and the model keeps none, beyond what the check on "
    "made-up records can show.",
    "persons": "Each person's records are those that the training was told (owner=), and the rows of a batch reach the "
    "model and the loss in the loader's order; where another sentence speaks of records, it means persons as well.",
    "unchecked": "No record changes what another one adds in the model, in the collate function, in the loss or in "
    "the loop, and the model keeps nothing of a record in buffers or attributes: the check was switched off.",
    "draws": "Random numbers of the model and the loader (dropout, augmentation) come from the global generators of "
    "torch, NumPy and Python, which run on secret states there; neither a generator of the model's own nor the loop "
    "draws any by a record's place in the batch.",
    "blanks": "A row of zeros counts in the query as a row that is not there: sampling under zero-out takes one for "
    "the other, so nothing that leaves may show how many rows were drawn.",
    "number": "The number of records (of persons, with owner=) is public: the plan states it, and batches are drawn by "
    "a rate from it, which is the same with and without the record that joins or leaves.",
    "rare": "Nothing happens whose chance is below 2^-128 a step: a draw of so many records that the room for rounding "
    "is too small, or noise kept from earlier steps that no longer fits its integers.",
    "gpu": "Noise drawn in float32 on a GPU follows the normal law: it does so to about 2^-20 only.",
}
UNSTATED = ("This certificate was written without its assumptions: verify it to see what it rests on.",)


def known(premises: Iterable[str]) -> tuple[str, ...]:
    """The names of premises, each once, in the order of `SENTENCES`; refuses others."""
    given = set(premises)
    if not given <= SENTENCES.keys():
        raise ValueError(f"premises must be among {', '.join(SENTENCES)}, got {', '.join(sorted(map(str, given)))}")
    return tuple(name for name in SENTENCES if name in given)


def premises_of(subject: Any) -> tuple[str, ...]:
    """The names of the unproved premises of a mechanism, a plan or a loss, each once."""
    return known(_premises(subject))


def assumptions_of(subject: Any) -> tuple[str, ...]:
    """A sentence for each unproved premise of a mechanism, a plan or a loss; empty where all is computed.

    Guarantee: what is built from parts rests on what each of them rests on. What a user vouches for in words (of a
    plan: `vouched`) comes last.

    Parameters: a mechanism, a plan, a loss or a sensitivity set.
    Returns: a tuple of sentences.

    Example:
        >>> from shapedp import L2
        >>> assumptions_of(L2(1.0, dim=2, adjacency="replace")), len(assumptions_of(L2(1.0, dim=2)))
        ((), 1)
    """
    return (*dict.fromkeys((*(SENTENCES[name] for name in premises_of(subject)), *_vouched(subject))),)


def _premises(subject: Any) -> Iterator[str]:
    """Those of a mechanism, a plan or a loss, and of the laws, sets, losses and steps that it consists of."""
    ours = type(subject).__module__.split(".")[0] == "shapedp"
    if isinstance(subject, Loss):
        yield "loss"
    if not isinstance(subject, tuple) and not ours:
        yield "own"
    yield from getattr(subject, "premises", ())
    if isinstance(subject, Sensitivity):
        if subject.adjacency is None:
            yield "sensitivity"
        return
    for value in _parts(subject):
        yield from _premises(value)


def _vouched(subject: Any) -> Iterator[str]:
    """What a user vouches for in words, in the subject and in all that it consists of."""
    yield from getattr(subject, "vouched", ())
    if not isinstance(subject, Sensitivity):
        for value in _parts(subject):
            yield from _vouched(value)


def _parts(subject: Any) -> Iterator[Any]:
    """What a mechanism, a plan or a loss of this library, or a tuple, consists of."""
    values: Iterable[Any] = subject if isinstance(subject, tuple) else ()
    if type(subject).__module__.split(".")[0] == "shapedp" and is_dataclass(subject):
        values = (getattr(subject, field.name, None) for field in fields(subject))
    for value in values:
        if isinstance(value, tuple | Sensitivity | Loss) or is_dataclass(value) or _has_loss(value):
            yield value


def _has_loss(value: Any) -> bool:
    """Whether something has a privacy loss, which is not computed here."""
    return hasattr(type(value), "loss") or "loss" in getattr(value, "__dict__", ())
