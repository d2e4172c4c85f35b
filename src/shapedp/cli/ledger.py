"""shapedp ledger: a privacy budget kept in a database."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shapedp.boundary.documents import read
from shapedp.boundary.files import check_input
from shapedp.boundary.values import WORDS
from shapedp.cli.options import parts
from shapedp.cli.output import save_or_show, show, table
from shapedp.cli.paths import beside
from shapedp.cli.release import Answer
from shapedp.ledger import Entry, Head, Ledger, LedgerCorruptedError, Spend, Status
from shapedp.ledger.schema import STATES
from shapedp.mechanisms import Additive
from shapedp.numerics.checks import vector as checked_vector

_CAP = ("dataset", "epsilon", "delta", "adjacency", "rule", "failure_share", "vouching", "timeout")


def _open(options: argparse.Namespace) -> Ledger:
    return Ledger.open(options.ledger, timeout=options.timeout)


def _datasets(ledger: Ledger, options: argparse.Namespace) -> Sequence[str]:
    """The data set that was named, or all of them."""
    return ledger.datasets() if options.dataset is None else (options.dataset,)


def init(options: argparse.Namespace) -> int:
    """Add a dataset and its cap."""
    numbers = "numbers separated by commas"
    orders = None if options.orders is None else parts("orders", options.orders, float, ",", numbers)
    given = {name: getattr(options, name) for name in _CAP}
    if options.person is not None or options.each_row_a_person:
        given["person"] = options.person
    ledger = Ledger.create(options.ledger, orders=orders, **given)
    return _print_status([ledger.status(options.dataset)], options)


def status(options: argparse.Namespace) -> int:
    """What is spent of each cap."""
    if (options.head is not None and not options.check) or (options.key is not None and options.head is None):
        raise ValueError("--key belongs to --head, and --head to --check")
    ledger = _open(options)
    names = _datasets(ledger, options)
    if not options.check:
        return _print_status([ledger.status(name) for name in names], options)
    kept, key = _kept_heads(options.head), _key(options.key)
    missing = [name for name in kept if name not in names and options.dataset is None]
    if missing:
        raise LedgerCorruptedError(f"the ledger has no dataset {missing[0]!r} any more, which the kept heads name")
    return _print_status([ledger.check(name, head=kept.get(name), key=key) for name in names], options)


def _key(path: Path | None) -> bytes | None:
    if path is None:
        return None
    check_input(path)
    return path.read_bytes()


def _kept_heads(path: Path | None) -> dict[str, Head]:
    if path is None:
        return {}
    data = read(path)
    if data.get("kind") != "ledger-heads" or not isinstance(data.get("heads"), list):
        raise ValueError(f"{path}: not the heads of a ledger, as `shapedp ledger head` writes them")
    return {head.dataset: head for head in map(Head.from_json, data["heads"])}


def head(options: argparse.Namespace) -> int:
    """Where each dataset stands, to be kept elsewhere."""
    ledger, key = _open(options), _key(options.key)
    names = _datasets(ledger, options)
    heads = {"kind": "ledger-heads", "heads": [ledger.head(name, key=key).to_json() for name in names]}
    return save_or_show(options.output, heads)


def adopt(options: argparse.Namespace) -> int:
    """Take over a ledger that was copied, restored or renamed."""
    _open(options)
    ledger = Ledger.adopt(options.ledger, timeout=options.timeout)
    return _print_status([ledger.status(name) for name in ledger.datasets()], options)


def _print_status(statuses: list[Status], options: argparse.Namespace) -> int:
    headers = ("dataset", "epsilon", "delta", "neighbours", "person", "rule", "spent", "entries", *STATES)
    return show(options, [status.to_json() for status in statuses], table(headers, map(_status_row, statuses)))


def _status_row(status: Status) -> tuple[object, ...]:
    cap = (f"{status.filter.epsilon:g}", f"{status.filter.delta:g}", status.adjacency)
    counted = (_unit(status.unit), status.filter.rule, f"{status.spent:.4%}", status.entries)
    return (status.dataset, *cap, *counted, *status.states.values())


def _unit(unit: str) -> str:
    """Who a person is, in a word."""
    return {"": "not declared", "row": "each row"}.get(unit) or unit.removeprefix("person:")


def spend(options: argparse.Namespace) -> int:
    """Reserve budget, and release a vector under it where one is given."""
    mechanism = Additive.from_json(read(options.mechanism))
    if (options.input is None) != (options.output is None):
        raise ValueError("give an input and --output, or neither to count a release made elsewhere")
    if options.input is None:
        if options.records or options.column is not None or options.columns is not None:
            raise ValueError("--records, --column and --columns belong to a spend with an input")
        person = {} if options.person is None else {"person": options.person}
        with _open(options).spend(options.dataset, mechanism, options.count, **person, **_words(options)) as spend:
            pass
        return _print_spend(spend, {}, options)
    if options.count != 1:
        raise ValueError("--count belongs to a spend without an input: one input is one release")
    certificate = beside(options)
    person = {"person": options.person} if options.records else {}
    ledger = _open(options).stating(**person, **_words(options))
    spend = ledger.spend(options.dataset, mechanism)  # refuses what it never takes before a row is read
    answer = Answer.of(mechanism, options)
    values = answer.vector.values
    if checked_vector("input", np.reshape(values, -1)).size != mechanism.law.dim:
        raise ValueError(f"the input must have {mechanism.law.dim} entries, got {values.size}")
    with spend:
        answer.write(spend.release(values), options.output, certificate)
    return _print_spend(spend, {"output": str(options.output), "certificate": str(certificate)}, options)


def _words(options: argparse.Namespace) -> dict[str, str]:
    return {name: getattr(options, name) for name in WORDS}


def _print_spend(spend: Spend, written: dict[str, str], options: argparse.Namespace) -> int:
    data = {"dataset": spend.dataset, "entry": spend.entry, "count": spend.count, **written}
    line = f"spent      entry {spend.entry} of {spend.dataset!r}, {spend.count} release(s)"
    return show(options, data, line, *(f"{name:<10} {path}" for name, path in written.items()))


def history(options: argparse.Namespace) -> int:
    """The entries of a dataset."""
    entries = list(_open(options).history(options.dataset, last=options.last))
    headers = ("entry", "time", "state", "count", "claim", "loss", "person", "label", "author", "note")
    return show(options, [entry.to_json() for entry in entries], table(headers, map(_entry_row, entries)))


def _entry_row(entry: Entry) -> tuple[object, ...]:
    claim = f"({entry.certificate['epsilon']:g}, {entry.certificate['delta']:g})"
    loss = entry.certificate["method"] + (" (vouched for)" if "vouched_by" in entry.mechanism else "")
    said = (_unit(entry.unit), entry.label, entry.author, shortened(entry.note))
    return (entry.sequence, entry.time, entry.state, entry.count, claim, loss, *said)


def shortened(note: str, most: int = 60) -> str:
    """One line of a note."""
    line = " ".join(note.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def export(options: argparse.Namespace) -> int:
    """Datasets, entries and certificates as JSON."""
    ledger = _open(options)
    datasets = [_exported(ledger, name) for name in _datasets(ledger, options)]
    return save_or_show(options.output, {"kind": "ledger", "schema": 1, "datasets": datasets})


def _exported(ledger: Ledger, name: str) -> dict[str, Any]:
    status, history = ledger.check(name), [entry.to_json() for entry in ledger.history(name)]
    return {**status.to_json(), "filter": status.filter.to_json(), "history": history}
