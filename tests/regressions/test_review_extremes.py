"""Numbers at the ends of the range: a bracket or a refusal in words, and bounds that hold below the normal floats."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import BareLoss, compose
from shapedp.accounting.response import ResponseLoss
from shapedp.cli.main import main
from shapedp.mechanisms import mechanism_from_json
from shapedp.noise import Radial
from shapedp.privacy import GaussianLoss, LaplaceLoss
from shapedp.privacy.losses import RadialLoss

TINY = [5e-324, 1.5e-323, 1e-310, 3e-309, 2.3e-308]


@pytest.mark.parametrize("pure", TINY)
def test_subnormal_epsilons(pure: float) -> None:
    """delta(0) of a loss of two values +-E is tanh(E/2), which is E/2 to within E^3."""
    for loss, share in ((BareLoss(pure), 2), (LaplaceLoss(pure, np.array([pure]), worst=True), 2)):
        for at in (0.0, pure / 4, pure * (1 - 2.0**-10)):
            truth = (Fraction(pure) - Fraction(at)) / share
            found = loss.delta(at)
            assert Fraction(found.lower) <= truth <= Fraction(found.upper)
            assert loss.delta(pure).upper == 0


@pytest.mark.parametrize("pure", [*TINY, 1e-300])
def test_compositions_of_tiny_losses_are_bracketed(pure: float) -> None:
    found = compose([(BareLoss(pure), 10)]).delta(0.0)
    assert 0 <= Fraction(found.lower) <= 10 * Fraction(pure) / 2 <= Fraction(found.upper) * 100
    assert found.upper < 1e-9


def test_response_is_never_below_the_truth() -> None:
    assert ResponseLoss(1 - 2.0**-53, 2).delta(0.0).upper >= 2.0**-54


@pytest.mark.parametrize("delta", [5e-324, 1e-305])
def test_a_delta_that_radial_bounds_do_not_resolve(delta: float) -> None:
    found = RadialLoss(5, 5.0, 2.0, 0.5).epsilon(delta)
    assert 0 < found.lower <= found.upper == np.inf


@pytest.mark.parametrize("options", [{"step": 1000.0}, {"nodes": 1}])
def test_a_step_beyond_the_range_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="step"):
        GaussianLoss(50.0).discretize(**options)


@pytest.mark.parametrize(
    ("a", "b", "scale"), [(1e308, 1.0, 1.0), (3.0, 1.0, 1e308), (3.0, 1e308, 1.0), (1.0, 1e-3, 1.0)]
)
def test_radial_noise_beyond_the_range_is_refused(a: float, b: float, scale: float) -> None:
    with pytest.raises(ValueError, match="range of floats"):
        Radial(3, a, b, scale)


def test_an_infinite_epsilon_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", "--bare", "1", "1e-3", "--steps", "2", "--delta", "1e-6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == {"lower": None, "upper": None}


STACK = """
import json, sys
from shapedp.mechanisms import mechanism_from_json
assert "torch" not in sys.modules
made = mechanism_from_json(json.loads(sys.stdin.read()))
assert "torch" not in sys.modules
print(made.certificate.bracket.upper)
"""


def test_a_stack_is_read_without_torch() -> None:
    laws = [{"law": "tensor-gaussian", "modes": [{"scales": [2.0, 3.0], "rotation": None}]}] * 2
    law = {"law": "stack", "laws": laws}
    ball = sdp.L2(1.0, dim=4, adjacency="add-remove").to_json()
    data = {"schema": 1, "kind": "additive", "law": law, "sensitivity": ball, "epsilon": 1.0, "delta": 1e-3}
    own = mechanism_from_json(data | {"recipe": None}).certificate.bracket.upper
    assert own >= GaussianLoss(0.5).delta(1.0).lower
    read = subprocess.run(
        [sys.executable, "-c", STACK],
        input=json.dumps(data),
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(sdp.__file__).parent.parent,
    )
    assert float(read.stdout) == own


def test_an_optimistic_distribution_is_below_the_truth() -> None:
    """The lower masses of an inexact step lie a little below the grid, which was passed over."""
    accounting = pytest.importorskip("dp_accounting")
    assert accounting
    from shapedp.accounting import to_dp_accounting

    for pure, step in ((1.0, 0.1), (0.3, 0.1), (0.7, 0.1)):
        loss = BareLoss(pure)
        low = to_dp_accounting(loss, step=step, pessimistic=False)
        at = np.linspace(0.0, pure, 301)
        assert (np.array([low.get_delta_for_epsilon(e) for e in at]) <= loss.profile(at)[1]).all()
