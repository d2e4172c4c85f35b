"""Hyperspherical coordinates of tensors, and per-example angle windows as a clip."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from shapedp.mechanisms import AngleWindows as Mechanism
from shapedp.numerics import hyperspherical
from shapedp.torch import Layout, make_private
from shapedp.torch.geodp import AngleWindows, from_angles, to_angles

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def _normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(2,), (3,), (4, 1025), (2, 3, 50), (300_001,)])
def test_tensor_operations_agree_with_the_array_code(device, shape):
    x = _normal(*shape)
    norm, angles = to_angles(x.to(device))
    exact = hyperspherical.to_angles(x.numpy())
    assert np.allclose(norm.cpu().numpy(), exact[0], rtol=1e-14)
    assert np.allclose(angles.cpu().numpy(), exact[1], rtol=1e-13, atol=0)
    back = from_angles(norm, angles).cpu()
    assert float((back / x - 1).abs().max()) < 1e-12


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sd", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("norm", [-1.0, 1e300])
def test_noisy_angles_agree_with_the_array_code(device, sd, norm):
    _, angles = to_angles(_normal(200_000, seed=1))
    angles += sd * _normal(len(angles), seed=2)
    exact = hyperspherical.from_angles(norm, angles.numpy())
    found = from_angles(torch.tensor(norm, dtype=torch.float64), angles.to(device)).cpu().numpy()
    normal = np.abs(exact) > 1e-300
    assert np.abs(found[normal] / exact[normal] - 1).max() < 2e-12
    assert np.abs(found[~normal]).max(initial=0.0) < 2e-300


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("x", [[1.0, 0, 0], [0, 0, 0.0], [0, -2.0, 0], [0, 0, -3.0], [5.0, -0.0], [1e-300, 1e-300]])
def test_axes_and_zeros(device, x):
    tensor = torch.tensor(x, dtype=torch.float64, device=device)
    assert from_angles(*to_angles(tensor)).tolist() == pytest.approx(x, rel=1e-13, abs=0)
    norm, angles = to_angles(tensor)
    if max(map(abs, x)) > 1e-30:
        assert from_angles(norm, angles.float()).tolist() == pytest.approx(x, rel=1e-6, abs=0)


def test_dtypes_and_bad_input():
    x = _normal(3, 100).float()
    norm, angles = to_angles(x)
    assert norm.dtype == angles.dtype == from_angles(norm, angles).dtype == torch.float32
    assert torch.allclose(from_angles(norm, angles), x, rtol=1e-4, atol=1e-7)
    half = to_angles(x.bfloat16())
    assert half[1].dtype == torch.bfloat16
    for bad in (torch.tensor(1.0), torch.ones(3, 1), torch.ones(3, dtype=torch.int64)):
        with pytest.raises(ValueError, match="floating"):
            to_angles(bad)
    with pytest.raises(ValueError, match="finite"):
        to_angles(torch.tensor([1.0, math.nan]))
    with pytest.raises(ValueError, match="finite"):
        from_angles(torch.tensor(1.0), torch.tensor([1.0, math.inf]))
    with pytest.raises(ValueError, match="finite"):
        from_angles(torch.tensor(math.inf), torch.tensor([1.0]))


def _layout(dim):
    return Layout(("w",), ((dim,),), (0,))


@pytest.mark.parametrize("device", DEVICES)
def test_rows_are_those_of_the_mechanism(device):
    layout, clip = _layout(60), AngleWindows(0.5, width=2.0)
    gradients = _normal(7, 60, seed=3) * torch.logspace(-6, 6, 7)[:, None]
    gradients[3] = 0.0
    rows = clip.rows(gradients.to(device), layout).cpu()
    bounds = torch.tensor(clip.sensitivity(layout).profile)
    assert bool((rows.abs() <= bounds).all())
    assert not rows[3].any()
    m = Mechanism.calibrate(dim=60, clip=0.5, batch=7, epsilon=1.0, delta=1e-5, width=2.0)
    assert np.array_equal(m.sensitivity.profile, clip.sensitivity(layout).profile)
    assert np.allclose(rows.sum(0).numpy(), m.query(gradients.numpy()), atol=1e-6)  # its rows lie on a grid
    answer = rows.mean(0)
    assert np.allclose(clip.gradient(answer.to(device), layout).cpu(), m.vector((7 * answer).numpy()), rtol=1e-9)


def test_windows_given_by_hand():
    clip = AngleWindows(1.0, half_widths=[0.1] * 8)
    assert clip.sensitivity(_layout(9)).profile.tolist() == [1.0, *[0.1] * 8]
    with pytest.raises(ValueError, match="9 entries"):
        clip.sensitivity(_layout(10))
    with pytest.raises(ValueError, match="radius"):
        AngleWindows(0.0)


def test_training_with_angle_windows_is_certified_and_applies_the_noisy_angles():
    torch.manual_seed(0)
    x, y = _normal(64, 5).float(), _normal(64, 1, seed=1).float()
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    loader = DataLoader(TensorDataset(x, y), batch_size=16)
    clip = AngleWindows(1.0)
    model, optimizer, loader = make_private(
        model, optimizer, loader, clip=clip, noise_multiplier=1.0, delta=1e-5, epochs=1, rng=np.random.default_rng(0)
    )
    layout = Layout.of(model)
    for inputs, targets in loader:
        before = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        after = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        applied = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        assert applied.shape == (layout.dim,)
        assert torch.allclose(before - after, applied, atol=1e-5)
        assert bool(torch.isfinite(applied).all())
    certificate = optimizer.privacy_.certificate
    assert certificate.verdict == "certified"
    assert certificate.adjacency == "add-remove"
    assert optimizer.privacy_.mechanism.sensitivity.kind == "box"
