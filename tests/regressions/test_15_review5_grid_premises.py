"""A loss on a grid (`discretize`) rests on what the loss rests on: its certificates left out what sampling assumes."""

from __future__ import annotations

import shapedp as sdp
from shapedp.accounting import Plan, Step, compose, subsample
from shapedp.privacy import assumptions_of


def test_a_grid_keeps_the_premises() -> None:
    sampled = subsample(sdp.GaussianLoss(1.0, adjacency="zero-out"), 0.1)
    grid = sampled.discretize(nodes=200)
    assert len(assumptions_of(sampled)) == 2
    for made in (grid, grid.discretize(nodes=100), compose([(grid, 2)]), Plan((Step(grid),)), grid.with_failure(1e-9)):
        assert assumptions_of(made) == assumptions_of(sampled)
    assert sdp.certify(grid, epsilon=1.0, delta=0.5).assumptions == assumptions_of(sampled)


def test_a_plain_loss_gains_none() -> None:
    assert assumptions_of(sdp.GaussianLoss(1.0).discretize(nodes=200)) == assumptions_of(sdp.GaussianLoss(1.0))
