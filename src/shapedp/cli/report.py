"""shapedp report: one self-contained HTML page about a mechanism, certificate, plan, model, ledger or the claims."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapedp.boundary.files import guard
from shapedp.cli.files import read_json
from shapedp.cli.options import add_claim, add_json
from shapedp.cli.output import DONE, REFUSED, WRONG_INPUT, print_json
from shapedp.cli.paths import writing

if TYPE_CHECKING:
    from shapedp.report import Page

_SQLITE = b"SQLite format 3\0"


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "report",
        help="one HTML page: what is promised, the bracket, the attacker, the noise, how to recheck",
        description="Write one self-contained page about FILE: a mechanism, a certificate, a plan, a fitted model "
        "(JSON), or a ledger (a SQLite file or a database URL); or about the claims register (--claims). "
        "Exit code 3 if what it shows is not certified, or contradicted by an audit.",
        epilog="example: shapedp report mechanism.json -o mechanism.html; "
        "shapedp report plan.json --delta 1e-5; shapedp report budget.db; shapedp report --claims -o claims.html",
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="what the page is about")
    parser.add_argument("-o", "--output", type=Path, metavar="PAGE", help="the page (default: FILE's name with .html)")
    parser.add_argument(
        "--audit",
        type=Path,
        action="append",
        default=[],
        metavar="JSON",
        help="an audit of it, from shapedp audit --json",
    )
    parser.add_argument(
        "--certificate",
        type=Path,
        metavar="JSON",
        help="the model's certificate (default: beside it, as fit writes it)",
    )
    add_claim(parser, required=False)
    parser.add_argument("--dataset", help="one data set of the ledger (default: all)")
    parser.add_argument("--claims", action="store_true", help="the register of published statements instead of a file")
    parser.add_argument("--verify", action="store_true", help="with --claims: recompute every statement first")
    add_json(parser)
    writing(parser, "output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make the page, write it, say where it is."""
    _check(options)
    page = _claims(options) if options.claims else _of_file(options)
    if page is None:
        return WRONG_INPUT
    target = page.save(_target(options))
    size = target.stat().st_size
    if options.json:
        print_json({"page": str(target), "title": page.title, "verdict": page.verdict, "bytes": size})
    else:
        print(f"page       {page.title}")
        if page.verdict is not None:
            print(f"verdict    {page.verdict}")
        print(f"written    {target} ({size / 1000:.0f} kB)")
    return DONE if page.verdict in (None, "certified") else REFUSED


def _check(options: argparse.Namespace) -> None:
    if (options.file is None) != options.claims:
        raise ValueError("name a FILE, or pass --claims for the register of published statements")
    if options.verify and not options.claims:
        raise ValueError("--verify goes with --claims: the page of a file is always computed anew")
    files = [] if options.file is None or "://" in options.file else [Path(options.file), _certificate(options)]
    guard([*options.audit, *files], [_target(options)])


def _certificate(options: argparse.Namespace) -> Path:
    return Path(options.certificate or Path(options.file).with_suffix(".certificate.json"))


def _target(options: argparse.Namespace) -> Path:
    if options.output is not None:
        return Path(options.output)
    if options.claims:
        return Path("claims.html")
    if "://" in options.file:
        raise ValueError("name the page with -o: a database's address is no file name")
    return Path(options.file).with_suffix(".html")


def _of_file(options: argparse.Namespace) -> Page | None:
    from shapedp import report

    path = Path(options.file)
    if "://" in options.file or _is_database(path):
        return _of_ledger(options)
    if options.dataset is not None:
        raise ValueError("--dataset belongs to a ledger")
    claim = {name: getattr(options, name) for name in ("epsilon", "delta") if getattr(options, name) is not None}
    data, audits = read_json(path), [read_json(audit) for audit in options.audit]
    model = data.get("kind") in report.MODELS
    if claim and data.get("kind") != "plan":
        raise ValueError("--epsilon and --delta are the claim about a plan: this file states its own")
    if not model and options.certificate is not None:
        raise ValueError("--certificate belongs to a model: this file is none")
    if not model:
        return report.of_json(data, file=path.name, audits=audits, **claim)
    beside = _certificate(options)
    if not beside.is_file():
        raise FileNotFoundError(f"{beside}: no such file; name the model's certificate with --certificate")
    fitted = report.Fitted.from_json(data, read_json(beside))
    return report.of(fitted, file=path.name, certificate=beside.name, audits=audits)


def _of_ledger(options: argparse.Namespace) -> Page | None:
    from shapedp import report
    from shapedp.ledger import Ledger, LedgerError

    if options.audit or options.certificate or options.epsilon is not None or options.delta is not None:
        raise ValueError("--audit, --certificate, --epsilon and --delta do not apply to a ledger")
    try:
        ledger = Ledger.open(options.file)
        return report.of(ledger, dataset=options.dataset)
    except LedgerError as error:
        print(f"shapedp: error: {error}", file=sys.stderr)
        return None


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(_SQLITE)) == _SQLITE


def _claims(options: argparse.Namespace) -> Page:
    from shapedp.papers.register import CLAIMS, check
    from shapedp.report import claims_page

    if options.audit or options.dataset or options.epsilon is not None or options.delta is not None:
        raise ValueError("--claims takes no --audit, --dataset, --epsilon or --delta")
    if not options.verify:
        return claims_page()
    return claims_page(findings=[check(claim) for claim in _shown(CLAIMS.values())])


def _shown(claims: Iterable[Any]) -> Iterable[Any]:
    """The claims, named one by one on a terminal."""
    for claim in claims:
        if sys.stderr.isatty():
            print(f"\r{claim.id:<60}", end="\r", file=sys.stderr, flush=True)
        yield claim
