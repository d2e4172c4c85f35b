"""Values to call with: plausible ones by what a parameter is called and annotated, and odd ones of every kind."""

from __future__ import annotations

import decimal
import fractions
import math
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import shapedp as sdp
from shapedp import accounting, mechanisms, recipes
from shapedp.boundary.values import printable
from shapedp.sampling import source

HIDDEN = 1e6  # under the mask of a masked array


class Liar:
    """Claims a length, a truth and a shape that it does not have."""

    shape = (3, -1)
    dtype = "float64"

    def __len__(self) -> int:
        return 1 << 60

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    def __getitem__(self, key: Any) -> Any:
        raise IndexError(key)


@cache
def foreign() -> tuple[Any, ...]:
    """Scalars and arrays of other libraries, where they are installed."""
    found: list[Any] = []
    try:
        import torch

        found += [torch.tensor(1.0), torch.tensor([1.0, 2.0]), torch.tensor(math.nan), torch.tensor(True)]
    except ImportError:
        pass
    try:
        import polars

        found += [polars.Series([1.0, None]), polars.Series(["a"]), polars.lit(1.0), polars.DataFrame({"a": [1.0]})]
    except ImportError:
        pass
    try:
        import pandas

        found += [pandas.NA, pandas.Series([1.0, None]), pandas.DataFrame({"a": [1.0, 2.0]})]
    except ImportError:
        pass
    return tuple(found)


_ODD: tuple[Any, ...] = (
    *("true", "false", "no", "", "1", "nan", "gaussian", "\x1b[31m", "\0", "add-remove", "zero-out", b"1", b""),
    *(None, True, False, np.True_, ..., NotImplemented, object, print),
    *(0, -1, 1, 2, 3, 2**31, 2**62, 2**63, 10**400, -(2**63)),
    *(0.0, -0.0, 0.5, 1.0, -1.0, 5e-324, 1e-300, 1e300, math.inf, -math.inf, math.nan, 1e18, 1 - 2**-53),
    *(np.float32(1), np.float64(math.nan), np.int8(3), np.longdouble(1), np.float16(1), np.uint64(2**63)),
    *(np.array(1.0), np.array(2), np.array([]), np.array(["a"]), np.array([None]), np.array([1, math.nan])),
    *(np.zeros((2, 2)), np.ones((0, 3)), np.array([1 + 2j]), np.array([True, False]), np.ones(3, dtype="float32")),
    *(np.datetime64("2020-01-01"), np.array([2**62, 2**62]), np.array([1e308, 1e308, 1e308])),
    *(np.ma.array([1.0, HIDDEN, 1.0], mask=[0, 1, 0]), np.ma.masked, np.ma.array([1.0, 2.0], mask=True)),
    *(1j, decimal.Decimal("1.5"), fractions.Fraction(1, 3), [], [1.0], [1, "a"], [[1, 2], [3]], [None], (), (1, 2, 3)),
    *({}, {"kind": "additive"}, {"law": "gaussian", "scale": 1, "dim": 3}, set(), range(3), iter([]), Liar()),
)


@cache
def _stock() -> tuple[Any, ...]:
    """Sound objects, on which methods are called and which stand in for annotated parameters."""
    l2, l1, box = sdp.L2(1.0, 3, adjacency="replace"), sdp.L1(1.0, 3), sdp.Box([1.0, 2.0, 0.5])
    claim = {"epsilon": 1.0, "delta": 1e-6}
    built: list[Any] = [l2, l1, box, sdp.L2(1.0, shape=(2, 3)), sdp.Blocks([1.0, 2.0], [2, 1])]
    built += [sdp.Slices([1.0, 2.0], (2, 3), 0), sdp.Bracket(0.1, 0.2), sdp.L2(1.0, 1)]
    laws = [sdp.Gaussian(6.0, 3), sdp.Laplace(2.0, 3), sdp.Gaussian([5.0, 6.0, 7.0]), sdp.Radial(3, 1.0, 2.0, 4.0)]
    made = [sdp.calibrate("gaussian", one, **claim) for one in (l2, l1, box)]
    made += [sdp.calibrate("laplace", l1, epsilon=1.0, delta=0.0), sdp.calibrate("radial", l2, **claim)]
    made += [sdp.calibrate("staircase", sdp.L1(1.0, 1), epsilon=1.0, delta=0.0)]
    made += [sdp.calibrate("tensor", sdp.L2(1.0, shape=(2, 3)), **claim), sdp.Additive(laws[0], l2, 0.1, 1e-6)]
    made += [recipes.classic_gaussian(sensitivity=1.0, dim=3, **claim)] if _works(recipes.classic_gaussian) else []
    losses = [one.loss for one in made] + [sdp.GaussianLoss(0.5), sdp.LaplaceLoss(1.0), accounting.BareLoss(0.5, 1e-7)]
    losses += [sdp.compose([sdp.GaussianLoss(0.5), sdp.LaplaceLoss(0.3)]), sdp.subsample(sdp.GaussianLoss(1.0), 0.01)]
    plans = [sdp.Plan((accounting.Step(sdp.GaussianLoss(1.0), 0.1, 5),)), sdp.Plan((accounting.Step(made[0], 1.0, 2),))]
    certificates = [one.certificate for one in made]
    built += [*laws, *made, *losses, *plans, *plans[0].steps, *certificates]
    hull = sdp.Hull([[1.0, 0.0, 1.0], [0.0, 1.0, 2.0]])
    asked = sdp.Workload({"a": 2, "b": ["x", "y", "z"]}, measures={"v": (0, 1)}).marginals(1, 2).means("v", "b")
    built += [hull, asked, *asked.terms[:2], sdp.calibrate("gaussian", hull, **claim), asked.calibrate(**claim)]
    built += [mechanisms.Mixing(20, 1.0, 8.0, 1.0, 1e-6)]
    built += [made[0].release(np.zeros(3), rng=np.random.default_rng(0))]
    from fuzz.sound import objects

    return (*built, *objects())


def _works(make: Callable[..., Any]) -> bool:
    try:
        make(sensitivity=1.0, dim=3, epsilon=1.0, delta=1e-6)
    except (TypeError, ValueError):
        return False
    return True


def stock() -> tuple[Any, ...]:
    """The sound objects of `_stock`, made once."""
    return _stock()


@cache
def _of_kind(kind: type) -> tuple[Any, ...]:
    return tuple(one for one in _stock() if isinstance(one, kind))


def of_kind(rng: random.Random, kind: type) -> Any:
    """One object of the stock of this class, or None."""
    found = _of_kind(kind)
    return rng.choice(found) if found else None


def odd(rng: random.Random) -> Any:
    """One odd value."""
    if rng.random() < 0.1:
        return rng.choice(_stock())
    if rng.random() < 0.1 and foreign():
        return rng.choice(foreign())
    if rng.random() < 0.1:
        return rng.choice([1, -1]) * 10.0 ** rng.uniform(-320, 308)
    return rng.choice(_ODD)


@cache
def each_odd() -> tuple[Any, ...]:
    """All odd values in a fixed order, with sizes and numbers at the ends of floats."""
    return (*_ODD, *foreign(), 10**120, -(10**120), 1e120, -1e-300, 1e-12, 2**53 + 1)


_NAMED: dict[str, tuple[Any, ...]] = {
    "epsilon": (1.0, 0.1, 3, 1e-3, 20.0),
    "delta": (1e-6, 0.0, 1e-3, 0.1, 1e-12),
    "adjacency": (None, "add-remove", "replace", "zero-out"),
    "family": ("gaussian", "laplace", "radial", "mixed", "staircase", "tensor"),
    "error": ("squared", "absolute", "max", "l3"),
    "measure": ("squared", "absolute", "max", "l3"),
    "rule": ("basic", "renyi", "gaussian", None),
    "scheme": ("poisson", "shuffle", "without-replacement"),
    "rate": (0.1, 0.01, 1.0),
    "sampling_rate": (0.1, 0.01, 1.0),
    "gamma": (0.5, 1.0, 8.0),
    "confidence": (0.9, 0.99),
    "rng": (None,),
    "samples": (1000,),
    "shape": ((3,), (2, 3), None),
    "sizes": ([2, 1], None),
    "radii": ([1.0, 2.0], 1.0),
    "steps": (1, 5, 100),
    "times": (1, 3, 20),
    "count": (1, 3),
    "dim": (1, 3, 50),
    "n": (1, 5, 30),
    "seconds": (1.0, 5.0),
    "x": (np.zeros(3), np.ones((4, 3)), [1.0, 2.0, 3.0], np.ma.array([1.0, HIDDEN, 1.0], mask=[0, 1, 0])),
    "y": (np.zeros(4), np.array([0, 1, 0, 1])),
    "points": (10, 400),
    "pairs": (1, 3),
    "shadows": (2,),
    "parallel": (1,),
    "neighbours": (([0.0], [1.0]),),
    "mechanism": (),
}


def plausible(rng: random.Random, name: str, annotation: Any, place: str = "", owner: Any = None) -> Any:
    """A value that a careful caller could pass for this parameter of the callable at `place`, a method of `owner`."""
    from fuzz.sound import sound

    if found := sound(f"{place}.{name}", owner):
        return rng.choice(found)
    if _NAMED.get(name):
        return rng.choice(_NAMED[name])
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    for word, kind in _KINDS:
        if word in text and (found := of_kind(rng, kind)) is not None:
            return found
    for word, values in _WORDS:
        if word in text:
            return rng.choice(values)
    return rng.choice(_stock()) if rng.random() < 0.5 else odd(rng)


_KINDS: tuple[tuple[str, type], ...] = (
    ("Sensitivity", sdp.Sensitivity),
    ("Law", sdp.Law),
    ("Loss", sdp.Loss),
    ("Plan", sdp.Plan),
    ("Step", accounting.Step),
    ("Certificate", sdp.Certificate),
    ("Bracket", sdp.Bracket),
    ("Additive", sdp.Additive),
    ("Mechanism", sdp.Additive),
)
_WORDS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("bool", (True, False)),
    ("Array", (np.array([1.0, 2.0, 3.0]), [0.5, 1.0, 2.0], np.ones((3, 3)))),
    ("Floats", (np.array([0.1, 0.5, 0.9]),)),
    ("Source", (source(np.random.default_rng(1)),)),
    ("Sequence", ((1.0, 2.0, 3.0), [2, 3], (1,))),
    ("Iterable", ([sdp.GaussianLoss(0.5)], [1.0, 2.0])),
    ("float", (1.0, 0.5, 2.0, 0.01, 10.0)),
    ("int", (1, 2, 3, 10)),
    ("Path", (Path("there.json"),)),
    ("str", ("a", "gaussian", "replace")),
)


def shown(value: Any) -> str:
    """A short text for a report of a case."""
    try:
        text = repr(value)
    except Exception as error:  # a broken repr is the value's, not ours
        text = f"<{type(value).__name__}: repr raised {type(error).__name__}>"
    return printable(text.replace("\n", " "))[:120]
