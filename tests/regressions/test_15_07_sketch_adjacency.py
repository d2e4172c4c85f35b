"""Published sketches ignored adjacency="replace": certified, released and verified at a false delta.

ModifiedGaussMix(20, 1, 5, 1, 5.5, 1, 1.0667e-8, adjacency="replace") was certified; its delta is 6.97e-8.
"""

from __future__ import annotations

import numpy as np
import pytest

import shapedp as sdp
from shapedp.papers.gaussian_mixing.recipes import ModifiedGaussMix
from shapedp.papers.gaussian_mixing.sheffet import ThresholdMixing
from shapedp.privacy.losses.mixing import MixingLoss

MODIFIED = (20, 1.0, 5.0, 1.0, 5.5, 1.0, 1.0667e-8)
LOUD = (20, 1.0, 50.0, 5.0, 5.5, 1.0, 1e-3)
THRESHOLD = (20, 1.0, 40.0, 300.0, 4.0, 40.0, 1.0, 1e-6)


def test_replacement_is_computed() -> None:
    zeroed, replaced = (ModifiedGaussMix(*MODIFIED, adjacency=near) for near in ("zero-out", "replace"))
    exact = MixingLoss(20, 1 / 26, "replace").delta(1.0)
    assert exact.lower == pytest.approx(6.97e-8, rel=1e-3)
    assert replaced.loss.delta(1.0).upper >= exact.lower
    assert zeroed.certificate.verdict == "certified"
    assert replaced.certificate.verdict != "certified"
    with pytest.raises(sdp.UndecidedError):
        replaced.release(np.eye(3))


@pytest.mark.parametrize(("kind", "given"), [(ModifiedGaussMix, LOUD), (ThresholdMixing, THRESHOLD)])
@pytest.mark.parametrize("sizes", [{}, {"records": 100, "dim": 3}])
def test_replacement_costs_more_and_is_labelled(kind: type, given: tuple[float, ...], sizes: dict[str, int]) -> None:
    zeroed, replaced = (kind(*given, adjacency=near, **sizes) for near in ("zero-out", "replace"))
    assert (zeroed.loss.adjacency, replaced.loss.adjacency) == ("zero-out", "replace")
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        less, more = zeroed.loss.delta(epsilon), replaced.loss.delta(epsilon)
        assert more.upper > less.upper
        assert more.lower >= less.lower * (1 - 1e-9)  # a row exchanged for nothing is a replacement too
    with pytest.raises(ValueError, match="cannot mix"):
        sdp.compose([zeroed, replaced])
    data = replaced.certificate.to_json()
    assert sdp.verify(sdp.Certificate.from_json(data)).bracket == replaced.certificate.bracket
    data["adjacency"] = "zero-out"
    with pytest.raises(ValueError, match="zero-out"):
        sdp.verify(sdp.Certificate.from_json(data))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_exchanged_rows_stay_below_the_bound(epsilon: float) -> None:
    """Two orthogonal rows exchanged, every other record zero: noise gamma^2 C^2 is added, whatever the data."""
    for gamma in (1.5, 3.0, 5.0):
        mechanism = ModifiedGaussMix(20, 1.0, gamma, 1.0, 5.5, 1.0, 1e-6, adjacency="replace")
        exact = MixingLoss(20, 1 / (1 + gamma**2), "replace").delta(epsilon)
        assert mechanism.loss.delta(epsilon).upper >= exact.lower
