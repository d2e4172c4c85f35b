"""mu of Kronecker noise on each set, against suprema over vertices, spheres and searches; reshaping."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from shapedp.noise import Gaussian, TensorGaussian
from shapedp.privacy import GaussianLoss, loss_of
from shapedp.sensitivity import L1, L2, Blocks, Box, Slices

RNG = np.random.default_rng(5)
SHAPE = (2, 3, 2)
DENSE = [RNG.normal(size=(n, n)) for n in SHAPE]
DIAGONAL = [RNG.uniform(0.2, 2, size=n) for n in SHAPE]
HALF = [DENSE[0], DIAGONAL[1], DENSE[2]]
LAWS = {"dense": DENSE, "diagonal": DIAGONAL, "mixed": HALF}


def whitener(law: TensorGaussian) -> np.ndarray:
    """W as one matrix: what whitening does to the unit vectors."""
    return law.whiten(np.eye(law.dim)).T


def mus(law, sensitivity) -> tuple[float, float]:
    """The bracket of mu without the slack of turning."""
    loss = loss_of(law, sensitivity)
    assert isinstance(loss, GaussianLoss)
    least = loss.mu if loss.least is None else loss.least
    return least + law.slack, loss.mu - law.slack


@pytest.mark.parametrize("kind", LAWS)
def test_ball_and_cross_are_exact(kind):
    law = TensorGaussian(LAWS[kind])
    w = whitener(law)
    for mu in mus(law, L2(0.7, shape=SHAPE)):
        assert mu == pytest.approx(0.7 * np.linalg.norm(w, 2), rel=1e-8)
    for mu in mus(law, L1(0.7, shape=SHAPE)):
        assert mu == pytest.approx(0.7 * np.linalg.norm(w, axis=0).max(), rel=1e-8)


@pytest.mark.parametrize("kind", LAWS)
def test_a_box_is_exact_along_the_axes_and_bracketed_otherwise(kind):
    """Against every vertex of a box in twelve dimensions."""
    law, profile = TensorGaussian(LAWS[kind]), RNG.uniform(0.1, 1, size=SHAPE)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=law.dim)))
    top = np.linalg.norm(whitener(law) @ (signs * profile.reshape(-1)).T, axis=0).max()
    least, most = mus(law, Box(profile))
    assert least <= top * (1 + 1e-9)
    assert most >= top * (1 - 1e-9)
    assert most <= 2.5 * least
    if kind == "diagonal":
        assert (least, most) == pytest.approx((top, top), rel=1e-9)


def best(law, point, size: int) -> float:
    """The largest |W v| a search over v = point(parameters) finds."""
    w, found = whitener(law), 0.0
    for _ in range(12):
        start = RNG.normal(size=size)
        found = max(found, -optimize.minimize(lambda p: -np.linalg.norm(w @ point(p)), start, tol=1e-12).fun)
    return found


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_slices(kind, mode):
    """Exact where the sliced mode lies along the axes, bracketed where it is rotated."""
    law, radii = TensorGaussian(LAWS[kind]), RNG.uniform(0.1, 1, size=SHAPE[mode])

    def point(p):
        v = np.moveaxis(p.reshape(SHAPE), mode, 0).copy()
        v *= (radii / np.linalg.norm(v.reshape(len(radii), -1), axis=1)).reshape(-1, 1, 1)
        return np.moveaxis(v, 0, mode).reshape(-1)

    top = best(law, point, law.dim)
    least, most = mus(law, Slices(radii, SHAPE, mode))
    assert least <= top * (1 + 1e-6)
    assert most >= top * (1 - 1e-9)
    if law.modes[mode].rotation is None:
        assert most == pytest.approx(top, rel=1e-6)
        assert least == pytest.approx(top, rel=1e-6)


@pytest.mark.parametrize("kind", LAWS)
def test_ellipsoids_and_blocks(kind):
    law, axes = TensorGaussian(LAWS[kind]), RNG.uniform(0.2, 1, size=12)
    top = 0.7 * np.linalg.norm(whitener(law) * axes, 2)
    least, most = mus(law, L2(0.7, 12, scales=axes))
    assert least <= top * (1 + 1e-9) <= most * (1 + 2e-9)
    sizes, radii = np.array([5, 7]), np.array([1.0, 0.4])

    def point(p):
        parts = np.split(p, [5])
        return np.concatenate([r * q / np.linalg.norm(q) for r, q in zip(radii, parts, strict=True)])

    least, most = mus(law, Blocks(radii, sizes))
    top = best(law, point, 12)
    assert least <= top * (1 + 1e-6)
    assert most >= top * (1 - 1e-9)
    if kind == "diagonal":
        assert most == pytest.approx(top, rel=1e-6)


def test_isotropic_noise_is_the_plain_gaussian():
    for sensitivity in (L2(2.0, shape=SHAPE), Box(np.ones(SHAPE)), Slices([1.0, 2.0], SHAPE, 0)):
        flat = loss_of(Gaussian(1.3, 12), sensitivity)
        assert loss_of(TensorGaussian(SHAPE, scale=1.3), sensitivity).mu == pytest.approx(flat.mu, rel=1e-9)


def test_reshaping_changes_nothing():
    """Corollary 1: merged modes have the Kronecker product of the factors, the same loss and the same error."""
    law = TensorGaussian(DENSE)
    merged = TensorGaussian([np.kron(DENSE[0], DENSE[1]), DENSE[2]])
    for first, second in ((L2(1.0, shape=SHAPE), L2(1.0, shape=(6, 2))), (L1(1.0, 12), L1(1.0, 12))):
        assert loss_of(law, first).mu == pytest.approx(loss_of(merged, second).mu, rel=1e-5)
    assert law.second_moment == pytest.approx(merged.second_moment, rel=1e-6)
    inverse = math.prod(float(np.linalg.norm(np.linalg.inv(u))) for u in DENSE)
    whole = np.linalg.norm(np.linalg.inv(np.kron(np.kron(DENSE[0], DENSE[1]), DENSE[2])))
    assert inverse == pytest.approx(whole, rel=1e-9)  # the recipes' norm, of U^-1: the paper prints V for V^-1


def test_a_direction_without_noise_is_not_private():
    law = TensorGaussian([RNG.normal(size=(2, 1)), 3])
    assert loss_of(law, L2(1.0, shape=(2, 3))).mu == math.inf
    spared = TensorGaussian([[1.0, 0.0], 3])
    assert loss_of(spared, Slices([1.0, 0.5], (2, 3), 0)).mu == math.inf
    assert loss_of(spared, Slices([1.0, 0.0], (2, 3), 0)).mu == pytest.approx(1.0, rel=1e-9)


def test_slices_of_another_shape_are_refused_for_rotated_noise():
    with pytest.raises(TypeError, match="shape"):
        loss_of(TensorGaussian([DENSE[0], 6]), Slices([1.0, 1.0], SHAPE, 0))
    assert loss_of(TensorGaussian([[1.0, 2.0], 6]), Slices([1.0, 1.0], SHAPE, 0)).mu > 1
