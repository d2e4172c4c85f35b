"""The fits of this process, counted by the data they were made on. Nothing of the data is kept."""

from __future__ import annotations

import os
import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from shapedp.boundary.columns import is_frame
from shapedp.boundary.refusals import refusal
from shapedp.learn.composed import composed
from shapedp.mechanisms.watch import is_watched
from shapedp.privacy import BLANK, ROWS, Bracket, Certificate

SCOPE = (
    f"{ROWS} {BLANK} The fits of this process that were seen to use the same data are covered; copies of the data, "
    "files read again into memory, and other processes are not seen."
)
KEPT = 256  # fits of one data object with all that their certificates describe; of others only the claim
T = TypeVar("T", bound=Callable[..., Any])


class RepeatedFitsWarning(UserWarning):
    """The same data were fitted more than once: the cost is that of all fits together, see `fits`.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", RepeatedFitsWarning)  # stop at the second fit of the same data
    """


@dataclass(frozen=True, eq=False)
class Fits:
    """The fits that used one data object, under one neighbour relation.

    Parameters
    ----------
    data: what it is, in words: its type and its shape.
    estimators: the names of the classes that were fitted, in order.
    certificates: what each fit certified.

    Examples
    --------
    >>> from shapedp import GaussianLoss, certify
    >>> one = certify(GaussianLoss(0.1, adjacency="replace"), epsilon=1.0, delta=1e-6)
    >>> Fits("ndarray (10, 2)", ("Lasso", "Lasso"), (one, one)).count
    2
    """

    data: str
    estimators: tuple[str, ...]
    certificates: tuple[Certificate, ...]

    @property
    def count(self) -> int:
        """How many fits."""
        return len(self.certificates)

    @cached_property
    def certificate(self) -> Certificate:
        """All fits together: delta is the sum of what was claimed, epsilon the least that is certified at it."""
        return composed(self.certificates, scope=SCOPE)


@dataclass(eq=False)
class _Entry:
    """What is known of one data object: weak references to what owns its memory, and the fits."""

    data: str
    owners: set[int]
    fits: list[tuple[str, Certificate]] = field(default_factory=list)
    claims: dict[Any, Certificate] = field(default_factory=dict)
    warned: bool = False

    def add(self, name: str, certificate: Certificate) -> None:
        """One more fit; beyond `KEPT` of them a certificate is cut down to its claim, which the next ones share."""
        if len(self.fits) >= KEPT:
            top = max(certificate.bracket.upper, certificate.delta)
            stated = (certificate.adjacency, certificate.secure, certificate.assumptions)
            key = (certificate.epsilon, certificate.delta, top, *stated)
            bare = replace(certificate, bracket=Bracket(0.0, top), subject=None, method="claim")
            certificate = self.claims.setdefault(key, bare)
        self.fits.append((sys.intern(name), certificate))


class _Register:
    """Entries by the identity of memory. Data that are gone are forgotten, with their fits."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.entries: dict[int, _Entry] = {}
        self.alive: dict[int, Any] = {}
        self.gone: deque[int] = deque()  # filled by callbacks, which may run anywhere

    def record(self, x: Any, name: str, certificate: Certificate) -> tuple[int, float, float] | None:
        """Count a fit. The number and the sum of the claims, the first time that there is more than one."""
        held = list(owners(x))
        with self.lock:
            self._forget()
            found = [self.entries[id(one)] for one in held if id(one) in self.entries]
            entry = found[0] if found else _Entry(_described(x), set())
            for other in {id(one): one for one in found[1:] if one is not entry}.values():
                self._join(entry, other)
            for one in held:
                self._hold(one, entry)
            entry.add(name, certificate)
            if len(entry.fits) < 2 or entry.warned:
                return None
            entry.warned = True
            claims = [one for _, one in entry.fits]
            return len(claims), sum(one.epsilon for one in claims), sum(one.delta for one in claims)

    def _hold(self, owner: Any, entry: _Entry) -> None:
        key = id(owner)
        if key not in self.alive:
            gone = self.gone
            self.alive[key] = owner if isinstance(owner, _File) else weakref.ref(owner, lambda _: gone.append(key))
        self.entries[key] = entry
        entry.owners.add(key)

    def _join(self, entry: _Entry, other: _Entry) -> None:
        """Two data objects turn out to share memory (a frame made of two others)."""
        entry.fits += other.fits
        entry.warned |= other.warned
        for key in other.owners:
            self.entries[key] = entry
        entry.owners |= other.owners

    def _forget(self) -> None:
        while self.gone:
            key = self.gone.popleft()
            held = self.alive.get(key)
            if isinstance(held, weakref.ref) and held() is None:  # else the address has a new owner already
                del self.alive[key]
                self.entries.pop(key).owners.discard(key)

    def listed(self) -> list[Fits]:
        with self.lock:
            self._forget()
            entries = list({id(one): one for one in self.entries.values()}.values())
            found = []
            for entry in entries:
                relations = dict.fromkeys(one.adjacency for _, one in entry.fits)
                for relation in relations:
                    own = [(name, one) for name, one in entry.fits if one.adjacency == relation]
                    found.append(Fits(entry.data, *map(tuple, zip(*own, strict=True))))
            return found

    def clear(self) -> None:
        with self.lock:
            self.entries.clear()
            self.alive.clear()

    def after_fork(self) -> None:
        """A child counts on from what its parent had counted; a lock that another thread held is free again."""
        self.lock = threading.RLock()


class _File(str):
    """The path of a file that was fitted."""

    __slots__ = ()


_REGISTER = _Register()
_FILES: dict[str, _File] = {}
_INNER: ContextVar[list[tuple[str, Certificate]] | None] = ContextVar("inner", default=None)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_REGISTER.after_fork)


def fits() -> list[Fits]:
    """The fits of this process, one entry for each data object that is still there and each neighbour relation.

    Data are the same where they share memory: an array and its slices and views, a frame and its columns; or where
    scikit-learn was given them and fitted parts of them (`cross_val_score`, `GridSearchCV`, a pipeline). A copy, a
    list, a table of another library that was made anew, and fits in other processes (n_jobs) are not seen. Disjoint
    slices of one array count as the same data: the cost is then an upper bound.

    Returns
    -------
    A list of `Fits`, with `count` and the composed `certificate`.

    Examples
    --------
    >>> import numpy as np
    >>> from shapedp.learn import LinearRegression
    >>> x, model = np.zeros((500, 3)), LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=1.0)
    >>> _ = model.fit(x, x[:, 0])
    >>> [one.count for one in fits() if one.data == "ndarray (500, 3)"]
    [1]
    """
    return _REGISTER.listed()


def counted(fit: T) -> T:
    """A `fit` whose certificate enters the register; fits inside it count as parts of it."""

    @wraps(fit)
    def method(self: Any, *given: Any, **named: Any) -> Any:
        outer, before = _INNER.get(), vars(self).get("privacy_")
        inner: list[tuple[str, Certificate]] = []
        token = _INNER.set(inner)
        try:
            with np.errstate(all="ignore"):  # an error or a warning of arithmetic would tell of a record
                return fit(self, *given, **named)
        finally:
            _INNER.reset(token)
            now = vars(self).get("privacy_")
            done = [(type(self).__name__, now)] if now is not None and now is not before else inner
            if outer is not None:
                outer.extend(done)
            elif done and not is_watched():  # an audit watches fits of test data
                _count(given[0] if given else named.get("X"), done)

    return method  # type: ignore[return-value]


def _count(x: Any, done: list[tuple[str, Certificate]]) -> None:
    given = _given_to_sklearn(x)
    for name, certificate in done:
        told = _REGISTER.record(given, name, certificate)
        if told:
            number, epsilon, delta = told
            text = refusal("learn", "fitted-before", number=number, epsilon=epsilon, delta=delta)
            warnings.warn(text, RepeatedFitsWarning, stacklevel=3)


def _given_to_sklearn(x: Any) -> Any:
    """What scikit-learn was given, where it calls: a cross-validation or a pipeline fits parts of that."""
    found, frame = x, sys._getframe(1)
    while (frame := frame.f_back) is not None:  # type: ignore[assignment]
        if str(frame.f_globals.get("__name__")).startswith("sklearn.") and "X" in frame.f_code.co_varnames:
            held = frame.f_locals.get("X")
            found = found if held is None else held
    return found


def owners(x: Any) -> Iterator[Any]:
    """What owns the memory of the data: the same objects for views of the same memory."""
    if isinstance(x, np.ndarray):
        while isinstance(x.base, np.ndarray):
            x = x.base
        yield x
    elif sparse.issparse(x):
        held = getattr(x, "data", None)
        yield from owners(held) if isinstance(held, np.ndarray) else [x]
    elif isinstance(x, str | os.PathLike):
        name = str(Path(x).absolute())
        yield _FILES.setdefault(name, _File(name))
    elif is_frame(x):
        for i in range(x.shape[1]):
            column = x.iloc[:, i]
            plain = isinstance(column.dtype, np.dtype) and column.dtype != object
            yield from owners(column.to_numpy(copy=False)) if plain else [x]
    elif isinstance(x, list | tuple) and x and all(isinstance(one, str | os.PathLike) for one in x):
        for one in x:
            yield from owners(one)
    elif type(x).__weakrefoffset__:
        yield x


def _described(x: Any) -> str:
    shape = getattr(x, "shape", None)
    kind = type(x).__name__ if not isinstance(x, str | os.PathLike) else f"file {x}"
    return f"{kind} {tuple(shape)}" if isinstance(shape, tuple) else kind
