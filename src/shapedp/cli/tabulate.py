"""shapedp tabulate: counts, sums, means, variances and quantiles of people by group, from a file."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from shapedp.boundary.values import WORDS, printable, words
from shapedp.cli.output import certificate_lines, show, table, written
from shapedp.cli.paths import beside, beside_certificate
from shapedp.noise.gaussian import normal_half_width
from shapedp.private.answers import Answers
from shapedp.private.figures import texts
from shapedp.private.mixed import MixedPlan
from shapedp.private.plans import TablePlan
from shapedp.private.sources import rows_of
from shapedp.private.table import PrivateTable
from shapedp.private.table import table as private_table
from shapedp.private.text import bounds_of, domain_of, named, question_of
from shapedp.report.tables import answers_page
from shapedp.tables.vectors import suffix, write_columns

SHOWN = 60


def tabulate(options: argparse.Namespace) -> int:
    """Plan, aggregate, release, print and write."""
    if (options.ledger is None) != (options.dataset is None):
        raise ValueError("--ledger and --dataset go together: the ledger, and whose budget in it is spent")
    if options.output is not None and suffix(options.output) not in (".csv", ".parquet"):
        raise ValueError("answers are written as csv or parquet")
    for name in WORDS:
        words(name, getattr(options, name))
    if options.report is not None and options.report.suffix not in (".html", ".htm"):
        raise ValueError("a report is an HTML page: name it .html")
    normal_half_width(options.confidence)  # refused now, not after the budget is spent
    people = _people(options)
    questions = [question_of(people, text) for text in options.query]
    plan = people.plan(
        *questions,
        epsilon=options.epsilon,
        delta=options.delta,
        adjacency=options.adjacency,
        confidence=options.confidence,
        first=options.first,
        noise=options.noise,
        dropped=options.dropped,
    )
    if (
        options.output is not None
        and len(questions) > 1
        and any(ask.verb == "top_k" for one in questions for ask in one.asked.values())
    ):
        raise ValueError("top_k has no single value: write it with a command of its own")
    if isinstance(plan, MixedPlan):
        return _mixed(plan, options)
    if options.plan:
        return _predicted(plan, options)
    if options.ledger is None:
        return _finish(plan.answers(plan.mechanism.release(plan.exact_tables()), options.confidence), options)
    from shapedp.ledger import Ledger

    said = {name: getattr(options, name) for name in WORDS}
    spend, tables = plan.spend(Ledger.open(options.ledger, timeout=options.timeout).stating(**said), options.dataset)
    with spend:
        answers = plan.answers(spend.release(tables), options.confidence)
        return _finish(replace(answers, spend=spend), options)


def _people(options: argparse.Namespace) -> PrivateTable:
    """The private table that the options describe."""
    files = [str(path) for path in options.input]
    rows = rows_of(files)
    types = dict(named(text, "--type") for text in options.type)
    domains = {}
    for text in options.domain:
        name, rest = named(text, "--domain")
        domains[name] = domain_of(rows, types, name, rest)
    bounds = {name: bounds_of(rest) for name, rest in (named(text, "--bounds") for text in options.bounds)}
    person = None if options.each_row_a_person else options.person
    made = private_table(
        files,
        person=person,
        rows=options.rows,
        groups=options.groups,
        bounds=bounds,
        domains=domains,
        types=types,
        memory=options.memory,
    )
    return made if options.where is None else made.where(options.where)


def _predicted(plan: TablePlan, options: argparse.Namespace) -> int:
    """The standard errors of counts and sums, before anything is read."""
    made = plan.mechanism
    errors = {term.name: made.standard_error(term.name) for term in made.workload.terms}
    means = {name: math.sqrt(float(np.square(one).mean())) for name, one in errors.items()}
    record = {"standard_errors": means, "certificate": made.certificate.to_json()}
    cells = [(name, errors[name].size, f"{mean:.6g}") for name, mean in means.items()]
    shown = table(("sums", "cells", "standard error"), cells)
    return show(options, record, shown, "", plan.scope, *certificate_lines(made.certificate))


def _mixed(plan: MixedPlan, options: argparse.Namespace) -> int:
    """Sums, quantiles and what is unknown: what is spent on which, or the answers."""
    if options.plan:
        said = ["the rest" if one.share is None else f"{one.share:.2g}" for one in plan.shares]
        parts = [(one.what, share, f"{one.epsilon:.4g}") for one, share in zip(plan.shares, said, strict=True)]
        record = {"shares": [asdict(one) for one in plan.shares], "certificate": plan.certificate.to_json()}
        shown = table(("part", "share of epsilon", "epsilon alone"), parts)
        return show(options, record, shown, "", plan.scope, *certificate_lines(plan.certificate))
    if options.ledger is None:
        return _finish(plan.release(), options)
    from shapedp.ledger import Ledger

    ledger = Ledger.open(options.ledger, timeout=options.timeout)
    ledger = ledger.stating(**{name: getattr(options, name) for name in WORDS})
    return _finish(plan.release(ledger=ledger, dataset=options.dataset), options)


def _finish(answers: Answers, options: argparse.Namespace) -> int:
    """Print the answers, and write them and their certificate."""
    stated = answers.certificate
    lines = []
    for question, columns in zip(answers.questions, answers.tables, strict=True):
        lines += [printable(repr(question)), _shown(columns), ""]
    record = {**stated.to_json(), "unsafe": False}
    certificate = None
    if options.output is not None:
        certificate = beside(options)
        with beside_certificate(certificate, record):
            write_columns(options.output, _written(answers))
    if options.report is not None:
        named = {"title": options.label, "author": options.author, "purpose": options.note}
        data = options.dataset or ", ".join(path.name for path in options.input)
        page = answers_page(answers, **named, data=data[:200], file=None if certificate is None else certificate.name)
        page.save(options.report)
    spent = [] if options.dataset is None else [f"spent      from {options.dataset!r}"]
    lines += [*answers.notes[1:], *spent, *certificate_lines(stated)]
    data = {"answers": [dict(one) for one in answers.tables], **_lost(answers), "certificate": record}
    return show(options, data, *lines, *written(options.output, certificate, options.report))


def _lost(answers: Answers) -> dict[str, Any]:
    """The share of rows dropped, where it was asked for."""
    if answers.dropped is None:
        return {}
    low, high = answers.dropped.interval(answers.confidence)
    return {"dropped": {"share": answers.dropped.share, "low": low, "high": high}}


def _shown(columns: Mapping[str, list[Any]]) -> str:
    cells = texts({name: one[: SHOWN + 1] for name, one in columns.items()}, commas=False)
    rows = list(zip(*cells.values(), strict=True))
    more = "\n... and more rows: --output writes all" if len(rows) > SHOWN else ""
    return table(tuple(columns), rows[:SHOWN]) + more


def _written(answers: Answers) -> dict[str, Any]:
    """One question: its table. Several: a row per value, with the question, the group and what was computed."""
    if len(answers) == 1:
        return dict(answers.columns)
    found: dict[str, list[Any]] = {name: [] for name in ("query", "group", "computed", "value", "error", "low", "high")}
    for question, columns in zip(answers.questions, answers.tables, strict=True):
        groups = [columns[one.name] for one in question.by]
        size = len(next(iter(columns.values())))
        cells = [", ".join(map(str, row)) for row in zip(*groups, strict=True)] if groups else [""] * size
        for name in question.asked:
            found["query"] += [repr(question)] * size
            found["group"] += cells
            found["computed"] += [name] * size
            for own, end in (("value", ""), ("error", "_error"), ("low", "_low"), ("high", "_high")):
                found[own] += [float(one) for one in columns[name + end]]
    return found
