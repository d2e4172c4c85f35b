"""A guarantee that is only stated shows nothing from below, wherever it goes: into samples, into fits put together.

Two samples at rate 0.1 of a stated (1, 1e-3) had delta >= 2e-4 at every epsilon, though it may be that nothing is
released at all; certificates without a description, put together, were taken for the worst mechanism they allow.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import shapedp as sdp
from shapedp.accounting import BareLoss, Plan, Step, compose
from shapedp.accounting.subsample import SCHEMES, Scheme, SubsampledLoss

STATED = BareLoss(1.0, 1e-3, attained=False)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("count", [1, 2, 50])
def test_a_sampled_statement_shows_nothing(scheme: Scheme, count: int) -> None:
    whole = Plan((Step(STATED, 0.1, count, scheme),))
    assert whole.delta(5.0).lower == 0
    assert whole.epsilon(1e-6).lower == 0
    assert sdp.certify(whole, epsilon=5.0, delta=1e-5).verdict == "undecided"
    assert whole.delta(5.0).upper >= 1 - (1 - 1e-4) ** count


@pytest.mark.parametrize("scheme", SCHEMES)
def test_from_above_it_counts_as_the_worst(scheme: Scheme) -> None:
    worst = SubsampledLoss(BareLoss(1.0, 1e-3), 0.1, scheme)
    stated = SubsampledLoss(STATED, 0.1, scheme)
    for epsilon in (0.05, 1.0):
        assert compose([(stated, 3)]).delta(epsilon).upper >= compose([(worst, 3)]).delta(epsilon).lower


def test_beside_other_releases_only_these_show() -> None:
    alone, both = sdp.GaussianLoss(1.0), compose([sdp.GaussianLoss(1.0), (SubsampledLoss(STATED, 0.5), 2)])
    assert both.delta(1.0).lower <= alone.delta(1.0).upper < both.delta(1.0).upper


def test_fits_whose_certificates_describe_nothing_are_not_refuted() -> None:
    composed = pytest.importorskip("shapedp.learn.composed").composed
    made = sdp.calibrate("gaussian", sdp.L2(1.0, dim=3, adjacency="replace"), epsilon=1.0, delta=1e-6)
    bare = [replace(made.certificate, subject=None, scope=scope) for scope in ("one", "two")]
    found = composed(bare, scope="both", epsilon=1.5, delta=1e-6)
    truth = compose([(made, 2)]).delta(1.5)
    assert truth.upper < 1e-6  # the claim is true
    assert found.bracket.lower <= truth.upper
    assert found.verdict == "undecided"
    assert composed(bare, scope="both", epsilon=2.0, delta=2.1e-6).verdict == "certified"
