"""The distribution audit: does the noise that is released follow its law?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.audit.bounds import LEVELS, binomial_p_values, cosine_level
from shapedp.audit.result import Result
from shapedp.audit.subjects import released
from shapedp.mechanisms import Additive
from shapedp.noise import Law
from shapedp.noise.base import Traits
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import LAID_OUT, count, positive

Sampler = Callable[[Floats, np.random.Generator | None, int], Any]
_VALUES = 2_000_000
_BLOCK = 1 << 22
_REPEATS = 2.0**-12


@dataclass(frozen=True)
class Check:
    """One family of counts against their exact binomial law; `p_value` is corrected for their number.

    Examples
    --------
    >>> from shapedp.audit import Check
    >>> Check(name="sign", p_value=0.3, counts=2, detail="share of positive noise 0.501, not 0.5").counts
    2
    """

    name: str
    p_value: float
    counts: int
    detail: str


@dataclass(frozen=True)
class DistributionResult(Result, kind="distribution-audit", stated="passed"):
    """Whether the noise fits its law.

    Guarantee: correct noise fails with probability at most `false_alarm`, all checks together.

    Examples
    --------
    >>> from shapedp.audit import Check, DistributionResult
    >>> sign = Check("sign", 1e-9, 2, "share of positive noise 0.6, not 0.5")
    >>> DistributionResult(law="gaussian", samples=500, values=1000, false_alarm=1e-6, checks=(sign,)).passed
    False
    """

    law: str
    samples: int
    values: int
    false_alarm: float
    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that reject."""
        return tuple(check for check in self.checks if check.p_value < self.false_alarm / len(self.checks))

    @property
    def passed(self) -> bool:
        """Whether no check rejects."""
        return not self.failed

    def explain(self) -> str:
        """The finding in one paragraph."""
        of = f"{self.values} values of {self.law} noise, false-alarm rate {self.false_alarm:g}"
        if self.passed:
            return f"fits: {', '.join(check.name for check in self.checks)} ({of})"
        return f"does not fit ({of}): " + "; ".join(f"{c.name}: {c.detail}, p = {c.p_value:.2g}" for c in self.failed)


def distribution(
    mechanism: Additive | Sampler,
    *,
    law: Law | None = None,
    samples: int | None = None,
    false_alarm: float = 1e-6,
    seed: int | None = None,
) -> DistributionResult:
    """Compare released noise with its law: scale, sign, independence, radius, direction, grid, repeats.

    Parameters
    ----------
    mechanism : a mechanism, or a function f(x, rng, n) that returns n rows of x + noise.
    law : what the noise of a function should follow.
    samples : the number of draws, from several releases; by default as many as make two million values.
    false_alarm : the probability with which correct noise may fail.
    seed : makes the audit reproducible, and replaces secure randomness.

    Returns
    -------
    A `DistributionResult`.

    Guarantee: as `DistributionResult`; every check counts an event of known probability. With the default samples
    a scale 2% off is rejected with probability above 0.999.

    Examples
    --------
    >>> import shapedp as sdp
    >>> m = sdp.calibrate("laplace", sdp.L1(1.0, dim=2), epsilon=1.0, delta=0.0)
    >>> sdp.audit.distribution(m, samples=1000, seed=1).passed
    True
    >>> sdp.audit.distribution(lambda x, rng, n: x + rng.normal(size=(n, 2)), law=m.law, samples=1000, seed=1).passed
    False
    """
    rate = positive("false_alarm", false_alarm)
    followed, sampler = _sampler(mechanism, law)
    n = max(_VALUES // followed.dim, 2000) if samples is None else count("samples", samples, least=100, most=LAID_OUT)
    whole = isinstance(mechanism, Additive) and mechanism.sensitivity.whole
    noise, on_grid = _draw(followed, sampler, n, None if seed is None else np.random.default_rng(seed), whole)
    turned, straight = followed.whitened(noise)
    checks = tuple(_checks(turned, turned.traits() if turned is followed else Traits(True, True, True), straight))
    if isinstance(mechanism, Additive) and followed.traits().grid is not None:
        checks += (Check("grid", 1.0 if on_grid else 0.0, n, "values off the grid of the law"),)
    return DistributionResult(followed.kind, n, int(noise.size), rate, checks)


def _sampler(mechanism: Any, law: Law | None) -> tuple[Law, Sampler]:
    if isinstance(mechanism, Additive):
        if law is not None and law is not mechanism.law:
            raise ValueError("law goes with a function: a mechanism of the library brings its own")
        return mechanism.law, partial(released, mechanism)
    if not callable(mechanism) or law is None:
        raise TypeError("distribution takes a mechanism, or a function f(x, rng, n) and the law= it should follow")
    return law, mechanism


def _draw(law: Law, sampler: Sampler, n: int, rng: np.random.Generator | None, whole: bool) -> tuple[Floats, bool]:
    """n rows of noise from several releases at two inputs, and whether every release lay on the law's grid."""
    grid = law.traits().grid
    step = np.ones(1) if grid is None else grid
    multiple = np.maximum(step, 1.0) if whole else step
    away = np.rint(np.broadcast_to(law.marginal_scales() * 3.3 / multiple, law.dim)) * multiple
    size = max(1, min(-(-n // 4), _BLOCK // law.dim))
    rows, on_grid = [], True
    for at, start in enumerate(range(0, n, size)):
        x = away if at % 2 else np.zeros(law.dim)
        y = np.asarray(sampler(x, rng, min(size, n - start)), dtype=np.float64).reshape(-1, law.dim)
        on_grid = on_grid and bool(np.array_equal(np.rint(y / step) * step, y))
        rows.append(y - x)
    return np.concatenate(rows), on_grid


def _check(name: str, hits: Any, n: Any, p: Any, detail: str) -> Check:
    """The smallest p-value of a family, times the family's size."""
    hits, n, p = np.broadcast_arrays(*(np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in (hits, n, p)))
    values = binomial_p_values(hits, n, p)
    worst = int(np.argmin(values))
    told = f"{detail} {hits[worst] / max(n[worst], 1.0):.5g}, not {p[worst]:.5g}"
    return Check(name, min(1.0, float(values[worst]) * values.size), values.size, told)


def _checks(law: Law, shape: Traits, noise: Floats) -> Iterator[Check]:
    scales = law.marginal_scales()
    noisy = scales > 0
    if not noisy.all() and noise[:, ~noisy].any():
        yield Check("no noise where none is due", 0.0, 1, "noise in a coordinate of scale 0")
    if shape.widths:
        yield from _scales(law, shape, noise, noisy)
    yield from _signs(noise[:, noisy], shape)
    if noisy.all():
        yield from _directions(law, shape, noise / scales)
    yield from _lattice(shape, noise[:, noisy], noisy)


def _scales(law: Law, shape: Traits, noise: Floats, noisy: NDArray[np.bool_]) -> Iterator[Check]:
    n, levels = len(noise), [law.magnitude_levels(float(level)) for level in LEVELS]
    inside = [(np.abs(noise) <= widths, chances) for widths, chances in levels]
    if shape.independent:
        hits = [int(hit[:, noisy].sum()) for hit, _ in inside]
        # The pooled count varies at most as the binomial of the average chance (Hoeffding 1956).
        chances = [float(np.broadcast_to(p, noisy.size)[noisy].mean()) for _, p in inside]
        yield _check("scale", hits, n * int(noisy.sum()), chances, "share within a width")
        yield from _magnitudes(inside[9][0][:, noisy], np.broadcast_to(inside[9][1], law.dim)[noisy])
    halves = [inside[i] for i in (9, 17)]
    each = np.concatenate([hit[:, noisy].sum(0) for hit, _ in halves])
    ones = np.concatenate([np.broadcast_to(p, law.dim)[noisy] for _, p in halves])
    yield _check("scale of each coordinate", each, n, ones, "share within a width")


def _signs(noise: Floats, shape: Traits) -> Iterator[Check]:
    """Given the magnitudes, signs are fair coins of their own: alone, along a draw, and from draw to draw."""
    sign = np.sign(noise).astype(np.int8)
    up, down = (sign > 0).sum(0), (sign < 0).sum(0)
    yield _check("sign", up, up + down, 0.5, "share of positive noise")
    if not shape.fair:
        sign = sign[np.arange(len(sign)), np.arange(len(sign)) // 2 % noise.shape[1]][:, None]
        yield _agreement("independence of draws, signs", [sign[1::2] * sign[: 2 * (len(sign) // 2) : 2]])
        return
    yield _agreement("independence of draws, signs", [sign[1:] * sign[:-1], *_far(sign)])
    if noise.shape[1] > 1:
        yield _agreement("independence of coordinates, signs", [sign[:, 1:] * sign[:, :-1], *_far(sign.T)])


def _far(sign: NDArray[Any]) -> list[NDArray[Any]]:
    half = len(sign) // 2
    return [sign[half : 2 * half] * sign[:half]]


def _agreement(name: str, products: list[NDArray[Any]]) -> Check:
    """Products of neighbouring fair signs are again independent fair signs."""
    same = [int((one > 0).sum()) for one in products]
    told = [int((one != 0).sum()) for one in products]
    return _check(name, same, told, 0.5, "share of equal signs")


def _magnitudes(below: NDArray[np.bool_], p: Floats) -> Iterator[Check]:
    """Whether magnitudes lie on the same side of their medians, in disjoint pairs."""
    both = p * p + (1 - p) * (1 - p)
    half = len(below) // 2
    near = (below[0 : 2 * half : 2] == below[1 : 2 * half : 2]).sum()
    far = (below[:half] == below[half : 2 * half]).sum()
    n = half * p.size
    yield _check("independence of draws, magnitudes", [near, far], n, float(both.mean()), "share on one side")
    if p.size > 1:
        pairs = p.size // 2
        left, right = p[0 : 2 * pairs : 2], p[1 : 2 * pairs : 2]
        same = (below[:, 0 : 2 * pairs : 2] == below[:, 1 : 2 * pairs : 2]).sum()
        chance = float((left * right + (1 - left) * (1 - right)).mean())
        yield _check("independence of coordinates, magnitudes", same, len(below) * pairs, chance, "share on one side")


def _directions(law: Law, shape: Traits, standard: Floats) -> Iterator[Check]:
    radius = np.sqrt(np.square(standard).sum(1))
    known = [(r, level) for level in LEVELS if (r := law.radius_level(float(level))) is not None]
    if known:
        hits = [int((radius <= r).sum()) for r, _ in known]
        yield _check("radius", hits, len(radius), [level for _, level in known], "share within a ball")
    if shape.isotropic and law.dim > 1:
        lines = np.stack([np.ones(law.dim), np.arange(law.dim) % 2 * 2.0 - 1, np.eye(law.dim)[0]])
        lines /= np.sqrt(np.square(lines).sum(1, keepdims=True))
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.abs(standard @ lines.T) / radius[:, None]
        hits = [int((cosine[:, i] <= cosine_level(law.dim, level)).sum()) for level in LEVELS for i in range(3)]
        yield _check("direction", hits, len(radius), np.repeat(LEVELS, 3), "share within an angle")


def _lattice(shape: Traits, noise: Floats, noisy: NDArray[np.bool_]) -> Iterator[Check]:
    """Exact repeats between halves of the draws, and the parity of grid steps."""
    half = len(noise) // 2
    if shape.grid is None or not shape.parity:
        return
    same = int((noise[:half] == noise[half : 2 * half]).sum())
    n = half * noise.shape[1]
    p = float(binomial_p_values(same, n, _REPEATS)) if same > _REPEATS * n else 1.0
    yield Check("repeats", p, 1, f"share of exact repeats {same / n:.3g}")
    grid = np.broadcast_to(shape.grid, noisy.size)[noisy]
    odd = int((np.rint(noise / grid) % 2 == 1).sum())
    yield _check("low bits", odd, noise.size, 0.5, "share of odd grid steps")
