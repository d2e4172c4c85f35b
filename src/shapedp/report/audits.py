"""What an audit found, from the JSON that `shapedp audit --json` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from shapedp.audit.empirical import AuditResult, Witness
from shapedp.audit.fit import Check, DistributionResult
from shapedp.boundary.refusals import refusal
from shapedp.numerics.checks import entries, real
from shapedp.privacy import Certificate
from shapedp.report.figures import counted, number, percent, whole
from shapedp.report.markup import Markup, el, many, text
from shapedp.report.page import callout, facts, section, table

T = TypeVar("T")


@dataclass(frozen=True)
class Findings:
    """Audits of one claim."""

    empirical: tuple[AuditResult, ...] = ()
    noise: tuple[DistributionResult, ...] = ()

    @classmethod
    def read(cls, audits: Sequence[Mapping[str, Any]], certificate: Certificate) -> Findings:
        """From JSON objects. An audit of another claim than the certificate's is refused."""
        audits = entries("audits", audits)
        if not all(isinstance(data, Mapping) for data in audits):
            raise TypeError("audits must be JSON objects, as an audit's to_json gives them")
        empirical = tuple(_empirical(data) for data in audits if data.get("kind") == "audit")
        noise = tuple(_noise(data) for data in audits if data.get("kind") == "distribution-audit")
        if len(empirical) + len(noise) != len(audits):
            raise ValueError("not an audit: the field kind must read 'audit' or 'distribution-audit'")
        for result in empirical:
            if (result.epsilon, result.delta) != (certificate.epsilon, certificate.delta):
                raise ValueError(refusal("report", "another-claim", audit=result, page=certificate))
        return cls(empirical, noise)

    @property
    def violation(self) -> bool:
        """Whether some audit contradicts the claim or the law."""
        return any(result.violation for result in self.empirical) or any(not fit.passed for fit in self.noise)

    def sections(self) -> list[Markup]:
        """None where no audit was given."""
        if not self.empirical and not self.noise:
            return []
        warning = callout("bad", text("audit-contradicts")) if self.violation else None
        parts = [*map(_shown, self.empirical), *map(_fit, self.noise)]
        return [section("audit", "Audits", el("p", text("audits")), warning, parts)]


def _shown(result: AuditResult) -> Markup:
    at = result.witness
    evidence = (
        f"at ε = {number(at.epsilon, 4)}: δ at least {number(at.delta_lower, 4, 'down')}, the {at.against} promises "
        f"{number(at.claimed, 4)}"
    )
    rows = facts(
        (f"δ at ε = {number(result.epsilon, 6)}", f"at least {number(result.delta_lower, 4, 'down')}"),
        (f"ε at δ = {number(result.delta, 6)}", f"at least {number(result.epsilon_lower, 4, 'down')}"),
        None if at.delta_lower == 0 else ("Strongest evidence", evidence),
        ("Outputs drawn", f"{whole(result.samples)}{', stopped early' if result.stopped_early else ''}"),
        ("Confidence", f"{percent(result.confidence, 6)}, of all bounds together"),
        ("Method", result.method),
    )
    verdict = "violation" if result.violation else "no violation found"
    return many(el("h3", "By outputs at two neighbouring inputs"), _verdict(verdict, not result.violation), rows)


def _verdict(words: str, good: bool) -> Markup:
    return el("p", el("span", words, class_="badge good" if good else "badge bad"))


def _fit(fit: DistributionResult) -> Markup:
    verdict = "the noise fits its law" if fit.passed else "the noise does not fit its law"
    rows = [(check.name, check.detail, number(check.p_value, 3)) for check in fit.checks]
    alarm = f"Correct noise fails with probability {number(fit.false_alarm)}."
    drawn = el("p", f"{fit.law}: {counted(fit.samples, 'draw')}. {alarm}")
    checks = table("Checks", ("check", "what", "p-value"), rows, words=2)
    return many(el("h3", "By the noise against its law"), _verdict(verdict, fit.passed), drawn, checks)


def _empirical(data: Mapping[str, Any]) -> AuditResult:
    return _made(AuditResult, data, witness=_made(Witness, data.get("witness")))


def _noise(data: Mapping[str, Any]) -> DistributionResult:
    checks = data.get("checks")
    if not isinstance(checks, list) or not checks:
        raise ValueError("the audit lacks its checks")
    return _made(DistributionResult, data, checks=tuple(_made(Check, check) for check in checks))


def _made(kind: type[T], data: Any, **parts: Any) -> T:
    """A dataclass from a JSON object, its numbers and texts checked to be such; `parts` are made already."""
    if not isinstance(data, Mapping):
        raise ValueError(f"the audit lacks a part that describes {kind.__name__}")
    for field in fields(kind):  # type: ignore[arg-type]
        name = field.name
        if name in parts:
            continue
        if name not in data:
            raise ValueError(f"the audit lacks the field {name!r}")
        parts[name] = data[name]
        if field.type in ("int", "float") and not isinstance(data[name], int):
            parts[name] = real(name, data[name])
        if field.type == "str" and not isinstance(data[name], str):
            raise ValueError(f"the audit's field {name} must be text")
    return kind(**parts)
