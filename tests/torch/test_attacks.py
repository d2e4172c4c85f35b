"""Canaries against the noise of real training steps, and membership attacks on networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from shapedp.audit.membership import likelihood_ratio_attack, shadow_attack
from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian
from shapedp.torch import Adaptive, Flat, GaussianNoise, LaplaceNoise, PerLayer, PerValue, make_private
from shapedp.torch.attacks import canary

DELTA = 0.1


def records(n=64, seed=0):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=draw)
    return x, (x[:, 0] > 0).long()


def private(clip, noise, scale, batch=64, seed=0):
    """A small network in training, and a function that trains it for some steps."""
    torch.manual_seed(0)
    x, y = records()
    model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=batch)
    model, optimizer, loader = make_private(
        model, optimizer, loader, clip=clip, noise=noise, noise_multiplier=scale, rng=np.random.default_rng(seed)
    )

    def loop(steps):
        while optimizer.privacy_.steps < steps:
            for features, labels in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(features), labels).backward()
                optimizer.step()

    return optimizer.privacy_, loop


def halve(training):
    """Draw half of the noise that is accounted for."""
    m = training.mechanism
    less = Gaussian(np.broadcast_to(m.law.scales, (m.law.dim,)) / 2)
    training.mechanism = Additive(less, m.sensitivity, m.epsilon, m.delta)


CASES = [(Flat(0.5), GaussianNoise()), (PerLayer(0.5), GaussianNoise("optimal"))]


@pytest.mark.parametrize(("clip", "noise"), CASES)
def test_canary_bound_is_below_the_certificate_and_catches_half_the_noise(clip, noise):
    training, loop = private(clip, noise, 1.0)
    found = canary(training, lambda: loop(1200), delta=DELTA, confidence=0.99, rng=np.random.default_rng(1))
    assert 0 < found.epsilon_lower <= found.certified, found.explain()  # fails with probability at most 0.01
    assert not found.violation
    training, loop = private(clip, noise, 1.0)
    halve(training)
    caught = canary(training, lambda: loop(1200), delta=DELTA, confidence=0.99, rng=np.random.default_rng(1))
    assert caught.violation, caught.explain()
    assert caught.certified == pytest.approx(found.certified)
    assert caught.to_json()["violation"] is True


def test_canary_on_a_composition_of_sampled_steps():
    training, loop = private(Flat(1.0), GaussianNoise(), 0.7, batch=32)
    found = canary(training, lambda: loop(1200), delta=DELTA, steps=4, confidence=0.99, rng=np.random.default_rng(2))
    assert found.runs == 300
    assert 0 < found.epsilon_lower <= found.certified, found.explain()


def test_canary_on_laplace_noise_per_value():
    training, loop = private(PerValue(1.0), LaplaceNoise(), 0.8)
    found = canary(training, lambda: loop(600), delta=DELTA, confidence=0.99, rng=np.random.default_rng(3))
    assert 0 < found.epsilon_lower <= found.certified, found.explain()


def test_the_canary_leaves_its_mark_in_the_certificate_and_refuses_what_it_cannot_audit():
    training, loop = private(Flat(1.0), GaussianNoise(), 1.0)
    with pytest.raises(ValueError, match="too few runs"):
        canary(training, lambda: loop(4), delta=DELTA, rng=np.random.default_rng(0))
    assert training.account.secure is False
    training, loop = private(Adaptive(1.0), GaussianNoise(), 1.0)
    with pytest.raises(ValueError, match="adapts"):
        canary(training, lambda: loop(4), delta=DELTA, rng=np.random.default_rng(0))


class Trained:
    """log-probabilities of a network trained on some of the records, with or without privacy; labels are noisy."""

    def __init__(self, n, epsilon, epochs, width=64):
        draw = torch.Generator().manual_seed(1)
        self.x = torch.randn(n, 10, generator=draw)
        clean = (self.x[:, 0] > 0).long()
        self.y = torch.where(torch.rand(n, generator=draw) < 0.2, 1 - clean, clean)
        self.epsilon, self.epochs, self.width, self.runs, self.scale = epsilon, epochs, width, 0, None

    def __call__(self, indices):
        torch.manual_seed(self.runs)
        self.runs += 1
        chosen = TensorDataset(self.x[indices], self.y[indices])
        model = nn.Sequential(nn.Linear(10, self.width), nn.ReLU(), nn.Linear(self.width, 2))
        loader = DataLoader(chosen, batch_size=len(indices) // 10, shuffle=True)
        if self.epsilon is None:
            optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        else:
            optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
            claim = {"noise_multiplier": self.scale} if self.scale else {"epsilon": self.epsilon, "epochs": self.epochs}
            model, optimizer, loader = make_private(
                model, optimizer, loader, clip=1.0, delta=1e-5, rng=np.random.default_rng(self.runs), **claim
            )
            self.scale = optimizer.privacy_.scale  # solved for once: every model has the same claim
        for _ in range(self.epochs):
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
        model.eval()
        with torch.no_grad():
            return F.log_softmax(model(self.x).double(), 1).numpy()


@pytest.mark.parametrize("attack", [shadow_attack, likelihood_ratio_attack])
def test_attacks_find_the_overfitted_network(attack):
    network = Trained(400, None, 40)
    found = attack(network, network.y.numpy(), rng=np.random.default_rng(0), shadows=4)
    assert found.lower > 0.6, found.explain()


def test_the_shadow_attack_finds_nothing_on_a_certified_network():
    network = Trained(4000, 2.0, 4)
    found = shadow_attack(network, network.y.numpy(), rng=np.random.default_rng(0), shadows=1)
    assert found.upper - found.lower < 0.05
    assert found.found_nothing(0.05), found.explain()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
@pytest.mark.parametrize("attack", [shadow_attack, likelihood_ratio_attack])
def test_attacks_find_nothing_on_certified_networks(attack, epsilon):
    network = Trained(20_000, epsilon, 5)
    found = attack(network, network.y.numpy(), rng=np.random.default_rng(0), shadows=8)
    assert found.upper - found.lower < 0.02
    assert found.found_nothing(0.02), found.explain()


@pytest.mark.slow
def test_canary_at_the_delta_of_the_claim():
    training, loop = private(Flat(0.5), GaussianNoise(), 1.0)
    found = canary(training, lambda: loop(12_000), delta=1e-5, confidence=0.99, rng=np.random.default_rng(5))
    assert 0.3 * found.certified < found.epsilon_lower <= found.certified, found.explain()
    assert replace(found, epsilon_lower=found.certified + 1).violation
