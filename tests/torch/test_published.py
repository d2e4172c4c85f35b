"""Published noise on gradients: its papers' claims reproduced, and judged."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.torch.helpers import empty_step, private, step
from tests.torch.models import PaperCNN
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.accounting import Plan, Step
from shapedp.papers.tensor_noise.training import advanced_composition
from shapedp.torch import Flat, Layout, PerLayer, PublishedProductNoise, PublishedTensorNoise, make_private

MNIST = PublishedProductNoise(step_epsilon=0.3, k=40_000)


def test_the_claim_of_the_paper_is_reproduced() -> None:
    """Figure 7: (0.99, 9.87e-6) after 50 epochs."""
    sensitivity = Flat(1.0).sensitivity(Layout.of(PaperCNN()))
    epsilon, delta = MNIST.claim(sensitivity, 256 / 60_000, 50 * (60_000 // 256))
    assert epsilon == pytest.approx(0.992, abs=5e-4)
    assert delta == pytest.approx(9.87e-6, rel=2e-3)


def test_product_noise_is_refused_and_runs_only_as_unsafe() -> None:
    model = PaperCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.15)
    loader = DataLoader(TensorDataset(torch.zeros(60_000, 1)), batch_size=256)
    with pytest.raises(sdp.RefutedError) as refused:
        make_private(model, optimizer, loader, clip=1.0, noise=MNIST, epochs=50)
    certificate = refused.value.certificate
    print(f"claimed delta {certificate.delta:.3g}, one step has at least {certificate.bracket.lower:.3g}")
    assert certificate.bracket.lower > 30 * certificate.delta
    assert sdp.verify(certificate).verdict == "refuted"

    model, optimizer, loader, training = private(
        clip=1.0, noise=PublishedProductNoise(0.3, 40_000), unsafe=True, epochs=2, delta=None, noise_multiplier=None
    )
    for x, y in loader:
        step(model, optimizer, x, y)
    assert training.certificate.verdict == "refuted"
    assert training.mechanism.law.a == 1.0


def test_a_delta_beside_published_noise_is_answered_with_what_to_do() -> None:
    with pytest.raises(ValueError, match="PublishedProductNoise brings its own scale and claim: leave out epsilon"):
        private(clip=1.0, noise=MNIST, epochs=2, delta=1e-5, noise_multiplier=None)


def test_tensor_noise_as_published_holds_with_room() -> None:
    noise = PublishedTensorNoise(step_epsilon=1.0, step_delta=1e-7, slack=1e-6)
    *_, training = private(clip=0.5, noise=noise, epochs=2, delta=None, noise_multiplier=None)
    certificate = training.certificate
    assert certificate.verdict == "certified"
    assert certificate.bracket.upper < 1e-3 * certificate.delta
    exact = sdp.calibrate("gaussian", sdp.L2(0.5, 53), epsilon=1.0, delta=1e-7)
    assert training.mechanism.law.second_moment > 100 * exact.expected_squared_error


def test_steps_of_an_earlier_run_count_against_the_published_claim() -> None:
    noise = PublishedTensorNoise(step_epsilon=1.0, step_delta=1e-7, slack=1e-6)
    options = {"clip": 0.5, "noise": noise, "epochs": 2, "delta": None, "noise_multiplier": None}
    *_, earlier = private(clip=0.5, noise_multiplier=0.6)
    _, optimizer, _, training = private(**options)
    empty_step(training, optimizer)
    assert training.certificate.verdict == "certified"
    earlier.account.taken = 20
    training.account.past = earlier.plan.steps
    certificate = training.certificate
    assert certificate.verdict == "refuted"
    assert certificate.secure is False


def test_advanced_composition_is_what_the_theorem_says_and_holds() -> None:
    """Against the exact composition of the worst (epsilon, delta) mechanism."""
    from shapedp.accounting import BareLoss

    epsilon, delta = advanced_composition(0.1, 1e-8, 100, 1e-6)
    drift = 100 * 0.1 * math.tanh(0.05)
    expected = drift + 0.1 * math.sqrt(200 * min(math.log(math.e + 1 / 1e-6), math.log(1e6)))
    assert epsilon == pytest.approx(expected)
    assert sdp.compose([(BareLoss(0.1, 1e-8), 100)]).delta(epsilon).upper <= delta
    assert advanced_composition(0.1, 0.0, 1, 0.0) == (0.1, 0.0)


def test_published_noise_takes_no_other_claim() -> None:
    with pytest.raises(ValueError, match="brings its own scale and claim"):
        private(noise=MNIST, noise_multiplier=1.0)
    with pytest.raises(ValueError, match="for a flat clip"):
        private(clip=PerLayer(1.0), noise=MNIST, epochs=1, delta=None, noise_multiplier=None)


def test_energy_of_the_published_law() -> None:
    """E |n|^2 = sigma_M^2 for chi_1; 20,000 draws, false-alarm rate 1e-6."""
    sensitivity = Flat(1.0).sensitivity(Layout.of(PaperCNN()))
    law = MNIST.law(sensitivity, Layout.of(PaperCNN()), 1.0)
    sigma = MNIST.calibration(sensitivity).sigma
    from shapedp.sampling import source

    radii = law.draw_radii(20_000, source(np.random.default_rng(0)))
    mean = float(np.square(radii / sigma).mean())
    assert abs(mean - 1) < 4.9 * math.sqrt(2 / 20_000)
    assert Plan((Step(sdp.Additive(law, sensitivity, 1.0, 1e-5), 0.01, 1),)).delta(1.0).lower > 1e-4
