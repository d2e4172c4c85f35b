"""Gradients by norm and direction: the box holds for every pair of neighbours, and the release is what it says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import shapedp as sdp
from shapedp.mechanisms import AngleWindows, MeanAngles, certify, mechanism_from_json, verify
from shapedp.mechanisms.angles import polar, tail_weights, windows
from shapedp.numerics.hyperspherical import from_angles

CLAIM = {"epsilon": 1.0, "delta": 1e-5}
KINDS = (MeanAngles, AngleWindows)


def _made(kind, dim=30, **options):
    return kind.calibrate(**{"dim": dim, "clip": 0.5, "batch": 8, **CLAIM, **options})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace", "zero-out"])
@pytest.mark.parametrize("dim", [2, 3, 1000])
def test_calibrated_mechanisms_are_certified_and_tight(kind, adjacency, dim):
    m = _made(kind, dim, adjacency=adjacency)
    assert m.certificate.verdict == "certified"
    assert m.certificate.adjacency == adjacency
    assert m.certificate.bracket.lower > 0.999e-5
    less = replace(m, law=sdp.Gaussian(m.law.scales * 0.99))
    assert certify(less, **CLAIM).verdict == "refuted"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace", "zero-out"])
def test_no_neighbour_leaves_the_box(kind, adjacency):
    rng, dim = np.random.default_rng(0), 12
    m = _made(kind, dim, adjacency=adjacency)
    bound, most = m.sensitivity.profile, np.zeros(dim)
    for _ in range(2000):
        others = rng.normal(size=(rng.integers(0, 6), dim)) * 10.0 ** rng.uniform(-12, 2)
        others = np.concatenate([others, -others])
        first, second = rng.normal(size=(2, dim)) * 10.0 ** rng.uniform(-3, 3, size=(2, 1))
        if rng.random() < 0.3:
            second = -first
        one = np.concatenate([others, first[None]])
        two = {
            "add-remove": others,
            "zero-out": np.concatenate([others, 0 * first[None]]),
            "replace": np.concatenate([others, second[None]]),
        }[adjacency]
        if len(two):
            change = np.abs(m.query(one) - m.query(two))
            assert (change <= bound).all()
            most = np.maximum(most, change)
    assert (most > 0.3 * bound).all()  # the bounds are not far from what happens


def test_one_record_turns_the_mean_whatever_the_batch():
    m = _made(MeanAngles, 5, adjacency="replace")
    pairs = np.random.default_rng(1).normal(size=(1000, 5))
    others = np.concatenate([pairs, -pairs])
    one, two = np.zeros((2, 1, 5))
    one[0, 0], two[0, 1] = 0.5, 0.5
    change = m.query(np.concatenate([others, one])) - m.query(np.concatenate([others, two]))
    assert change[1:3] == pytest.approx([math.pi / 2, -math.pi / 2], abs=1e-6)


def test_windows_bound_each_record_and_zero_gradients_add_nothing():
    m = _made(AngleWindows, 40, width=2.0)
    assert m.windows[0] == pytest.approx(2 / math.sqrt(39))
    assert m.windows[-1] == math.pi
    assert m.windows.max(initial=0, where=np.arange(39) < 38) <= math.pi / 2
    rows = np.random.default_rng(2).normal(size=(5, 40)) * [[1e3], [1.0], [1e-3], [0.0], [0.2]]
    each = np.stack([m.query(row[None]) for row in rows])
    assert (np.abs(each) <= np.concatenate([[0.5], m.windows])).all()
    assert not each[3].any()
    assert np.array_equal(m.query(rows), each.sum(axis=0))
    assert np.array_equal(m.query(rows[::-1]), each.sum(axis=0))
    inside = polar(rows[4])
    kept = np.abs(inside) < np.concatenate([[0.5], m.windows])
    assert np.allclose(each[4][kept], inside[kept], atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_noise_on_norm_and_angles(kind):
    m = _made(kind, 6)
    rows = np.random.default_rng(3).normal(size=(8, 6))
    out = m.release(rows, rng=np.random.default_rng(4))
    assert out.certificate.secure is False
    assert m.release(rows).certificate.secure is True
    assert not out.unsafe
    assert out.spends == 1
    divided = np.asarray(out.polar.value) / np.concatenate([[8.0], np.full(5, 1.0 if kind is MeanAngles else 8.0)])
    assert np.allclose(np.asarray(out), from_angles(divided[0], divided[1:]), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_has_the_certified_scales(kind):
    m = _made(kind, 40)
    rows, rng = np.random.default_rng(3).normal(size=(8, 40)), np.random.default_rng(5)
    many = np.stack([m.release(rows, rng=rng).polar.value for _ in range(2000)]) - m.query(rows)
    spread = float(np.square(many / m.law.scales).mean())  # chi-square of 80000 degrees over 80000
    room = 4.9 * math.sqrt(2 / 80000)  # false-alarm rate 1e-6
    assert abs(spread - 1) < room
    assert abs(spread * 1.02**2 - 1) > room
    assert abs(spread * 0.98**2 - 1) > room


def test_the_share_of_the_norm_is_what_was_asked():
    for kind in KINDS:
        m = _made(kind, 100, norm_share=0.25)
        part = (m.sensitivity.profile / m.law.scales) ** 2
        assert part[0] / part.sum() == pytest.approx(0.25, rel=1e-6)


def test_angle_scales_minimise_the_weighted_turn():
    m = _made(AngleWindows, 50, norm_share=0.5)
    bound, scales, weights = m.sensitivity.profile[1:], m.law.scales[1:], tail_weights(50)
    best = float(weights @ scales**2)
    rng = np.random.default_rng(5)
    for _ in range(200):
        other = scales * np.exp(0.2 * rng.normal(size=49))
        other *= math.sqrt(float(np.square(bound / other).sum() / np.square(bound / scales).sum()))
        assert float(weights @ other**2) >= best * (1 - 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_are_recomputed_offline(kind):
    m = _made(kind, 500)
    again = mechanism_from_json(m.to_json())
    assert type(again) is kind
    assert again.certificate.bracket == m.certificate.bracket
    assert verify(m.certificate).verdict == "certified"


@pytest.mark.parametrize("kind", KINDS)
def test_an_uncertified_claim_is_not_released(kind):
    m = _made(kind)
    thin = replace(m, law=sdp.Gaussian(m.law.scales / 3))
    with pytest.raises(sdp.RefutedError):
        thin.release(np.ones((2, 30)))
    assert thin.release(np.ones((2, 30)), unsafe=True, rng=np.random.default_rng(0)).unsafe


def test_amplification_and_composition_take_the_loss():
    m = _made(AngleWindows, 30)
    sampled = sdp.subsample(m.loss, 0.01)
    assert sampled.epsilon(1e-7).upper < 0.2
    assert sdp.compose([(m, 10)]).epsilon(1e-5).upper < 5


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dim": 1}, "dim"),
        ({"clip": 0.0}, "clip"),
        ({"batch": 0}, "batch"),
        ({"norm_share": 0.0}, "norm_share"),
        ({"norm_share": 1.0}, "norm_share"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"adjacency": "none"}, "adjacency"),
        ({"half_widths": np.full(28, 0.1)}, "windows"),
        ({"half_widths": np.full(29, 2.0)}, "windows"),
        ({"width": -1.0}, "width"),
    ],
)
def test_bad_calls(options, text):
    with pytest.raises(ValueError, match=text):
        _made(AngleWindows, **{"dim": 30, **options})


@pytest.mark.parametrize("rows", [np.ones(30), np.ones((2, 29)), np.full((2, 30), np.nan)])
@pytest.mark.parametrize("kind", KINDS)
def test_bad_gradients(kind, rows):
    with pytest.raises(ValueError, match="gradients"):
        _made(kind).release(rows)


def test_windows_cover_random_directions():
    x = np.random.default_rng(6).normal(size=(200, 500))
    inside = np.abs(polar(x)[:, 1:]) <= windows(500, 3.0)
    assert 0.99 < inside.mean() < 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_one_huge_gradient_is_a_clipped_gradient(kind):
    m = _made(kind)
    rows = np.random.default_rng(7).normal(size=(3, 30))
    rows[1] *= 1e307
    plain = rows.copy()
    plain[1] /= 1e300
    assert np.allclose(m.query(rows), m.query(plain), rtol=1e-6, atol=1e-8)
    assert polar(rows)[1, 0] == 1e300
    assert polar(rows)[1, 1:] == pytest.approx(polar(plain)[1, 1:], rel=1e-12)
