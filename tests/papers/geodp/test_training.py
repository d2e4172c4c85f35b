"""GeoDP-SGD as noise for training: refused, and runnable for reproduction."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.torch.helpers import data, network, private, step  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import shapedp as sdp  # noqa: E402
from shapedp.noise import law_from_json  # noqa: E402
from shapedp.papers.geodp.recipes import GeoDP  # noqa: E402
from shapedp.papers.geodp.training import PublishedGeoDP, TurnedNoise  # noqa: E402
from shapedp.sampling import source  # noqa: E402

NOISE = PublishedGeoDP(sigma=1.0, beta=0.1, batch=10, delta=1e-5)
OPTIONS = {"clip": 0.1, "noise": NOISE, "epochs": 1, "delta": None, "noise_multiplier": None}


def test_it_is_refused_and_its_certificate_can_be_checked():
    with pytest.raises(sdp.RefutedError) as refused:
        private(**OPTIONS)
    found = refused.value.certificate
    assert found.bracket.lower > 1e3 * found.delta
    assert sdp.verify(found).verdict == "refuted"


def test_it_trains_with_adam_where_unsafe():
    model = network()
    before = [p.detach().clone() for p in model.parameters()]
    loader = DataLoader(TensorDataset(*data(40)), batch_size=10)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    model, optimizer, loader = sdp.torch.make_private(model, adam, loader, clip=0.1, noise=NOISE, epochs=1, unsafe=True)
    for x, y in loader:
        step(model, optimizer, x, y)
    assert optimizer.privacy_.certificate.verdict == "refuted"
    assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_a_step_is_that_of_algorithm_1_on_the_sum():
    law, total = TurnedNoise(30, 0.1, 8, 0.5, 2.0), np.random.default_rng(1).standard_normal(30)
    published = GeoDP(30, 0.1, 8, 0.5, 2.0, 1.0, 1e-5)
    released = published.release_mean(total / 8, rng=np.random.default_rng(2), unsafe=True).value
    assert law.add_to(total, source(np.random.default_rng(2))) == pytest.approx(8 * released, rel=1e-6)
    assert law_from_json(law.to_json()).to_json() == law.to_json()
    with pytest.raises(TypeError, match="no density"):
        law.log_density(total)
