"""The noise of a training is the least that meets its claim, for the law really used."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
import torch
from tests.torch.helpers import private, step
from tests.torch.models import PaperCNN
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.accounting import Step
from shapedp.torch import PerValue, RadialNoise


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


OTHERS = [
    (1.0, "radial"),
    pytest.param(1.0, RadialNoise(a=50.0, b=1.5), marks=pytest.mark.slow),
    pytest.param(PerValue(1.0), "laplace", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("clip", "noise"), OTHERS, ids=["gaussian shape", "radial", "laplace"])
def test_other_noise_is_planned_by_its_own_loss_and_certified(clip: Any, noise: Any) -> None:
    model, optimizer, loader, training = private(clip=clip, noise=noise, epsilon=3.0, steps=4)
    found = training.certificate
    assert found.verdict == "certified"
    assert 0.97e-5 < found.bracket.lower <= found.bracket.upper <= 1e-5
    again = sdp.verify(sdp.Certificate.from_json(json.loads(json.dumps(found.to_json()))))
    assert again.verdict == "certified"
    for features, labels in itertools.islice(loader, 4):
        step(model, optimizer, features, labels)
    spent = training.epsilon()
    assert 2.97 < spent.lower <= spent.upper <= 3.0
    weaker = sdp.Plan((Step(_with_scale(training, 0.97), 0.2, 4),))
    assert sdp.certify(weaker, epsilon=3.0, delta=1e-5).verdict == "refuted"


def _with_scale(training: Any, factor: float) -> sdp.Additive:
    """The mechanism of a step with that much of its noise."""
    mechanism = training.mechanism
    law = training.noise.law(mechanism.sensitivity, training.layout, training.scale * factor)
    return sdp.Additive(law, mechanism.sensitivity, mechanism.epsilon, mechanism.delta)


@pytest.mark.slow
@pytest.mark.parametrize(("clip", "noise"), [(1.0, "radial"), (PerValue(1.0), "laplace")])
def test_a_network_of_26010_parameters_is_planned_for_mnist(clip: Any, noise: str) -> None:
    model = PaperCNN()
    loader = DataLoader(TensorDataset(torch.zeros(60_000, 1)), batch_size=256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    _, private_optimizer, _ = sdp.torch.make_private(
        model, optimizer, loader, clip=clip, noise=noise, epsilon=2.0, delta=1e-5, steps=2000
    )
    training = private_optimizer.privacy_  # type: ignore[attr-defined]
    assert training.mechanism.law.dim == 26_010
    assert training.certificate.verdict == "certified"
    assert training.certificate.bracket.relative_gap < 1e-2
    assert training.scale == pytest.approx(
        sdp.plan(epsilon=2.0, delta=1e-5, sampling_rate=256 / 60_000, steps=2000).scale, rel=5e-3
    )
