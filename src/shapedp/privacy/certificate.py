"""What a release is worth, computed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, Literal, cast

from shapedp._version import __version__
from shapedp.boundary.documents import described
from shapedp.boundary.values import boolean, plain
from shapedp.numerics.checks import entries, nonnegative, one_of, positive, probability
from shapedp.privacy.assumptions import UNSTATED
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses import Loss
from shapedp.sensitivity import ADJACENCIES, Adjacency

SCHEMA = 1
ROWS = "One person is one row: several rows of one person cost several times as much."
BLANK = (
    "Under zero-out a neighbour has one record that counts as none, as one with a missing cell does; a row of zeros is "
    "a record like any other."
)
_STORED = ("epsilon", "delta", "adjacency", "method", "secure", "version", "subject")
_WORTH = 0.1  # no delta above it is worth claiming
Verdict = Literal["certified", "refuted", "undecided"]


class NotCertifiedError(RuntimeError):
    """A release was refused because its claim is not certified; `certificate` says why.

    Example:
        >>> from shapedp import GaussianLoss
        >>> try:
        ...     certificate_of(GaussianLoss(1.0), 1.0, 1e-6).require()
        ... except NotCertifiedError as refused:
        ...     print(refused.certificate.verdict)
        refuted
    """

    def __init__(self, certificate: Certificate) -> None:
        super().__init__(certificate.explain())
        self.certificate = certificate


class RefutedError(NotCertifiedError):
    """The claim is false: the least possible delta exceeds the claimed one.

    Example:
        >>> issubclass(RefutedError, NotCertifiedError)
        True
    """


class UndecidedError(NotCertifiedError):
    """The claim lies inside the bracket: neither proven nor refuted.

    Example:
        >>> issubclass(UndecidedError, NotCertifiedError)
        True
    """


class Deferred(Mapping[str, Any]):
    """A JSON object that is built when first read: to describe a long profile costs more than to certify it.

    What is read is a copy, so that no reader changes what the next one sees.

    Parameters: `build`, called once, when a field is first read.

    Example:
        >>> Deferred(lambda: {"kind": "additive"})["kind"]
        'additive'
    """

    def __init__(self, build: Callable[[], dict[str, Any]]) -> None:
        self._build = build

    @cached_property
    def _data(self) -> dict[str, Any]:
        return self._build()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it reads: the mechanism behind it may hold tables of many megabytes."""
        return Deferred, (partial(dict, self._data),)

    def __getitem__(self, key: str) -> Any:
        return deepcopy(self._data[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


@dataclass(frozen=True)
class Certificate:
    """A claim (epsilon, delta) under a neighbour relation, and the bracket of the true delta at that epsilon.

    Guarantee: "certified" if even the upper end meets the claim, "refuted" if even the lower end breaks it.
    `secure` says whether the release drew secure randomness; None before anything was released. `reason` says of a
    published mechanism which step of its argument fails where the claim is refuted. `assumptions` holds a sentence for
    each unproved premise that the guarantee rests on; it is empty where all is computed. `scope` says in words what
    the claim does not cover; it depends on no record, and `explain` always repeats it.

    Example:
        >>> Certificate(1.0, 1e-6, "replace", Bracket(1e-7, 2e-7), "GaussianLoss").verdict
        'certified'
    """

    epsilon: float
    delta: float
    adjacency: Adjacency | None
    bracket: Bracket
    method: str
    secure: bool | None = None
    version: str = __version__
    subject: Mapping[str, Any] | None = None
    reason: str = ""
    assumptions: tuple[str, ...] = ()
    scope: str = ""

    def __post_init__(self) -> None:
        plain(self)
        for name, check in (("epsilon", positive), ("delta", probability)):
            number = check(name, getattr(self, name))
            if type(getattr(self, name)) not in (int, float):
                object.__setattr__(self, name, number)
        one_of("adjacency", self.adjacency, (*ADJACENCIES, None))
        if not isinstance(self.bracket, Bracket):
            raise TypeError("bracket must be a Bracket, the bounds on delta")
        if not isinstance(self.secure, bool | None):
            raise TypeError(f"secure must be True, False or None, got {self.secure!r}")
        given: object = self.assumptions
        object.__setattr__(self, "assumptions", entries("assumptions", given))
        if isinstance(given, str) or not all(isinstance(one, str) for one in self.assumptions):
            raise TypeError("assumptions must be sentences, one per premise that is not proved")
        if not isinstance(self.subject, Deferred | None):
            object.__setattr__(self, "subject", deepcopy(self.subject))

    @property
    def verdict(self) -> Verdict:
        """certified, refuted or undecided."""
        if self.bracket.upper <= self.delta:
            return "certified"
        return "refuted" if self.bracket.lower > self.delta else "undecided"

    def require(self) -> Certificate:
        """This certificate if it is certified; otherwise raises RefutedError or UndecidedError."""
        if self.verdict == "certified":
            return self
        raise (RefutedError if self.verdict == "refuted" else UndecidedError)(self)

    def explain(self) -> str:
        """The claim, what was computed, what to do, and what is not covered, in one paragraph."""
        said = self._computed()
        return f"{said.removesuffix('.')}. Scope: {self.scope}" if self.scope else said

    def _computed(self) -> str:
        claim = f"claimed delta {self.delta:.6g} at epsilon {self.epsilon:.6g}"
        if self.verdict == "certified":
            return f"certified: {claim}, the exact delta is at most {self.bracket.upper:.6g}{self._premises()}"
        if self.verdict == "refuted":
            return (
                f"refuted: {claim}, the exact delta is at least {self.bracket.lower:.6g} (in {self.bracket}). "
                "Calibrate with shapedp.calibrate, or pass unsafe=True to reproduce a published experiment"
                + (f". Reason: {self.reason}" if self.reason else "")
            )
        advice = "Claim the upper end, or add a little more noise" if self.bracket.upper <= _WORTH else "Add noise"
        return f"undecided: {claim}, the exact delta lies in {self.bracket}. {advice}{self._premises()}"

    def _premises(self) -> str:
        return f". Assumed, not proved: {' '.join(self.assumptions)}" if self.assumptions else ""

    def with_randomness(self, secure: bool) -> Certificate:
        """This certificate for a release whose randomness was secure, or was not."""
        return replace(self, secure=boolean("secure", secure))

    def to_json(self) -> dict[str, Any]:
        """A JSON object; `subject` describes the mechanism so that the bracket can be recomputed offline."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        data["bracket"] = asdict(self.bracket)
        data["subject"] = None if self.subject is None else deepcopy(dict(self.subject))
        data["assumptions"] = list(self.assumptions)
        return {"schema": SCHEMA, "kind": "certificate", "verdict": self.verdict, **data}

    @property
    def digest(self) -> str:
        """`sha256:` and the digest of the canonical bytes (RFC 8785): equal for files that say the same."""
        return "sha256:" + hashlib.sha256(_canonical(self.to_json()).encode()).hexdigest()

    @classmethod
    @described
    def from_json(cls, data: Any) -> Certificate:
        """What `to_json` wrote; the verdict is computed anew, never read."""
        if not isinstance(data, dict) or data.get("kind") != "certificate":
            raise ValueError("not a certificate: the field kind must read 'certificate'")
        if data.get("schema") != SCHEMA:
            raise ValueError(f"certificate schema {data.get('schema')!r} is not the supported {SCHEMA}")
        try:
            bracket = Bracket(*(nonnegative(end, data["bracket"][end]) for end in ("lower", "upper")))
            stored = {name: data[name] for name in _STORED}
        except (KeyError, TypeError) as missing:
            raise ValueError(f"certificate lacks or mistypes the field {missing}") from None
        if not isinstance(stored["subject"], dict | None):
            raise ValueError("the certificate's subject must be the description of a mechanism, or null")
        if not all(isinstance(stored[name], str) for name in ("method", "version")):
            raise ValueError("the certificate's method and version must be texts")
        stated = data.get("assumptions", UNSTATED)
        if not isinstance(stated, list | tuple) or not all(isinstance(one, str) for one in stated):
            raise ValueError("the certificate's assumptions must be a list of sentences")
        reason, scope = (str(data.get(name, "")) for name in ("reason", "scope"))
        return cls(bracket=bracket, **stored, reason=reason, scope=scope, assumptions=tuple(stated))


def certificate_of(
    loss: Loss,
    epsilon: float,
    delta: float,
    *,
    adjacency: Adjacency | None = None,
    subject: Mapping[str, Any] | None = None,
    reason: str = "",
    assumptions: tuple[str, ...] = (),
) -> Certificate:
    """The certificate of a claim about a loss, under its neighbour relation; `adjacency` names it where it does not.

    Parameters: the loss, the claim, and what the certificate is to say about its subject.
    Returns: the `Certificate`, its verdict computed.

    Example:
        >>> from shapedp import GaussianLoss
        >>> certificate_of(GaussianLoss(0.2), 1.0, 1e-6, adjacency="replace").verdict
        'certified'
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    relation = cast("Adjacency | None", loss.under(adjacency).adjacency)
    bracket, method = loss.delta(epsilon), type(loss).__name__
    return Certificate(
        epsilon, delta, relation, bracket, method, subject=subject, reason=reason, assumptions=assumptions
    )


def _canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces, and numbers as ECMAScript writes doubles."""
    if isinstance(value, Mapping):
        ordered = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return "{" + ",".join(f"{_canonical(key)}:{_canonical(item)}" for key, item in ordered) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return json.dumps(value, ensure_ascii=False)
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + int(exponent)
    if 0 < point <= 21:
        text = text.ljust(point, "0") if len(text) <= point else f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        text = f"0.{text.zfill(len(text) - point)}"
    else:
        text = f"{text[0]}{'.' + text[1:] if len(text) > 1 else ''}e{point - 1:+d}"
    return "-" * sign + text
