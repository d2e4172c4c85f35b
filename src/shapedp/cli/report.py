"""shapedp report: one self-contained HTML page about a mechanism, certificate, plan, model, ledger or the claims."""

from __future__ import annotations

import argparse
from pathlib import Path

from shapedp import report as pages
from shapedp.boundary.documents import read
from shapedp.boundary.files import guard
from shapedp.cli.claims import checked
from shapedp.cli.codes import DONE, REFUSED
from shapedp.cli.options import claim
from shapedp.cli.output import show
from shapedp.cli.paths import BESIDE
from shapedp.papers.register import CLAIMS
from shapedp.report import Page

_SQLITE = b"SQLite format 3\0"


def report(options: argparse.Namespace) -> int:
    """Make the page, write it, say where it is."""
    _check(options)
    page = _claims(options) if options.claims else _of_file(options)
    target = page.save(_target(options))
    size = target.stat().st_size
    data = {"page": str(target), "title": page.title, "verdict": page.verdict, "bytes": size}
    verdict = [] if page.verdict is None else [f"verdict    {page.verdict}"]
    lines = [f"page       {page.title}", *verdict, f"written    {target} ({size / 1000:.0f} kB)"]
    return show(options, data, *lines, code=DONE if page.verdict in (None, "certified") else REFUSED)


def _check(options: argparse.Namespace) -> None:
    if (options.file is None) != options.claims:
        raise ValueError("name a FILE, or pass --claims for the register of published statements")
    if options.verify and not options.claims:
        raise ValueError("--verify goes with --claims: the page of a file is always computed anew")
    files = [] if options.file is None or "://" in options.file else [Path(options.file), _certificate(options)]
    guard([*options.audit, *files], [_target(options)])


def _certificate(options: argparse.Namespace) -> Path:
    return Path(options.certificate or Path(options.file).with_suffix(BESIDE))


def _target(options: argparse.Namespace) -> Path:
    if options.output is not None:
        return Path(options.output)
    if options.claims:
        return Path("claims.html")
    if "://" in options.file:
        raise ValueError("name the page with -o: a database's address is no file name")
    return Path(options.file).with_suffix(".html")


def _of_file(options: argparse.Namespace) -> Page:
    path = Path(options.file)
    if "://" in options.file or _is_database(path):
        return _of_ledger(options)
    if options.dataset is not None:
        raise ValueError("--dataset belongs to a ledger")
    stated = {name: value for name, value in claim(options).items() if value is not None}
    data, audits = read(path), [read(audit) for audit in options.audit]
    model = data.get("kind") in pages.MODELS
    if stated and data.get("kind") != "plan":
        raise ValueError("--epsilon and --delta are the claim about a plan: this file states its own")
    if not model and options.certificate is not None:
        raise ValueError("--certificate belongs to a model: this file is none")
    if not model:
        return pages.of_json(data, file=path.name, audits=audits, **stated)
    certificate = _certificate(options)
    if not certificate.is_file():
        raise FileNotFoundError(f"{certificate}: no such file; name the model's certificate with --certificate")
    fitted = pages.Fitted.from_json(data, read(certificate))
    return pages.of(fitted, file=path.name, certificate=certificate.name, audits=audits)


def _of_ledger(options: argparse.Namespace) -> Page:
    if options.audit or options.certificate or options.epsilon is not None or options.delta is not None:
        raise ValueError("--audit, --certificate, --epsilon and --delta do not apply to a ledger")
    from shapedp.ledger import Ledger  # needs an extra

    return pages.of(Ledger.open(options.file), dataset=options.dataset)


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(_SQLITE)) == _SQLITE


def _claims(options: argparse.Namespace) -> Page:
    if options.audit or options.dataset or options.epsilon is not None or options.delta is not None:
        raise ValueError("--claims takes no --audit, --dataset, --epsilon or --delta")
    return pages.claims_page(findings=checked(CLAIMS.values()) if options.verify else None)
