"""One reservation and the releases made under it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shapedp.boundary.refusals import refusal
from shapedp.ledger import book, schema
from shapedp.ledger.about import About
from shapedp.ledger.errors import LedgerError, SpendRefusedError
from shapedp.ledger.fixed import Charge
from shapedp.ledger.jobs import Job, price, spendable, voucher
from shapedp.ledger.records import Terms
from shapedp.mechanisms import Mechanism
from shapedp.mechanisms.certify import KINDS
from shapedp.numerics.checks import count as checked_count
from shapedp.privacy.certificate import Certificate, certificate_of

if TYPE_CHECKING:
    from shapedp.ledger.ledger import Ledger

_DESCRIPTION_LIMIT = 4000


@dataclass(eq=False, repr=False)
class Spend:
    """A block in which a mechanism may be released; entering reserves, leaving marks the entry.

    Guarantee: inside the block the reservation is on disk. Every release takes its unit of the reservation in the
    database first, so that threads, forks, spawned processes and pickled copies of the spend share one `count`.
    Leaving the block normally marks the entry "released", leaving by an exception "abandoned", a crash leaves it
    "reserved"; all three count. Only the process that entered the block marks it. `Ledger.spend` makes it.

    Examples
    --------
    >>> import tempfile, shapedp as sdp
    >>> noise = sdp.calibrate("laplace", sdp.L1(1.0, dim=1, adjacency="add-remove"), epsilon=0.1, delta=0.0)
    >>> cap = {"dataset": "visits", "epsilon": 1.0, "delta": 0.0, "adjacency": "add-remove"}
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sdp.ledger.Ledger.create(f"{folder.name}/budget.db", **cap).spend("visits", noise, count=3) as spend:
    ...     first, second = spend.release([120.0]), spend.release([121.0])
    ...     spend.remaining
    1
    >>> folder.cleanup()
    """

    ledger: Ledger
    dataset: str
    mechanism: Mechanism
    count: int
    charge: Charge
    certificate: str
    terms: Terms
    vouched_by: str | None = None
    about: About = field(default_factory=About)
    entry: int | None = field(default=None, init=False)
    digest: str = field(default="", init=False)
    before: Charge | None = field(default=None, init=False)
    _open: bool = field(default=False, init=False)
    _owner: int | None = field(default=None, init=False)
    _priced: tuple[Any, str] = field(default=(None, ""), init=False)  # what was charged

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_owner": None}

    @property
    def remaining(self) -> int:
        """How many of the reserved releases have not been taken, by anyone."""
        return self.count if self.entry is None else book.left(self)

    @property
    def shares(self) -> tuple[float, float] | None:
        """The share of the cap that was spent before this reservation, and with it; None before it is made."""
        if self.before is None:
            return None
        cap = self.terms.filter
        return cap.spent(self.before), cap.spent(self.before.plus(self.charge))

    def __enter__(self) -> Spend:
        if self.entry is not None:
            raise LedgerError("a spend is used once; ask the ledger for another")
        self._settle()
        self.entry, self.digest, self.before = book.reserve(self, describe(self.mechanism, self.vouched_by))
        self._open, self._owner, self._priced = True, os.getpid(), (self.mechanism, self.certificate)
        return self

    def _settle(self) -> None:
        """Compute anew what is charged, for whatever the fields say now: nothing that was edited is believed."""
        self.count = checked_count("count", self.count)
        self.terms = self.ledger._terms_of(self.dataset, stated=self.about.unit)
        if isinstance(self.mechanism, Job):
            self.mechanism = spendable(self.mechanism.subject, self.terms.filter)
        self.certificate = accepted(self.mechanism, self.terms.adjacency)
        self.vouched_by = voucher(self.mechanism, self.terms.vouching, self.vouched_by)
        self.charge = price(self.mechanism, self.terms.filter).times(self.count)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._open = False
        if self.entry is None or self._owner != os.getpid():
            return
        try:
            book.close(self, "released" if kind is None else "abandoned")
        except LedgerError as failed:
            note = f"entry {self.entry} of {self.dataset!r} stays reserved and counted; the block itself ran"
            if error is None:
                failed.add_note(note)
                raise
            error.add_note(f"{failed}: {note}")

    def release(self, x: Any, **options: Any) -> Any:
        """`mechanism.release(x, ...)`, recorded; `batch=n` uses n of the reserved releases.

        Refuses `unsafe=True` and `rng=`: neither makes a private release.
        """
        if options.get("unsafe"):
            raise SpendRefusedError("a ledger never accepts unsafe=True: no certificate would cover the release")
        if options.get("rng") is not None:
            raise SpendRefusedError("a ledger never accepts rng=: seeded noise can be subtracted again; leave it out")
        batch = options.get("batch")
        number = 1 if batch is None else checked_count("batch", batch)
        self._take(number)
        release: Any = self.mechanism.release(x, **options)
        self._inspect(release)
        if release.spends > number:
            raise SpendRefusedError(f"{release.spends} releases were made, {number} were asked for: do not publish")
        return release

    def record(self, release: Any) -> None:
        """Hands over a release made by the mechanism itself; an unsafe, seeded or foreign one is refused."""
        self._inspect(release)
        self._take(checked_count("spends", release.spends))

    def _take(self, number: int) -> None:
        if not self._open or self.entry is None:
            raise LedgerError("a release belongs inside `with ledger.spend(...)`; this spend is not open")
        if self.mechanism is not self._priced[0] or self.certificate != self._priced[1]:
            raise SpendRefusedError("the spend was edited after it was charged: ask the ledger for another")
        book.take(self, number)

    def _inspect(self, release: Any) -> None:
        certificate = getattr(release, "certificate", None)
        if certificate is None or not hasattr(release, "unsafe") or not hasattr(release, "spends"):
            raise TypeError(f"a ledger records releases, got {type(release).__name__}")
        if release.unsafe or certificate.verdict != "certified":
            raise SpendRefusedError("an unsafe release was handed to the ledger: it must not be published")
        if certificate.secure is False:
            raise SpendRefusedError("a release with rng= was handed to the ledger: it must not be published")
        scope = self.mechanism.certificate.scope  # that of a batch says besides that it is one
        if schema.to_text(replace(certificate, secure=None, scope=scope).to_json()) != self.certificate:
            raise SpendRefusedError("the release was made by another mechanism than the one this spend reserved")


def accepted(mechanism: Any, adjacency: str) -> str:
    """The mechanism's certificate as JSON text, once it is one this ledger accepts."""
    kind, needed = type(mechanism).__name__, ("loss", "certificate", "release")
    missing = [name for name in needed if not hasattr(mechanism, name)]
    if missing:
        raise TypeError(f"a ledger spends mechanisms, plans and certificates; {kind} has no {', '.join(missing)}")
    whole = getattr(mechanism, "step_of", "")
    if whole:
        raise SpendRefusedError(f"this mechanism is one step of {whole}")
    certificate = mechanism.certificate
    if not isinstance(certificate, Certificate):
        raise TypeError(f"the mechanism's certificate must be a Certificate, got {type(certificate).__name__}")
    found = certificate
    if type(mechanism) not in (Job, *KINDS.values()):  # the user's own class: its certificate is only stated
        found = certificate_of(mechanism.loss, certificate.epsilon, certificate.delta)
    if certificate.verdict != "certified" or found.verdict != "certified":
        raise SpendRefusedError(f"a ledger spends certified mechanisms only; {found.explain()}")
    if certificate.adjacency != adjacency:
        raise SpendRefusedError(refusal("ledger", "another-relation", wanted=adjacency, made=certificate))
    return schema.to_text(replace(certificate, secure=None).to_json())


def describe(mechanism: Any, vouched_by: str | None) -> dict[str, Any]:
    """What the ledger keeps of a mechanism: its type, how it prints, and who vouched for it where nobody computed."""
    mechanism = getattr(mechanism, "subject", mechanism)
    kind = type(mechanism)
    kept = {"type": f"{kind.__module__}.{kind.__qualname__}", "text": repr(mechanism)[:_DESCRIPTION_LIMIT]}
    return kept if vouched_by is None else kept | {"vouched_by": vouched_by}
