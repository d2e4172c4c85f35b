"""shapedp ledger: a privacy budget kept in a database."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapedp.boundary.files import read_bytes
from shapedp.boundary.values import printable
from shapedp.cli.files import Vector, read_json, read_vector, suffix, write_json, write_vector
from shapedp.cli.options import add_claim, add_json, add_no_header
from shapedp.cli.output import DONE, REFUSED, WRONG_INPUT, print_json, table
from shapedp.cli.paths import beside, writing
from shapedp.mechanisms import Additive
from shapedp.numerics.checks import vector as checked_vector
from shapedp.sensitivity import ADJACENCIES

if TYPE_CHECKING:
    from shapedp.accounting.ledger import Entry, Head, Ledger, Spend, Status

_LONGEST_KEY = 1 << 16  # bytes
_WHERE = "the ledger: a SQLite file, or a URL such as postgresql://user@host/name"


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "ledger",
        help="keep a privacy budget in a database, and never overspend it",
        description="A privacy budget per dataset. A spend is counted before its release; one that would pass "
        "the cap is refused (exit code 3) and nothing is released.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _init(actions)
    _status(actions)
    _spend(actions)
    _history(actions)
    _head(actions)
    _adopt(actions)
    _export(actions)


def _action(actions: Any, name: str, work: Callable[[argparse.Namespace], int], text: str) -> Any:
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("ledger", help=_WHERE)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds to wait for others (default 60)")
    add_json(parser)
    parser.set_defaults(run=lambda options: _guarded(work, options))
    return parser


def _guarded(work: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """A ledger's errors as one line and an exit code."""
    from shapedp.accounting.ledger import BudgetExceededError, LedgerError, SpendRefusedError

    try:
        return work(options)
    except (BudgetExceededError, SpendRefusedError) as refusal:
        print(f"shapedp: refused: {printable(str(refusal))}", file=sys.stderr)
        return REFUSED
    except LedgerError as error:
        print(
            "\n".join(map(printable, [f"shapedp: error: {error}", *getattr(error, "__notes__", [])])), file=sys.stderr
        )
        return WRONG_INPUT


def _open(options: argparse.Namespace) -> Ledger:
    from shapedp.accounting.ledger import Ledger, LedgerUnavailableError
    from shapedp.accounting.ledger.store import Store

    try:
        return Ledger.open(options.ledger, timeout=options.timeout)
    except LedgerUnavailableError as error:
        store = Store.at(options.ledger, timeout=options.timeout)
        if not store.is_sqlite or Path(store.name).exists():
            raise
        raise LedgerUnavailableError(f"{store.name}: no such ledger: make it with shapedp ledger init") from error


def _init(actions: Any) -> None:
    parser = _action(actions, "init", _run_init, "add a dataset and its cap, in a new or an existing ledger")
    parser.add_argument("--dataset", required=True, help="the name of the dataset")
    add_claim(parser)
    parser.add_argument("--adjacency", choices=ADJACENCIES, required=True, help="what neighbours are")
    parser.add_argument(
        "--rule",
        choices=("gaussian", "renyi", "basic"),
        help="the filter (default: gaussian, and basic where delta is 0)",
    )
    parser.add_argument("--orders", help="Renyi orders, separated by commas (rule renyi)")
    parser.add_argument(
        "--failure-share", type=float, default=0.0, help="part of delta kept for failure events (default 0)"
    )
    parser.add_argument(
        "--vouching",
        action="store_true",
        help="also take certificates that cannot be computed again, where a named person vouches for them",
    )


def _run_init(options: argparse.Namespace) -> int:
    from shapedp.accounting.ledger import Ledger

    ledger = Ledger.create(
        options.ledger,
        dataset=options.dataset,
        epsilon=options.epsilon,
        delta=options.delta,
        adjacency=options.adjacency,
        rule=options.rule,
        orders=_orders(options.orders),
        failure_share=options.failure_share,
        vouching=options.vouching,
        timeout=options.timeout,
    )
    return _print_status([ledger.status(options.dataset)], options)


def _orders(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--orders must be numbers separated by commas, got {text!r}") from None


def _status(actions: Any) -> None:
    parser = _action(actions, "status", _run_status, "show what is spent of each cap")
    parser.add_argument("--dataset", help="one dataset (default: all)")
    parser.add_argument("--check", action="store_true", help="also read every entry and compare with the totals")
    parser.add_argument(
        "--head",
        type=Path,
        help="a file that `ledger head` wrote: find a ledger that was set back since (with --check)",
    )
    _add_key(parser, "the key that the heads in --head were signed with")


def _run_status(options: argparse.Namespace) -> int:
    from shapedp.accounting.ledger import LedgerCorruptedError

    if (options.head is not None and not options.check) or (options.key is not None and options.head is None):
        raise ValueError("--key belongs to --head, and --head to --check")
    ledger = _open(options)
    names = ledger.datasets() if options.dataset is None else (options.dataset,)
    if not options.check:
        return _print_status([ledger.status(name) for name in names], options)
    kept, key = _kept_heads(options.head), _key(options.key)
    missing = [name for name in kept if name not in names and options.dataset is None]
    if missing:
        raise LedgerCorruptedError(f"the ledger has no dataset {missing[0]!r} any more, which the kept heads name")
    return _print_status([ledger.check(name, head=kept.get(name), key=key) for name in names], options)


def _add_key(parser: Any, text: str) -> None:
    parser.add_argument("--key", type=Path, help=f"{text}: a file of 16 bytes or more")


def _key(path: Path | None) -> bytes | None:
    return None if path is None else read_bytes(path, _LONGEST_KEY)


def _kept_heads(path: Path | None) -> dict[str, Head]:
    from shapedp.accounting.ledger import Head

    if path is None:
        return {}
    data = read_json(path)
    if data.get("kind") != "ledger-heads" or not isinstance(data.get("heads"), list):
        raise ValueError(f"{path}: not the heads of a ledger, as `shapedp ledger head` writes them")
    return {head.dataset: head for head in map(Head.from_json, data["heads"])}


def _head(actions: Any) -> None:
    text = "write where each dataset stands, to be kept elsewhere: a ledger set back later no longer agrees with it"
    parser = _action(actions, "head", _run_head, text)
    parser.add_argument("--dataset", help="one dataset (default: all)")
    parser.add_argument("-o", "--output", type=Path, help="where to (default: standard output)")
    _add_key(parser, "sign the heads (HMAC-SHA256) with this key")
    writing(parser, "output")


def _run_head(options: argparse.Namespace) -> int:
    ledger, key = _open(options), _key(options.key)
    names = ledger.datasets() if options.dataset is None else (options.dataset,)
    heads = {"kind": "ledger-heads", "heads": [ledger.head(name, key=key).to_json() for name in names]}
    if options.output is None:
        print_json(heads)
    else:
        write_json(options.output, heads)
        print(f"written    {options.output}")
    return DONE


def _adopt(actions: Any) -> None:
    text = "spend from a SQLite ledger that was copied, restored or renamed, once no other copy will be spent from"
    _action(actions, "adopt", _run_adopt, text)


def _run_adopt(options: argparse.Namespace) -> int:
    from shapedp.accounting.ledger import Ledger

    _open(options)
    ledger = Ledger.adopt(options.ledger, timeout=options.timeout)
    return _print_status([ledger.status(name) for name in ledger.datasets()], options)


def _print_status(statuses: list[Status], options: argparse.Namespace) -> int:
    if options.json:
        print_json([status.to_json() for status in statuses])
        return DONE
    headers = ("dataset", "epsilon", "delta", "neighbours", "rule", "spent", "entries", *statuses[0].states)
    rows = [
        (
            status.dataset,
            f"{status.filter.epsilon:g}",
            f"{status.filter.delta:g}",
            status.adjacency,
            status.filter.rule,
            f"{status.spent:.4%}",
            str(status.entries),
            *(str(number) for number in status.states.values()),
        )
        for status in statuses
    ]
    print(table(headers, rows))
    return DONE


def _spend(actions: Any) -> None:
    parser = _action(
        actions,
        "spend",
        _run_spend,
        "reserve budget and release a vector under it; without an input the spend is only counted, "
        "for a release made elsewhere",
    )
    parser.add_argument("mechanism", type=Path, help="a mechanism written by calibrate")
    parser.add_argument("input", type=Path, nargs="?", help="the true answer: csv, npy or parquet")
    parser.add_argument("-o", "--output", type=Path, help="where the noisy answer goes")
    parser.add_argument("--dataset", required=True, help="whose budget")
    parser.add_argument("--column", help="the column to release, where the file has several")
    add_no_header(parser)
    parser.add_argument("--count", type=int, default=1, help="number of releases, without an input (default 1)")
    writing(parser, "output", certified=True)


def _run_spend(options: argparse.Namespace) -> int:
    mechanism = Additive.from_json(read_json(options.mechanism))
    if (options.input is None) != (options.output is None):
        raise ValueError("give an input and --output, or neither to count a release made elsewhere")
    if options.input is None:
        with _open(options).spend(options.dataset, mechanism, options.count) as spend:
            pass
        return _print_spend(spend, {}, options)
    if options.count != 1:
        raise ValueError("--count belongs to a spend without an input: one input is one release")
    certificate = beside(options)
    suffix(options.output)
    if not options.output.parent.is_dir():
        raise FileNotFoundError(f"{options.output.parent}: no such folder")
    vector = read_vector(options.input, options.column, header=False if options.no_header else None)
    if checked_vector("input", vector.values).size != mechanism.law.dim:
        raise ValueError(f"the input must have {mechanism.law.dim} entries, got {vector.values.size}")
    with _open(options).spend(options.dataset, mechanism) as spend:
        release = spend.release(vector.values)
        write_json(certificate, release.certificate.to_json())
        write_vector(options.output, Vector(release.value, vector.name))
    return _print_spend(spend, {"output": str(options.output), "certificate": str(certificate)}, options)


def _print_spend(spend: Spend, written: dict[str, str], options: argparse.Namespace) -> int:
    if options.json:
        print_json({"dataset": spend.dataset, "entry": spend.entry, "count": spend.count, **written})
    else:
        print(f"spent      entry {spend.entry} of {spend.dataset!r}, {spend.count} release(s)")
        for name, path in written.items():
            print(f"{name:<10} {path}")
    return DONE


def _history(actions: Any) -> None:
    parser = _action(actions, "history", _run_history, "list the entries of a dataset")
    parser.add_argument("--dataset", required=True, help="whose entries")
    parser.add_argument("--last", type=int, help="only so many of the latest")


def _run_history(options: argparse.Namespace) -> int:
    entries: list[Entry] = list(_open(options).history(options.dataset, last=options.last))
    if options.json:
        print_json([entry.to_json() for entry in entries])
        return DONE
    rows = [
        (
            str(entry.sequence),
            entry.time,
            entry.state,
            str(entry.count),
            f"({entry.certificate['epsilon']:g}, {entry.certificate['delta']:g})",
            entry.certificate["method"] + (" (vouched for)" if "vouched_by" in entry.mechanism else ""),
        )
        for entry in entries
    ]
    print(table(("entry", "time", "state", "count", "claim", "loss"), rows))
    return DONE


def _export(actions: Any) -> None:
    parser = _action(actions, "export", _run_export, "write datasets, entries and certificates as JSON")
    parser.add_argument("--dataset", help="one dataset (default: all)")
    parser.add_argument("-o", "--output", type=Path, help="where to (default: standard output)")
    writing(parser, "output")


def _run_export(options: argparse.Namespace) -> int:
    ledger = _open(options)
    names = ledger.datasets() if options.dataset is None else (options.dataset,)
    data = {
        "kind": "ledger",
        "schema": 1,
        "datasets": [
            {
                **ledger.check(name).to_json(),
                "filter": ledger.status(name).filter.to_json(),
                "history": [entry.to_json() for entry in ledger.history(name)],
            }
            for name in names
        ],
    }
    if options.output is None:
        print_json(data)
    else:
        write_json(options.output, data)
        print(f"written    {options.output}")
    return DONE
