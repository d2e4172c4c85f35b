"""Bad calls: a clear error that names the argument, before any randomness is drawn. Odd good calls: they work."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import shapedp as sdp
from shapedp import L1, L2, Blocks, Box, DiscreteLaplace, Gaussian, GaussianLoss, Laplace, LaplaceLoss, recipes
from shapedp.privacy import conversions
from shapedp.sampling import SecureSource, SimulatedSource

nan, inf = math.nan, math.inf
BALL = L2(1.0, dim=3)
CLAIM: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
PURE: dict[str, Any] = {"epsilon": 1.0, "delta": 0.0}
MECHANISM = sdp.calibrate("gaussian", BALL, **CLAIM)
DISCRETE = sdp.calibrate("laplace", L1(1.0, dim=3), **PURE)
ROWS = np.ones((2, 3))


class Drawn(AssertionError):
    """Randomness was drawn."""


@pytest.fixture(autouse=True)
def no_randomness(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "bad" in request.node.name:

        def draw(*_: object) -> Any:
            raise Drawn

        for kind in (SecureSource, SimulatedSource):
            monkeypatch.setattr(kind, "words", draw)
            monkeypatch.setattr(kind, "bytes", draw)


def calibrate(family: Any = "gaussian", sensitivity: Any = BALL, **changes: Any) -> Any:
    return sdp.calibrate(family, sensitivity, **{**CLAIM, **changes})


def recipe(name: str, **changes: Any) -> Any:
    return recipes.RECIPES[name](**{"dim": 3, "sensitivity": 1.0, **CLAIM, **changes})


def clip(sensitivity: Any, rows: Any, **options: Any) -> Any:
    return sensitivity.clip(rows, **{"adjacency": "replace", **options})


Bad = tuple[str, str, Callable[[], Any]]
BAD: list[Bad] = []


def bad(argument: str, label: str, call: Callable[[], Any]) -> None:
    BAD.append((argument, label, call))


for value in (
    0.0,
    -0.0,
    -1.0,
    nan,
    inf,
    -inf,
    True,
    "1",
    None,
    1j,
    [1.0],
    np.array([1.0, 2.0]),
    10**400,
    np.complex128(1),
):
    bad("epsilon", f"calibrate {value!r}", lambda v=value: calibrate(epsilon=v))
    bad("epsilon", f"certify {value!r}", lambda v=value: sdp.certify(MECHANISM, epsilon=v, delta=1e-6))
    bad("epsilon", f"classic {value!r}", lambda v=value: recipe("classic-gaussian", epsilon=v))
    bad("sensitivity", f"classic {value!r}", lambda v=value: recipe("classic-gaussian", sensitivity=v))
    bad("radius", f"L2 {value!r}", lambda v=value: L2(v, dim=3))
    bad("radius", f"L1 {value!r}", lambda v=value: L1(v, dim=3))

for value in (1.0, 1.5, -1e-9, nan, inf, True, "0.1", None, 1j, [0.1]):
    bad("delta", f"calibrate {value!r}", lambda v=value: calibrate(delta=v))
    bad("delta", f"certify {value!r}", lambda v=value: sdp.certify(MECHANISM, epsilon=1.0, delta=v))
    bad("delta", f"advise {value!r}", lambda v=value: sdp.advise(BALL, epsilon=1.0, delta=v))
    bad("delta", f"laplace recipe {value!r}", lambda v=value: recipe("laplace", delta=v))
    bad("delta", f"epsilon of a loss {value!r}", lambda v=value: GaussianLoss(1.0).epsilon(v))
    bad("p", f"failure {value!r}", lambda v=value: GaussianLoss(1.0).with_failure(v))

bad("delta", "gaussian 0", lambda: calibrate(delta=0.0))
bad("delta", "gaussian -0", lambda: calibrate(delta=-0.0))
bad("delta", "classic 0", lambda: recipe("classic-gaussian", delta=0.0))
bad("delta", "missing", lambda: sdp.calibrate("gaussian", BALL, epsilon=1.0))  # type: ignore[call-arg]
bad("epsilon", "missing", lambda: sdp.calibrate("gaussian", BALL, delta=1e-6))  # type: ignore[call-arg]
bad("delta", "missing in certify", lambda: sdp.certify(MECHANISM, epsilon=1.0))  # type: ignore[call-arg]
bad("delta", "missing in advise", lambda: sdp.advise(BALL, epsilon=1.0))  # type: ignore[call-arg]
bad("delta", "missing in a recipe", lambda: recipes.laplace(dim=1, sensitivity=1.0, epsilon=1.0))  # type: ignore[call-arg]
bad("family", "unknown", lambda: calibrate("cauchy"))
bad("family", "a number", lambda: calibrate(3))
bad("family", "none", lambda: calibrate(None))
bad("sensitivity", "a number", lambda: calibrate(sensitivity=1.0))
bad("sensitivity", "none", lambda: calibrate(sensitivity=None))
bad("sensitivity", "an array", lambda: sdp.advise(np.ones(3), **CLAIM))  # type: ignore[arg-type]
bad("shape", "option", lambda: calibrate(shape=(1, 2)))
bad("error", "unknown", lambda: calibrate(error="hubris"))

for value in (
    [1.0, 2.0],
    [1.0, 1.0, 0.0],
    [1.0, 1.0, -1.0],
    [1, nan, 1],
    [1, inf, 1],
    [],
    np.ones((3, 1)),
    ["1"] * 3,
    [True] * 3,
    [1j] * 3,
    1.0,
):
    bad("weights", f"{value!r}", lambda v=value: calibrate(weights=v))

for value in (0, -1, 1.0, True, "3", nan):
    bad("dim", f"L2 {value!r}", lambda v=value: L2(1.0, dim=v))
    bad("dim", f"L1 {value!r}", lambda v=value: L1(1.0, dim=v))
    bad("dim", f"law {value!r}", lambda v=value: Gaussian(1.0, dim=v))
    bad("dim", f"classic {value!r}", lambda v=value: recipe("classic-gaussian", dim=v))

for value in (
    [],
    [-1.0],
    [0.0, 0.0],
    [nan, 1.0],
    [inf],
    [1j],
    ["1"],
    [True],
    [None],
    [[1.0], [1.0, 2.0]],
    [2**70],
    None,
    "box",
):
    bad("profile", f"{value!r}", lambda v=value: Box(v))
    bad("radii", f"{value!r}", lambda v=value: Blocks(v, [1]))

bad("sizes", "length", lambda: Blocks([1.0, 2.0], [1]))
bad("sizes", "zero", lambda: Blocks([1.0], [0]))
bad("sizes", "float", lambda: Blocks([1.0], [1.0]))
bad("sizes", "2-d", lambda: Blocks([1.0], [[1]]))
bad("scales", "length", lambda: L2(1.0, dim=3, scales=[1.0, 2.0]))
bad("scales", "zero", lambda: L2(1.0, dim=2, scales=[1.0, 0.0]))
bad("scales", "nan", lambda: L2(1.0, dim=2, scales=[1.0, nan]))
bad("adjacency", "unknown", lambda: L2(1.0, dim=2, adjacency="sometimes"))  # type: ignore[arg-type]
bad("adjacency", "array", lambda: Box([1.0], adjacency=np.ones(2)))  # type: ignore[arg-type]

for label, value in {
    "nan": [[nan, 1, 1]],
    "inf": [[1, inf, 1]],
    "columns": np.ones((2, 4)),
    "1-d": np.ones(3),
    "3-d": np.ones((1, 1, 3)),
    "object": np.array([[1, "a", 2]], dtype=object),
    "complex": np.ones((2, 3), dtype=complex),
    "bool": np.ones((2, 3), dtype=bool),
    "text": "rows",
    "sparse nan": sparse.csr_array(np.array([[nan, 0, 1]])),
    "sparse columns": sparse.csr_array(np.ones((2, 4))),
}.items():
    for set_ in (BALL, L1(1.0, dim=3), Box([1.0, 2.0, 3.0]), Blocks([1.0, 2.0], [1, 2])):
        bad("rows", f"{set_.kind} {label}", lambda s=set_, v=value: clip(s, v))

bad("adjacency", "clip", lambda: clip(BALL, ROWS, adjacency="always"))
bad("adjacency", "clip none", lambda: clip(BALL, ROWS, adjacency=None))
bad("adjacency", "clip missing", lambda: BALL.clip(ROWS))  # type: ignore[call-arg]
bad("owner", "without max_rows", lambda: clip(BALL, ROWS, owner=[1, 2]))
bad("max_rows", "without owner", lambda: clip(BALL, ROWS, max_rows=2))
bad("owner", "length", lambda: clip(BALL, ROWS, owner=[1], max_rows=2))
bad("max_rows", "zero", lambda: clip(BALL, ROWS, owner=[1, 2], max_rows=0))
bad("max_rows", "float", lambda: clip(BALL, ROWS, owner=[1, 2], max_rows=1.5))

for label, value in {
    "nan": [nan, 0, 0],
    "inf": [0, inf, 0],
    "short": [1.0, 2.0],
    "long": np.ones(4),
    "empty": [],
    "2-d": np.ones((1, 3)),
    "scalar": 1.0,
    "object": np.array([1, None, 2], dtype=object),
    "text": ["1", "2", "3"],
    "complex": np.ones(3, dtype=complex),
    "bool": [True, False, True],
    "ragged": [[1.0], [1.0, 2.0], [1.0]],
    "none": None,
    "big integers": [2**53 + 1, 0, 0],
    "huge integers": [2**70, 0, 0],
    "out of reach": [1e300, 0, 0],
    "long double": np.ones(3, dtype=np.longdouble),
    "sparse": sparse.csr_array(np.ones((1, 3))),
    "masked nan": np.array([1.0, nan, 1.0], dtype=np.float32),
    "float16 inf": np.array([1.0, inf, 1.0], dtype=np.float16),
}.items():
    for mechanism in (MECHANISM, DISCRETE):
        bad("x", f"release {mechanism.law.kind} {label}", lambda m=mechanism, v=value: m.release(v))

bad("rng", "a seed", lambda: MECHANISM.release(np.zeros(3), rng=7))  # type: ignore[arg-type]
bad("rng", "legacy", lambda: MECHANISM.release(np.zeros(3), rng=np.random.RandomState(1)))  # type: ignore[arg-type]
bad("batch", "zero", lambda: MECHANISM.release(np.zeros((0, 3)), batch=0))
bad("batch", "float", lambda: MECHANISM.release(np.zeros((2, 3)), batch=2.0))  # type: ignore[arg-type]
bad("x", "batch mismatch", lambda: MECHANISM.release(np.zeros((2, 3)), batch=3))
bad("confidence", "one", lambda: Gaussian(1.0, 3).half_widths(1.0))
bad("confidence", "nan", lambda: Laplace(1.0, 3).half_widths(nan))
bad("confidence", "zero", lambda: DISCRETE.law.half_widths(0.0))
bad("subject|certify", "certify a law", lambda: sdp.certify(Gaussian(1.0, 3), **CLAIM))
bad("subject|certify", "certify a number", lambda: sdp.certify(1.0, **CLAIM))

for law in (Gaussian, Laplace):
    for value in (-1.0, nan, inf, [], [-1.0], [nan], [[1.0]], "1", [True], None):
        bad("scale", f"{law.__name__} {value!r}", lambda c=law, v=value: c(v, dim=None if isinstance(v, list) else 3))
    bad("dim", f"{law.__name__} mismatch", lambda c=law: c([1.0, 2.0], dim=3))
    bad("dim", f"{law.__name__} missing", lambda c=law: c(1.0))
    bad("sizes", f"{law.__name__} length", lambda c=law: c([1.0, 2.0], sizes=[1]))
bad("steps", "fraction", lambda: DiscreteLaplace(1.5, 1.0, 2))
bad("steps", "negative", lambda: DiscreteLaplace(-1.0, 1.0, 2))
bad("grid", "no power of two", lambda: DiscreteLaplace(2.0, 0.3, 2))
bad("grid", "length", lambda: DiscreteLaplace([2.0, 2.0], [1.0], 2))
bad("dim", "float", lambda: DiscreteLaplace(2.0, 0.5, 2.0))  # type: ignore[arg-type]
bad("dimension", "law and set differ", lambda: sdp.Additive(Gaussian(1.0, 2), BALL, 1.0, 1e-6))

for value in (-1.0, nan, True, "1", None, [1.0], np.ones(2), 1j):
    bad("mu", f"{value!r}", lambda v=value: GaussianLoss(v))
    bad("pure", f"{value!r}", lambda v=value: LaplaceLoss(v))
for value in ([-1.0], [nan], ["1"], [True], [[1.0]], [], [1j]):
    bad("ratios", f"{value!r}", lambda v=value: LaplaceLoss(1.0, v))
bad("ratios", "more than pure", lambda: LaplaceLoss(1.0, [2.0]))
bad("least", "above mu", lambda: GaussianLoss(1.0, 2.0))
bad("least", "nan", lambda: GaussianLoss(1.0, nan))
bad("least", "text", lambda: GaussianLoss(1.0, "1"))  # type: ignore[arg-type]
bad("epsilon", "delta of a loss", lambda: GaussianLoss(1.0).delta(-1.0))
bad("epsilon", "delta of a loss nan", lambda: LaplaceLoss(1.0).delta(nan))
bad("alpha", "one", lambda: GaussianLoss(1.0).renyi(1.0))
bad("alpha", "nan", lambda: LaplaceLoss(1.0).renyi(nan))
bad("log_ratio", "negative", lambda: GaussianLoss(1.0).shift(-0.1))
bad("total_variation", "nan", lambda: GaussianLoss(1.0).with_failure(0.1, total_variation=nan))
bad("delta", "calibrate 0", lambda: GaussianLoss.calibrate(1.0, 0.0))
bad("delta", "calibrate tiny", lambda: GaussianLoss.calibrate(1.0, 5e-324))

for value in (nan, -1.0, inf, "1", True):
    bad("mu", f"gdp_to_zcdp {value!r}", lambda v=value: conversions.gdp_to_zcdp(v))
    bad("rho", f"zcdp_to_dp {value!r}", lambda v=value: conversions.zcdp_to_dp(v, 1e-5))
    bad("epsilon", f"pure_to_rdp {value!r}", lambda v=value: conversions.pure_to_rdp(v, 2.0))
    bad("renyi", f"rdp_to_epsilon {value!r}", lambda v=value: conversions.rdp_to_epsilon(2.0, v, 1e-5))
    bad("alpha", f"rdp_to_delta {value!r}", lambda v=value: conversions.rdp_to_delta(v, 1.0, 1.0))
for value in (0.0, 1.0, nan, "1"):
    bad("delta", f"rdp_to_epsilon {value!r}", lambda v=value: conversions.rdp_to_epsilon(2.0, 1.0, v))
    bad("delta", f"zcdp_to_dp {value!r}", lambda v=value: conversions.zcdp_to_dp(1.0, v))
    bad("delta", f"mu_for {value!r}", lambda v=value: conversions.mu_for(1.0, v))

bad("radius|overflow|units|scale", "radius overflows", lambda: calibrate(sensitivity=L2(1e308, dim=3)))
bad("profile|overflow|units|scale", "profile overflows", lambda: calibrate(sensitivity=Box([1e308, 1e308])))
bad(
    "epsilon|overflow|units|scale",
    "epsilon underflows",
    lambda: calibrate("laplace", L1(1.0, dim=3), epsilon=1e-300, delta=0.0),
)


@pytest.mark.parametrize(("argument", "call"), [case[::2] for case in BAD], ids=[f"{a} {label}" for a, label, _ in BAD])
def test_bad_call(argument: str, call: Callable[[], Any]) -> None:
    with pytest.raises((ValueError, TypeError), match=rf"\b({argument})\b"):
        call()


def test_there_are_many_bad_calls() -> None:
    assert len({(argument, label) for argument, label, _ in BAD}) == len(BAD) >= 60


def test_the_spy_of_bad_calls_sees_a_draw() -> None:
    with pytest.raises(Drawn):
        MECHANISM.release(np.zeros(3))
    with pytest.raises(Drawn):
        DISCRETE.release(np.zeros(3), rng=np.random.default_rng(1))


def read_only() -> np.ndarray:
    values = np.array([1.0, 2.0, 3.0])
    values.setflags(write=False)
    return values


GOOD: dict[str, Any] = {
    "list": [1, 2, 3],
    "mixed list": [1, 2.0, np.float32(3)],
    "tuple": (1.0, 2.0, 3.0),
    "int64": np.array([1, 2, 3]),
    "int8": np.array([1, 2, 3], dtype=np.int8),
    "uint64": np.array([1, 2, 3], dtype=np.uint64),
    "float16": np.array([1, 2, 3], dtype=np.float16),
    "float32": np.array([1, 2, 3], dtype=np.float32),
    "big-endian": np.array([1, 2, 3], dtype=">f8"),
    "big-endian float32": np.array([1, 2, 3], dtype=">f4"),
    "non-contiguous": np.arange(1, 7.0)[::2] / 2 + 0.5,
    "strided": np.array([1.0, 9, 2, 9, 3])[::2],
    "reversed": np.array([3.0, 2, 1])[::-1],
    "column": np.array([[1.0, 9], [2, 9], [3, 9]])[:, 0],
    "read-only": read_only(),
    "negative zero": np.array([1.0, 2.0, 3.0]) - 0.0,
    "matrix row": np.ones((4, 3))[2] * [1, 2, 3],
}


@pytest.mark.parametrize("mechanism", [MECHANISM, DISCRETE], ids=["gaussian", "discrete"])
@pytest.mark.parametrize("label", GOOD)
def test_odd_inputs_release(label: str, mechanism: sdp.Additive) -> None:
    x = GOOD[label]
    kept = np.array(x)
    released = mechanism.release(x, rng=np.random.default_rng(5))
    plain = mechanism.release(np.array([1.0, 2.0, 3.0]), rng=np.random.default_rng(5))
    assert released.value.shape == (3,)
    assert released.value.dtype == (np.float32 if label == "float32" else np.float64)
    assert np.allclose(released.value, plain.value, rtol=1e-5)
    assert np.array_equal(np.array(x), kept)
    assert np.asarray(released).shape == (3,)
    assert released.value.dtype.isnative


@pytest.mark.parametrize("epsilon", [1, np.float32(1), np.int64(1), np.array(1.0), np.float64(1)], ids=repr)
def test_numbers_of_every_kind_calibrate(epsilon: Any) -> None:
    mechanism = sdp.calibrate("gaussian", BALL, epsilon=epsilon, delta=np.float64(1e-6))
    assert mechanism.law.scales[0] == MECHANISM.law.scales[0]
    assert sdp.Additive.from_json(mechanism.to_json()).certificate.bracket == mechanism.certificate.bracket


@pytest.mark.parametrize(
    "profile",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3], dtype=np.int32),
        np.array([1, 2, 3], dtype=np.float16),
        np.array([1, 2, 3], dtype=">f8"),
        np.array([1.0, 0, 2, 0, 3])[::2],
    ],
    ids=repr,
)
def test_profiles_of_every_kind(profile: Any) -> None:
    expected = sdp.calibrate("gaussian", Box([1.0, 2.0, 3.0]), **CLAIM).law.scales
    assert np.array_equal(sdp.calibrate("gaussian", Box(profile), **CLAIM).law.scales, expected)
    assert np.array_equal(sdp.calibrate("gaussian", Box([1.0, 2, 3]), weights=profile, **CLAIM).law.scales.shape, (3,))


@pytest.mark.parametrize(
    "rows",
    [
        ROWS.astype(np.int8),
        ROWS.astype(np.float16),
        ROWS.tolist(),
        ROWS.T.copy().T,
        ROWS.astype(">f8"),
        sparse.csr_array(ROWS),
        sparse.coo_array(ROWS),
        ROWS[::-1],
        np.empty((0, 3)),
    ],
    ids=lambda rows: type(rows).__name__ + str(getattr(rows, "dtype", "")) + str(getattr(rows, "shape", "")),
)
@pytest.mark.parametrize(
    "set_", [BALL, L1(1.0, dim=3), Box([1.0, 2.0, 3.0]), Blocks([1.0, 2.0], [1, 2])], ids=lambda s: s.kind
)
def test_rows_of_every_kind_clip(set_: sdp.Sensitivity, rows: Any) -> None:
    clipped, bound = clip(set_, rows)
    count = len(rows) if isinstance(rows, list) else rows.shape[0]
    assert clipped.shape == (count, 3)
    assert bound.adjacency == "replace"
