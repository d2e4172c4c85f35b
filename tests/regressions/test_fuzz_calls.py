"""Calls that ended in an undocumented exception or a NaN, found by the fuzz suite; each is refused in words."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.boundary.booleans import public_objects

import shapedp as sdp
from shapedp.learn.solvers.covariance import subspace_error
from shapedp.noise.laplace import DiscreteLaplace
from shapedp.noise.mixed import Mixed
from shapedp.noise.stack import Stack
from shapedp.noise.staircase import Staircase
from shapedp.noise.tensor import TensorGaussian
from shapedp.numerics import sum_bounds
from shapedp.report import claims_page
from shapedp.sampling import discrete_laplace, exponential_coins, geometric, source


class Liar:
    """Claims a length that it does not have."""

    def __len__(self) -> int:
        return 1 << 60

    def __getitem__(self, key: Any) -> Any:
        raise IndexError(key)


ODD: tuple[Any, ...] = (
    *(None, 1, "a", [], [1.0], {}, {"law": []}, np.array(1.0), np.ones((0, 3)), np.uint64(2**63), np.ma.masked),
    *(np.array(["a"]), pd.Series([1.0, None]), pl.DataFrame({"a": [1.0]}), {"modes": 1, "scale": {}, "amounts": [[]]}),
)
READERS = {
    name: thing.from_json
    for name, thing in sorted(public_objects().items())
    if inspect.isclass(thing) and hasattr(thing, "from_json")
}
LAWS = (sdp.Gaussian(6.0, 3), sdp.Laplace(2.0, 3), sdp.Radial(3, 1.0, 2.0, 4.0), TensorGaussian([2, 3]))
CERTIFIED = sdp.calibrate("laplace", sdp.L1(1.0, 3), epsilon=1.0, delta=0.0)


def test_readers_are_found() -> None:
    assert len(READERS) > 12


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("data", ODD, ids=lambda one: type(one).__name__)
def test_what_describes_nothing_is_refused(name: str, data: Any) -> None:
    reader = READERS[name]
    arguments = [data] * len(inspect.signature(reader).parameters)
    with pytest.raises((ValueError, TypeError)):
        reader(*arguments)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
@pytest.mark.parametrize("p", [math.nan, math.inf, -1.0, 1e300, 10**400, "2"])
def test_moments_of_an_odd_order_are_refused(law: sdp.Law, p: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        law.absolute_moments(p)


@pytest.mark.parametrize(
    "query", [sdp.L2(1.0, 3), sdp.L1(1.0, 3), sdp.Box([1.0]), sdp.Blocks([1.0], [2]), sdp.Slices([1.0, 2.0], (2, 3), 0)]
)
@pytest.mark.parametrize("factor", [10**400, math.nan, -1.0, math.inf, "2"])
def test_a_set_is_scaled_by_a_number(query: sdp.Sensitivity, factor: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        query.scaled(factor, None)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
@pytest.mark.parametrize("weights", [np.float64(math.nan), pl.Series(["a"]), [1.0, math.nan, 1.0], [1.0], "a", Liar()])
def test_weights_are_one_number_for_each_coordinate(law: sdp.Law, weights: Any) -> None:
    for measure in ("squared", "max"):
        with pytest.raises((ValueError, TypeError)):
            law.expected_error(measure, weights)


def test_a_moment_beyond_floats_is_refused() -> None:
    with pytest.raises(ValueError, match="range of floats"):
        sdp.Laplace(1e200, 3).absolute_moments(2.0)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_noise_is_added_to_numbers(law: sdp.Law) -> None:
    for x in (Liar(), "a", np.ma.array(np.zeros(law.dim), mask=True)):
        with pytest.raises((ValueError, TypeError)):
            law.add_to(x, source(np.random.default_rng(0)))  # type: ignore[arg-type]


REFUSED: dict[str, Callable[[], Any]] = {
    "a radius beyond floats": lambda: sdp.Radial(50, 1.0, 0.01, 2.0),
    "modes that are none": lambda: TensorGaussian("add-remove"),
    "a sum of a liar": lambda: sum_bounds(Liar()),  # type: ignore[arg-type]
    "steps of a liar": lambda: DiscreteLaplace(Liar(), 1.0, 3),  # type: ignore[arg-type]
    "a staircase of a liar": lambda: Staircase(4, Liar(), 1, 1.0),  # type: ignore[arg-type]
    "an error beyond floats": lambda: sum_bounds(np.ones(3), 10**400),
    "an error that is no number": lambda: sum_bounds(np.ones(3), math.nan),
    "coins of a matrix": lambda: exponential_coins(np.ones((3, 3), dtype=int), 10, source(np.random.default_rng(0))),
    "coins of floats": lambda: exponential_coins(np.array([0.5]), 10, source(np.random.default_rng(0))),
    "coins below zero": lambda: exponential_coins(np.array([1]), -(2**63), source(np.random.default_rng(0))),
    "draws of a liar": lambda: geometric(Liar(), 3, source(np.random.default_rng(0))),  # type: ignore[arg-type]
    "draws of a liar's steps": lambda: discrete_laplace(Liar(), 3, source(np.random.default_rng(0))),  # type: ignore[arg-type]
    "blocks of a liar's sizes": lambda: sdp.Laplace([0.5, 1.0], sizes=Liar()),  # type: ignore[arg-type]
    "more draws than can be laid out": lambda: LAWS[0].sample(2**31, source(np.random.default_rng(0))),
    "a page of no claims": lambda: claims_page("no"),  # type: ignore[arg-type]
    "a page of no findings": lambda: claims_page(findings="gaussian"),  # type: ignore[arg-type]
    "bases that lie": lambda: subspace_error(Liar(), [[1.0]]),
    "bases with NaN": lambda: subspace_error([[math.nan]], [[1.0]]),
    "a table of no accuracy": lambda: CERTIFIED.loss.tabulated(math.nan),
    "a release of a ragged list": lambda: sdp.Release([1, [2]], CERTIFIED.law, CERTIFIED.certificate),  # type: ignore[arg-type]
    "a release of NaN": lambda: sdp.Release(np.array([math.nan]), CERTIFIED.law, CERTIFIED.certificate),
    "a release without a law": lambda: sdp.Release(np.zeros(3), 1.0, CERTIFIED.certificate),  # type: ignore[arg-type]
    "a release without a certificate": lambda: sdp.Release(np.zeros(3), CERTIFIED.law, 1.0),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_in_words(what: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        REFUSED[what]()


def test_a_release_under_a_refuted_claim_says_so() -> None:
    refuted = sdp.Additive(sdp.Laplace(0.5, 3), sdp.L1(1.0, 3), 1.0, 0.0).certificate
    assert refuted.verdict != "certified"
    with pytest.raises(ValueError, match="unsafe=True"):
        sdp.Release(np.zeros(3), CERTIFIED.law, refuted)
    assert sdp.Release(np.zeros(3), CERTIFIED.law, refuted, unsafe=True).unsafe


def test_a_distance_of_another_library_is_no_truth() -> None:
    pytest.importorskip("opendp")
    torch = pytest.importorskip("torch")
    from shapedp.accounting.interchange import from_opendp

    with pytest.raises(AttributeError, match=r"input_metric|map"):  # of the caller's object, not of a tensor's truth
        from_opendp(torch.tensor(True), torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize("level", [-math.inf, math.nan, 2.0])
def test_a_radius_is_of_a_level_between_0_and_1(level: float) -> None:
    for law in (LAWS[0], LAWS[2]):
        with pytest.raises(ValueError, match="confidence"):
            law.radius_level(level)


def test_a_stack_is_of_tensor_laws() -> None:
    for laws in (1, (), (LAWS[0],)):
        with pytest.raises(TypeError, match="tensor law"):
            Stack(laws)  # type: ignore[arg-type]


def test_a_law_without_a_kind_is_not_calibrated() -> None:
    with pytest.raises(sdp.DoesNotApplyError, match="not calibrated"):
        sdp.Law.fitted(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("keep", [math.inf, 5e-324, np.array([1, 0, 1]), np.zeros(3, bool), np.ones(4, bool)])
def test_coordinates_are_kept_by_a_mask(keep: Any) -> None:
    for law in (*LAWS[:2], CERTIFIED.law, Mixed([1.0, 2.0, 3.0], np.array([True, False, True]))):
        with pytest.raises(TypeError, match="3 booleans"):
            law.of_coordinates(keep)


@pytest.mark.parametrize("order", [1.0, 0.5, math.nan])
def test_an_order_is_above_1(order: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        sdp.calibrate("laplace", sdp.L1(1.0, 3), epsilon=1.0, delta=1e-6).loss.sum_renyi(order)  # type: ignore[attr-defined]
