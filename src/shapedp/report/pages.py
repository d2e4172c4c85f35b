"""The page of whatever it is: `of(subject)`, and `of_json` for what a file holds."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from shapedp.accounting import BareLoss, Plan
from shapedp.mechanisms import certify, mechanism_from_json, verify
from shapedp.mechanisms.additive import Additive
from shapedp.numerics.outward import BELOW_1
from shapedp.privacy import Certificate
from shapedp.report import words
from shapedp.report.audits import Findings
from shapedp.report.estimators import Fitted
from shapedp.report.guarantee import Guarantee, recheck
from shapedp.report.markup import Markup, text
from shapedp.report.noise import noise_sections, summary
from shapedp.report.page import Page, top
from shapedp.report.plans import plan_sections

if TYPE_CHECKING:
    from shapedp.ledger import Ledger

Audits = Sequence[Mapping[str, Any]]


@singledispatch
def of(subject: Any, *, file: str | None = None, audits: Audits = (), **options: Any) -> Page:
    """The page of a mechanism, a certificate, a plan, a training, a ledger, a fitted estimator or a table's answers.

    Guarantee: the bracket and the curves are computed from the mechanism, not read; the page holds no data, only what
    was released and what describes the mechanism.

    Parameters
    ----------
    subject
        What the page is about.
    file
        The name under which the commands on the page look for it.
    audits
        JSON objects that `shapedp audit --json` printed, of the same claim.
    **options
        `epsilon` and `delta`, one or both: the claim about a plan, which states none. `dataset`: one data set of a
        ledger. `title`, `author`, `purpose` and `data`: what the page says of a table's answers.

    Returns
    -------
    Page
        With `html`, `verdict` and `save(path)`.

    Examples
    --------
    >>> import shapedp as sdp
    >>> mechanism = sdp.calibrate("laplace", sdp.L1(1.0, dim=2), epsilon=1.0, delta=0.0)
    >>> page = of(mechanism)
    >>> page.title, page.verdict
    ('Discrete laplace noise, ε = 1, δ = 0', 'certified')
    """
    if type(subject).__module__.startswith("shapedp.ledger"):  # known by name: the ledger needs an extra
        return _of_ledger(subject, file=file, audits=audits, **options)
    made = getattr(subject, "certificate", None)
    if isinstance(made, Certificate) and hasattr(subject, "questions"):
        return _of_answers(subject, file=file, audits=audits, **options)
    if isinstance(made, Certificate) and hasattr(subject, "loss"):
        return _of_mechanism(subject, file=file, audits=audits, **options)
    known = made if isinstance(made, Certificate) else Fitted.of(subject)
    return of(known, file=file, audits=audits, **options)


def _of_mechanism(subject: Any, *, file: str | None, audits: Audits) -> Page:
    additive = isinstance(subject, Additive)
    kind = f"{subject.law.kind} noise" if additive else str(getattr(subject, "kind", type(subject).__name__))
    name, written = _named(file, "mechanism.json", "mechanism.to_json()")
    lines = [f"shapedp {one} {name}" for one in ("verify", *(["audit"] if additive else []), "report")]
    found = Guarantee(subject.certificate, subject.loss)
    return _page("a mechanism", kind.replace("-", " ").capitalize(), found, subject, lines, written, audits)


@of.register
def _(subject: Plan, *, epsilon: float | None = None, delta: float | None = None, file: str | None = None,
      audits: Audits = ()) -> Page:  # fmt: skip
    """The claim is (epsilon, delta); where only delta is given, the epsilon that is computed for it."""
    loss = subject.loss
    if epsilon is None:
        if delta is None:
            raise ValueError("a plan states no claim: give epsilon, delta or both")
        epsilon = loss.epsilon(delta).upper
        if math.isinf(epsilon):
            raise ValueError(f"no epsilon meets delta {delta:g} for this plan: give a larger delta")
    elif delta is None:
        delta = min(loss.delta(epsilon).upper, BELOW_1)
    made = certify(subject, epsilon=epsilon, delta=delta)
    name, written = _named(file, "plan.json", "plan.to_json()")
    lines = [f"shapedp account --plan {name} --{what}" for what in (f"delta {delta!r}", f"epsilon {epsilon!r}")]
    again = f"shapedp report {name} --epsilon {epsilon!r} --delta {delta!r}"
    return _page("a plan", "A plan of releases", Guarantee(made, loss), subject, [*lines, again], written, audits)


def _of_ledger(subject: Ledger, *, file: str | None = None, audits: Audits = (), dataset: str | None = None) -> Page:
    if audits:
        raise ValueError("an audit belongs to a mechanism's page, not to a ledger's")
    from shapedp.report.ledgers import ledger_page

    return ledger_page(subject, name=file, dataset=dataset)


def _of_answers(subject: Any, *, file: str | None, audits: Audits, **said: str) -> Page:
    if audits:
        raise ValueError("an audit belongs to a mechanism's page, not to that of answers")
    from shapedp.report.tables import answers_page

    return answers_page(subject, file=file, **said)


def certified_page(kind: str, title: str, stated: Certificate, file: str | None, extra: Sequence[Markup]) -> Page:
    """The page of something that was released under a certificate, which lies in `file`."""
    found, mechanism = recomputed(stated)
    name, written = _named(file, "certificate.json", "answers.certificate.to_json()")
    lines = [f"shapedp verify {name}", f"shapedp report {name}"]
    return _page(kind, title, found, mechanism, lines, written, (), extra)


@of.register
def _(subject: Certificate, *, file: str | None = None, audits: Audits = ()) -> Page:
    found, mechanism = recomputed(subject)
    name, written = _named(file, "certificate.json", "certificate.to_json()")
    lines = [f"shapedp verify {name}", f"shapedp report {name}"]
    return _page("a certificate", "A certificate", found, mechanism, lines, written, audits)


@of.register
def _(subject: Fitted, *, file: str | None = None, certificate: str | None = None, audits: Audits = ()) -> Page:
    """`certificate` is the name of the file that holds the model's."""
    found, mechanism = recomputed(subject.certificate)
    name, written = _named(certificate, "certificate.json", "model.privacy_.to_json()")
    shown = name if file is None else f"{shlex.quote(file)} --certificate {name}"
    lines = [f"shapedp verify {name}", f"shapedp report {shown}"]
    return _page("a fitted model", subject.kind, found, mechanism, lines, written, audits, subject.sections())


def _named(file: str | None, usual: str, made: str) -> tuple[str, str | None]:
    """The file as a shell takes it, and how to write it where there is none yet."""
    if file is not None:
        if not isinstance(file, str):
            raise TypeError(f"file must be the name of a file, got {type(file).__name__}")
        return shlex.quote(file), None
    return usual, f'import json, pathlib; pathlib.Path("{usual}").write_text(json.dumps({made}))'


def of_json(data: Mapping[str, Any], *, file: str | None = None, audits: Audits = (), **options: Any) -> Page:
    """The page of what a JSON file holds: a mechanism, a certificate or a plan.

    Parameters
    ----------
    data
        The JSON object.
    file, audits, **options
        As for `of`.

    Returns
    -------
    Page
        The page; where the file states a bracket that contradicts the computed one, ValueError.

    Examples
    --------
    >>> import shapedp as sdp
    >>> mechanism = sdp.calibrate("laplace", sdp.L1(1.0, dim=2), epsilon=1.0, delta=0.0)
    >>> of_json(mechanism.certificate.to_json(), file="certificate.json").verdict
    'certified'
    """
    read = Certificate.from_json if data.get("kind") == "certificate" else mechanism_from_json
    return of(read(dict(data)), file=file, audits=audits, **options)


def recomputed(certificate: Certificate) -> tuple[Guarantee, Any]:
    """The certificate computed again from the mechanism it describes, and that mechanism (None where it has none).

    Guarantee: raises ValueError where the stated bracket contradicts the computed one.
    """
    if certificate.subject is None:
        loss = BareLoss(certificate.epsilon, min(certificate.bracket.upper, BELOW_1))
        return Guarantee(certificate, loss, recomputed=False), None
    again = replace(verify(certificate), secure=certificate.secure)
    mechanism = mechanism_from_json(dict(certificate.subject))
    return Guarantee(again, mechanism.loss, stated=certificate), mechanism


def _page(
    kind: str,
    title: str,
    found: Guarantee,
    mechanism: Any,
    lines: Sequence[str],
    written: str | None,
    audits: Audits,
    extra: Sequence[Markup] = (),
) -> Page:
    made = found.certificate
    findings = Findings.read(audits, made)
    cards = [*found.cards(), *([] if extra else summary(mechanism))]
    head = top(kind, title, words.promise(made, recomputed=found.recomputed), cards)
    plan = isinstance(mechanism, Plan)
    ends = None if kind == "a release" else found.epsilon.upper  # all of a release comes at once: nothing grows
    shape = plan_sections(mechanism, made, ends) if plan else noise_sections(mechanism)
    body = [found.promise(), *extra, found.bracket(), found.attacker(), *shape, *findings.sections()]
    body.append(recheck(lines, written, _about(made)))
    verdict = "violation" if findings.violation else made.verdict
    return Page(f"{title}, {words.claim(made.epsilon, made.delta)}", head, tuple(body), verdict)


def _about(certificate: Certificate) -> Markup:
    claim = {"epsilon": repr(certificate.epsilon), "delta": repr(certificate.delta)}
    ends = {"lower": repr(certificate.bracket.lower), "upper": repr(certificate.bracket.upper)}
    return text("claim-again", version=certificate.version, **claim, **ends)
