"""The distribution audit: passes every law of the shared list, rejects scales 2% off and broken samplers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.laws import LAWS

import shapedp as sdp
from shapedp import audit
from shapedp.audit.bounds import LEVELS, cosine_level
from shapedp.sampling import source

EVERY = pytest.mark.parametrize("row", LAWS, ids=lambda row: row.name)


def drawn(law):
    return lambda x, rng, n: law.add_to(np.broadcast_to(x, (n, law.dim)), source(rng))


@EVERY
def test_released_noise_fits_its_law(row):
    """False-alarm rate 1e-6, secure randomness."""
    law = row.make(1.0)
    m = sdp.Additive(law, sdp.Box(np.ones(law.dim)), 1.0, 1e-5)
    result = audit.distribution(m, samples=400_000 // law.dim)
    assert result.passed, result.explain()
    assert any(check.name == "scale" for check in result.checks)


@EVERY
@pytest.mark.parametrize("factor", [0.98, 1.02])
def test_a_scale_two_percent_off_is_rejected(row, factor):
    result = audit.distribution(drawn(row.make(factor)), law=row.make(1.0), samples=1_000_000 // row.make(1.0).dim)
    assert not result.passed
    assert "scale" in {check.name for check in result.failed}


GAUSSIAN = sdp.Gaussian(1.0, 6)


def _normal(rng, n):
    return (np.random.default_rng() if rng is None else rng).normal(size=(n, 6))


def repeated(x, rng, n):
    return x + np.repeat(_normal(rng, -(-n // 2)), 2, axis=0)[:n]


def reused(x, rng, n):
    return x + _normal(np.random.default_rng(1), n)


def common(x, rng, n):
    z = _normal(rng, n)
    z[:, 1] = z[:, 0]
    return x + z


def same_radius(x, rng, n):
    z = _normal(rng, n)
    return x + z / np.linalg.norm(z, axis=1, keepdims=True) * np.sqrt(6)


def one_sided(x, rng, n):
    return x + np.where(np.arange(6) == 2, np.abs(_normal(rng, n)), _normal(rng, n))


def one_coordinate(x, rng, n):
    return x + _normal(rng, n) * np.array([1, 1, 1, 0.9, 1, 1])


def sparse_directions(x, rng, n):
    z = _normal(rng, n)
    return x + np.linalg.norm(z, axis=1, keepdims=True) * np.eye(6)[np.abs(z).argmax(1)] * np.sign(z[:, :1])


def linked_magnitudes(x, rng, n):
    z = _normal(rng, n)
    return x + np.abs(z[:, [0, 0, 2, 3, 4, 5]]) * np.sign(_normal(rng, n))


FAULTS = {
    repeated: "independence of draws, signs",
    reused: "independence of draws, signs",
    common: "independence of coordinates, signs",
    same_radius: "radius",
    one_sided: "sign",
    one_coordinate: "scale of each coordinate",
    sparse_directions: "direction",
    linked_magnitudes: "independence of coordinates, magnitudes",
}


@pytest.mark.parametrize("sampler", FAULTS, ids=lambda f: f.__name__)
def test_broken_samplers_are_rejected_by_name(sampler):
    result = audit.distribution(sampler, law=GAUSSIAN, samples=40_000, seed=1)
    assert FAULTS[sampler] in {check.name for check in result.failed}
    assert "does not fit" in result.explain()


def test_values_off_the_grid_are_rejected(monkeypatch):
    m = sdp.calibrate("gaussian", sdp.L2(1.0, 2), epsilon=1.0, delta=1e-5)
    monkeypatch.setattr(
        sdp.Gaussian, "add_to", lambda law, x, s: x + law.scales * np.random.default_rng(1).normal(size=x.shape)
    )
    assert "grid" in {check.name for check in audit.distribution(m, samples=1000).failed}


def test_a_coarser_grid_is_rejected(monkeypatch):
    m = sdp.calibrate("gaussian", sdp.L2(1.0, 2), epsilon=1.0, delta=1e-5)
    draw = sdp.Gaussian.add_to
    grid = 2 * float(sdp.sampling.grid_for(m.law.scales)[0])
    monkeypatch.setattr(sdp.Gaussian, "add_to", lambda law, x, s: np.rint(draw(law, x, s) / grid) * grid)
    assert "low bits" in {check.name for check in audit.distribution(m, samples=10_000).failed}


def test_noise_in_a_coordinate_without_is_rejected():
    law = sdp.Gaussian(np.array([1.0, 0.0]))
    good = audit.distribution(drawn(law), law=law, samples=20_000)
    bad = audit.distribution(drawn(sdp.Gaussian(np.array([1.0, 1e-3]))), law=law, samples=20_000)
    assert good.passed, good.explain()
    assert not bad.passed


def test_correct_noise_passes_again_and_again():
    """At a false-alarm rate of 20% in all, 100 audits fail more than 45 times with probability below 1e-7."""

    def correct(x, rng, n):
        return x + _normal(rng, n)

    call = {"law": GAUSSIAN, "samples": 2000, "false_alarm": 0.2}
    assert sum(not audit.distribution(correct, seed=i, **call).passed for i in range(100)) <= 45


def test_seeded_noise_fits_as_well():
    for family, sensitivity, delta in (("gaussian", sdp.L2(1.0, 3), 1e-6), ("laplace", sdp.L1(1.0, 3), 0.0)):
        m = sdp.calibrate(family, sensitivity, epsilon=1.0, delta=delta)
        assert audit.distribution(m, samples=20_000, seed=7).passed


def _others():
    """Laws beyond the shared list, and how many draws show 2%."""
    from shapedp.noise import Mixed, Staircase, TensorGaussian

    return {
        "mixed": Mixed([1.0, 0.2, 3.0], [True, False, True]),
        "staircase": Staircase([1000, 7], [300, 3], [2**30, 2**29], [2.0**-8, 1.0]),
        "tensor": TensorGaussian([[[1.0, 0.5], [0.2, 2.0]], [1.5, 0.3, 1.0]]),
    }


@pytest.mark.parametrize("name", ["mixed", "staircase", "tensor"])
def test_newer_laws(name):
    law = _others()[name]

    def small(x, rng, n):
        return x + 0.98 * (drawn(law)(x, rng, n) - x)

    assert audit.distribution(drawn(law), law=law, samples=60_000, seed=2).passed
    assert not audit.distribution(small, law=law, samples=300_000, seed=2).passed


def test_levels_have_the_chances_they_state():
    law = sdp.DiscreteLaplace(5, 0.5, 1)
    k = np.arange(-400, 401)
    mass = np.exp(law.log_density(k[:, None] * 0.5))
    for level in LEVELS:
        width, chance = law.magnitude_levels(float(level))
        assert mass[np.abs(k * 0.5) <= width].sum() == pytest.approx(float(chance[0]), rel=1e-9)
    assert cosine_level(2, 0.5) == pytest.approx(np.sqrt(0.5))
    assert cosine_level(3, 0.5) == pytest.approx(0.5)


def test_bad_calls():
    m = sdp.calibrate("gaussian", sdp.L2(1.0, 2), epsilon=1.0, delta=1e-5)
    with pytest.raises(TypeError, match="law="):
        audit.distribution(drawn(GAUSSIAN))
    with pytest.raises(ValueError, match="brings its own"):
        audit.distribution(m, law=GAUSSIAN)
    with pytest.raises(ValueError, match="samples"):
        audit.distribution(m, samples=1)
    with pytest.raises(ValueError, match="false_alarm"):
        audit.distribution(m, false_alarm=0.0)
