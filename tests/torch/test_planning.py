"""The noise of a training is the least that meets its claim, for the law really used."""

from __future__ import annotations

import pytest
import torch
from tests.torch.helpers import network
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.torch import LaplaceNoise, Layout, PerValue


@pytest.mark.parametrize(("epsilon", "batch", "steps"), [(1.0, 5, 20), (3.0, 100, 50)])
def test_the_claim_is_met_and_nearly_spent(epsilon: float, batch: int, steps: int) -> None:
    model = torch.nn.Linear(3, 1)
    loader = DataLoader(TensorDataset(torch.zeros(100, 3), torch.zeros(100, 1)), batch_size=batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    _, private, _ = sdp.torch.make_private(model, optimizer, loader, clip=1.0, epsilon=epsilon, delta=1e-5, steps=steps)
    bracket = private.privacy_.certificate.bracket
    assert bracket.upper <= 1e-5
    assert bracket.lower > 0.98e-5


def test_a_claim_without_delta_is_refused() -> None:
    model = torch.nn.Linear(3, 1)
    loader = DataLoader(TensorDataset(torch.zeros(100, 3), torch.zeros(100, 1)), batch_size=5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="delta must be > 0"):
        sdp.torch.make_private(model, optimizer, loader, clip=1.0, epsilon=1.0, delta=0.0, steps=3)


@pytest.mark.slow
def test_laplace_noise_is_planned_by_its_own_loss() -> None:
    layout = Layout.of(network())
    family = LaplaceNoise().family(PerValue(1.0).sensitivity(layout), layout)
    found = sdp.plan(
        epsilon=3.0,
        delta=1e-5,
        sampling_rate=0.2,
        steps=20,
        family=lambda scale: family(scale).discretize(),
        relative=1e-3,
        seconds=600.0,
    )
    reached = sdp.compose([(sdp.subsample(family(found.scale), 0.2), 20)], accuracy=1e-3).delta(3.0)
    assert reached.upper <= 1e-5
    assert reached.lower > 0.97e-5
