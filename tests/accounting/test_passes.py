"""Passes in plans: what they compose to, what is refused, what a file keeps."""

from __future__ import annotations

import json

import pytest

import shapedp as sdp
from shapedp.accounting import BareLoss, Plan, Step, allocate, compose, plan
from shapedp.privacy.losses.allocation import AllocatedLoss
from shapedp.privacy.losses.shuffle import ShuffledLoss


def noise(adjacency: str | None) -> sdp.Mechanism:
    return sdp.calibrate("gaussian", sdp.L2(1.0, dim=3, adjacency=adjacency), epsilon=1.0, delta=1e-6)


def test_a_plan_of_passes_is_their_composition() -> None:
    step = Step(sdp.GaussianLoss(1.0, adjacency="add-remove"), count=3, scheme="allocation", batches=20)
    direct = compose([(AllocatedLoss(sdp.GaussianLoss(1.0), 20), 3)])
    assert Plan((step,)).epsilon(1e-6) == direct.epsilon(1e-6)
    assert step.adjacency == "add-remove"


@pytest.mark.parametrize("scheme", ["allocation", "shuffle"])
def test_a_file_keeps_the_pass(scheme: str) -> None:
    relation = "add-remove" if scheme == "allocation" else "zero-out"
    whole = Plan((Step(noise(relation), count=2, scheme=scheme, batches=7),))  # type: ignore[arg-type]
    data = json.loads(json.dumps(whole.to_json()))
    again = Plan.from_json(data)
    assert again.to_json() == whole.to_json()
    assert again.epsilon(1e-5) == whole.epsilon(1e-5)
    data["steps"][0]["batches"] = 1
    assert Plan.from_json(data).epsilon(1e-5) != whole.epsilon(1e-5) or scheme == "shuffle"


def test_the_order_of_guarantees() -> None:
    """Placing at random lies between Poisson samples and a known order; a shuffle is certified as a known order."""
    one, batches = sdp.GaussianLoss(0.9), 25
    poisson = Plan((Step(one, 1 / batches, batches),)).epsilon(1e-6)
    placed = Plan((Step(one, scheme="allocation", batches=batches),)).epsilon(1e-6)
    shuffled = Plan((Step(one, scheme="shuffle", batches=batches),)).epsilon(1e-6)
    assert poisson.upper * 0.5 < placed.lower
    assert placed.upper < shuffled.upper == one.epsilon(1e-6).upper
    assert placed.upper < shuffled.lower


def test_the_least_noise_for_passes() -> None:
    found = plan(epsilon=2.0, delta=1e-5, sampling_rate=1.0, steps=3, scheme="allocation", batches=40, relative=1e-3)
    assert found.delta.upper <= 1e-5
    less = Step(sdp.GaussianLoss(1.01 / found.scale), count=3, scheme="allocation", batches=40)
    assert Plan((less,)).delta(2.0).lower > 1e-5


def test_what_is_refused() -> None:
    loss = sdp.GaussianLoss(1.0)
    with pytest.raises(ValueError, match="leave sampling_rate at 1"):
        Step(loss, 0.5, scheme="allocation", batches=4)
    with pytest.raises(ValueError, match="batches go with"):
        Step(loss, 0.5, batches=4)
    with pytest.raises(ValueError, match="batches"):
        Step(loss, scheme="allocation", batches=0)
    with pytest.raises(ValueError, match="no adjacency is named"):
        allocate(noise(None), 5)
    with pytest.raises(ValueError, match="not replace"):
        allocate(noise("replace"), 5)
    with pytest.raises(ValueError, match="none under add-remove"):
        _ = Step(noise("add-remove"), scheme="shuffle", batches=4).loss


@pytest.mark.parametrize("noise_", ["laplace", "bare", "failing", "composed"])
def test_passes_of_every_sort_of_run(noise_: str) -> None:
    """Runs whose parts are new objects each time, or whose loss may be infinite, ended in endless recursion."""
    runs: dict[str, sdp.privacy.Loss] = {
        "laplace": sdp.LaplaceLoss(1.0, [1.0], True),
        "bare": BareLoss(1.0),
        "failing": BareLoss(1.0, 1e-7),
        "composed": compose([(BareLoss(0.5), 2)]),
    }
    one = runs[noise_]
    placed = compose([(allocate(one, 5, adjacency="add-remove"), 3)]).delta(1.0)
    shuffled = compose([(ShuffledLoss(one, 5), 3)]).delta(1.0)
    known = compose([(one, 3)]).delta(1.0)
    assert 0 < placed.lower <= placed.upper < known.lower
    assert shuffled.lower <= known.upper <= shuffled.upper <= known.upper * 1.001
