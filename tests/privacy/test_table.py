"""Tables hold the losses they are made from, between their nodes too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb
from tests.privacy.test_loss_protocol import PairLoss, pairs, stick
from tests.reference.radial_reference import enclosure

from shapedp.privacy.losses import GaussianLoss, LaplaceLoss, Loss, MixedLoss
from shapedp.privacy.losses.radial import RadialLoss
from shapedp.privacy.losses.table import Curve, Table

SLOW: dict[str, Loss] = {
    "gaussian": GaussianLoss(1.0),
    "little noise": GaussianLoss(7.0),
    "much noise": GaussianLoss(1e-3),
    "radial": RadialLoss(26010, 26010.0, 2.0, 0.7),
    "radial with a pole": RadialLoss(50, 48.8, 1.116, 4.0),
    "multivariate Laplace": RadialLoss(1000, 1000.0, 1.0, 3.0),
    "Laplace": LaplaceLoss(2.0, np.full(400, 0.005), worst=True),
    "mixed": MixedLoss(np.full(3, 0.4), 0.5),
}


def scattered(seed: int, top: float = 30.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([[0.0], 10 ** rng.uniform(-12, 4.5, 150), rng.uniform(0, top, 150)])


@pytest.mark.parametrize("name", SLOW)
def test_a_table_holds_the_loss_between_its_nodes(name: str) -> None:
    loss = SLOW[name]
    table = Table.of(loss, 1e-2)
    at = scattered(1, 5.0)
    lower, upper = table.profile(at)
    low, high = loss.profile(at)
    assert (lower <= high).all()
    assert (low <= upper).all()
    seen = low > 1e-30
    assert np.median((upper - lower)[seen] / upper[seen]) < 1e-3
    assert table.symmetric


def test_a_finer_table_is_closer() -> None:
    at = np.linspace(0.0, 8.0, 400)
    gaps = []
    for accuracy in (1e-1, 1e-2, 1e-3):
        lower, upper = Table.of(GaussianLoss(1.0), accuracy).profile(at)
        gaps.append(float(((upper - lower) / upper).max()))
    assert gaps[1] < gaps[0] / 5
    assert gaps[2] < gaps[1] / 5


def test_tables_of_pairs_whose_profile_has_corners() -> None:
    """Piecewise linear in e^epsilon, and the two directions differ: the chords touch, the extensions must not cross."""
    for rng, loss in pairs(12, seed=2):
        nodes = np.sort(rng.uniform(0, 4, 25))
        nodes[0] = 0.0
        at = np.sort(rng.uniform(0, 4.5, 60))
        for reverse in (False, True):
            p, q = (loss.q, loss.p) if reverse else (loss.p, loss.q)
            lower, upper = Curve(nodes, *loss.profile(nodes, reverse=reverse)).at(at)
            for one, low, high in zip(at, lower, upper, strict=True):
                truth = stick(p, q, float(one))
                assert low <= truth * (1 + 1e-14)
                assert truth <= high
    table = Table.of(PairLoss(np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.3, 0.6])), 1e-2)
    assert not table.symmetric
    assert table.forward.epsilon.size < 2000


@pytest.mark.parametrize(("dim", "b", "ratio"), [(3, 2.0, 0.5), (3, 1.0, 0.8), (5, 1.5, 0.4), (7, 2.0, 0.02)])
def test_a_table_holds_interval_arithmetic(dim: int, b: float, ratio: float) -> None:
    table = RadialLoss(dim, float(dim), b, ratio).tabulated(1e-2)
    rng = np.random.default_rng(dim)
    for share in rng.uniform(0.05, 1.5, 3):
        epsilon = float(share) * ratio
        if b == 1 and epsilon >= ratio:
            continue
        truth, found = enclosure(dim, b, ratio, epsilon), table.delta(epsilon)
        assert arb(found.lower) <= truth
        assert truth <= arb(found.upper)
        assert found.relative_gap < 1e-2


def test_quick_losses_are_asked_themselves() -> None:
    for loss in (GaussianLoss(1.0), LaplaceLoss(1.0, np.ones(1)), LaplaceLoss(1.0, continuous=False)):
        assert loss.tabulated(1e-2) is loss
    assert math.isclose(
        RadialLoss(3, 3.0, 2.0, 0.5).tabulated(1e-3).delta(0.5).upper,
        GaussianLoss(0.5 * math.sqrt(2)).delta(0.5).upper,
        rel_tol=1e-4,
    )
