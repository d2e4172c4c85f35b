"""The i.n.i.d. noise paper: its calibrations, its theorems as properties, its studies in quick mode."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapedp.mechanisms import calibrate
from shapedp.papers.recipes import inid
from shapedp.privacy import GaussianLoss
from shapedp.sensitivity import Box

STUDIES = Path(__file__).parents[3] / "experiments" / "inid_noise"
BOUNDS = np.array([0.85, 0.15, 2.0, 0.6])
RECIPES = (
    inid.iid_gaussian,
    inid.spr_gaussian,
    inid.inid_gaussian,
    inid.iid_laplace,
    inid.spr_laplace,
    inid.inid_laplace,
    inid.inid_laplace_approximate,
)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_calibration_is_certified(recipe):
    for epsilon, delta in ((0.5, 1e-6), (3.0, 1e-3)):
        mechanism = recipe(profile=BOUNDS, epsilon=epsilon, delta=delta)
        assert mechanism.certificate.verdict == "certified", mechanism.certificate.explain()


@pytest.mark.parametrize("study", ["inid_figures", "inid_tables", "exact_laplace", "mixed"])
def test_studies_reproduce_their_numbers(study, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [study])
    monkeypatch.setattr(sys, "path", [str(STUDIES), *sys.path])
    runpy.run_path(str(STUDIES / f"{study}.py"), run_name="__main__")
    assert capsys.readouterr().out


@settings(max_examples=80, deadline=None)
@given(st.floats(0.01, 6), st.floats(-9, -1))
def test_appendix_b_brackets_the_root_and_bisects_to_it(epsilon, log_delta):
    delta = 10**log_delta
    low, high = inid.bisection_bracket(epsilon, delta)
    root = GaussianLoss.calibrate(epsilon, delta).mu
    assert low <= root * (1 + 1e-9)
    assert root <= high * (1 + 1e-9)
    assert inid.bisection_mu(epsilon, delta) == pytest.approx(root, rel=1e-8)


def test_theorems_4_and_5_are_what_calibrate_finds():
    gaussian = inid.inid_gaussian(profile=BOUNDS, epsilon=0.5, delta=1e-6)
    np.testing.assert_allclose(
        gaussian.law.scales, calibrate("gaussian", Box(BOUNDS), epsilon=0.5, delta=1e-6).law.scales, rtol=1e-9
    )
    laplace = inid.inid_laplace(profile=BOUNDS, epsilon=0.5, delta=0.0)
    np.testing.assert_allclose(
        laplace.law.scales, calibrate("laplace", Box(BOUNDS), epsilon=0.5, delta=0.0).law.scales, rtol=1e-5
    )


def test_corollary_6_gains_nothing_where_the_exact_profile_gains_a_lot():
    bounds = np.ones(100)
    pure = inid.inid_laplace(profile=bounds, epsilon=1.0, delta=0.0).expected_squared_error
    printed = inid.inid_laplace_approximate(profile=bounds, epsilon=1.0, delta=1e-6).expected_squared_error
    exact = calibrate("laplace", Box(bounds), epsilon=1.0, delta=1e-6).expected_squared_error
    assert pure * (1 - 1e-5) < printed < pure
    assert exact < pure / 5


positive = st.lists(st.floats(0.01, 10), min_size=2, max_size=8).map(np.array)


def transferred(values: np.ndarray, share: float) -> np.ndarray:
    """A profile that `values` majorizes: the largest gives to the smallest (a Robin Hood transfer)."""
    out = np.sort(values)
    gift = share * (out[-1] - out[0]) / 2
    return np.concatenate([[out[0] + gift], out[1:-1], [out[-1] - gift]])


@settings(max_examples=80, deadline=None)
@given(positive, st.floats(0.05, 1.0))
def test_theorems_9_and_10_more_disparity_less_error(values, share):
    flatter = transferred(values, share)
    assert inid.majorizes(values, flatter)
    wide = float(values.max() / values.min()) > 1.001
    assert not wide or not inid.majorizes(flatter, values)

    def laplace(profile):
        return inid.inid_laplace(profile=profile, epsilon=1.0, delta=0.0).expected_squared_error

    def gaussian(squares):
        return inid.inid_gaussian(profile=np.sqrt(squares), epsilon=1.0, delta=1e-6).expected_squared_error

    assert laplace(values) <= laplace(flatter) * (1 + 1e-9)
    assert gaussian(values) <= gaussian(flatter) * (1 + 1e-9)
    if wide:
        assert laplace(values) < laplace(flatter)
        assert gaussian(values) < gaussian(flatter)
        assert inid.gini(values) > inid.gini(flatter)


@settings(max_examples=60, deadline=None)
@given(positive)
def test_theorem_7_the_factor_is_nu_squared_against_the_worst_case_bounds(values):
    """The theorem compares with i.i.d. noise for Delta_2 <= sqrt(K) max l, Delta_1 <= K max l: equations (14), (15)."""
    nu, k, top = inid.disparity(values), values.size, float(values.max())
    mu = inid.bisection_mu(1.0, 1e-6)
    gaussian = inid.inid_gaussian(profile=values, epsilon=1.0, delta=1e-6).expected_squared_error
    assert gaussian == pytest.approx(nu**2 * k**2 * top**2 / mu**2, rel=1e-9)
    laplace = inid.inid_laplace(profile=values, epsilon=1.0, delta=0.0).expected_squared_error
    assert laplace <= nu**2 * 2 * k**3 * top**2 * (1 + 1e-9)


def test_scale_perturb_rescale_is_no_better_than_one_scale():
    for spr, iid in ((inid.spr_gaussian, inid.iid_gaussian), (inid.spr_laplace, inid.iid_laplace)):
        claim = {"profile": BOUNDS, "epsilon": 1.0, "delta": 1e-6}
        assert spr(**claim).expected_squared_error >= iid(**claim).expected_squared_error * (1 - 1e-9)


def test_gini_by_its_definition():
    pairs = np.abs(BOUNDS[:, None] - BOUNDS[None, :]).sum()
    assert inid.gini(BOUNDS) == pytest.approx(pairs / (2 * BOUNDS.size * BOUNDS.sum()), rel=1e-12)
    assert inid.gini(np.ones(5)) == pytest.approx(0.0, abs=1e-15)


def test_bad_calls_are_refused():
    with pytest.raises(ValueError, match="profile"):
        inid.iid_laplace(profile=[1.0, 0.0], epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match="delta"):
        inid.inid_gaussian(profile=[1.0], epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match="length"):
        inid.majorizes([1.0], [1.0, 2.0])
