"""A noise law and a sensitivity set: the worst pairs that their sum has.

A `Bounds` holds two lists of independent pairs. Composed, the first list is worse than every pair of neighbours
(`above`); each list in `below` belongs to neighbours that exist, so its curve is reached. Where the worst difference is
known the two are the same.

Worst differences. Gaussian noise: the largest |S^(-1/2) v|. Product noise with log-concave factors (Laplace, Gaussian
and their discrete forms): min(p(z), e^x p(z + v)) is log-concave in (z, v), so by Prekopa's theorem H is quasi-convex
in v and largest at an extreme point: the corner of a box, a vertex +-R e_i of an L1 ball. Where the extreme
points are not finitely many (Laplace noise, L2 ball) only the pure bound |v/b|_1 is used above, and a few below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import frexp, isqrt, ldexp, prod
from sys import float_info
from typing import Any

from shapedp_check.balls import Ball, TooLarge, ball, exact, total
from shapedp_check.files import NotDescribed, entry, few, known, number, numbers, only, whole, wholes
from shapedp_check.logistic import Logistic
from shapedp_check.pairs import DiscreteLaplace, Gaussian, Hopeless, Laplace, Pair, Response, Worst
from shapedp_check.radial import Radial
from shapedp_check.rotations import rotation_rows, spectral, turned_reach
from shapedp_check.sets import Scales, Set, Widths, alike
from shapedp_check.staircase import staircase

Counted = tuple[Pair, int]
_UNITS = 2**30  # epsilons of a staircase are multiples of 1/_UNITS
_TINY = Fraction(1, 1 << 1200)  # below every grid
_FAR = 2.0**-400  # the product of two such scales does not underflow


@dataclass(frozen=True)
class Bounds:
    """Independent pairs that are worse than all neighbours, and lists of pairs that neighbours reach."""

    above: tuple[Counted, ...]
    below: tuple[tuple[Counted, ...], ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def tight(cls, *pairs: Counted) -> Bounds:
        """The worst difference is known."""
        return cls(pairs, (pairs,))


def additive(law: Any, region: Set) -> Bounds:
    """The pairs of a law on a set."""
    reader, fields = READERS[known(entry(law, "law"), READERS, "the law")]
    only(law, ("law", *fields), "a law")
    return reader(law, region)


def _scales(law: Any, region: Set) -> Scales:
    """`scale`, `dim` and `sizes` as one scale for all coordinates or one per coordinate."""
    scale, sizes = entry(law, "scale"), law.get("sizes")
    if isinstance(scale, int | float):
        if sizes is not None:
            raise NotDescribed("a single scale goes without sizes")
        values = [number(scale, "scale", least=0.0)]
        dim = whole(entry(law, "dim"), "dim")
    else:
        values = numbers(scale, "scale", least=0.0)
        if sizes is not None:
            counts = wholes(sizes, "sizes")
            few(sum(counts))
            if len(counts) != len(values):
                raise NotDescribed("scale and sizes differ in length")
            values = [value for value, size in zip(values, counts, strict=True) for _ in range(size)]
        dim = len(values)
        if law.get("dim") is not None and whole(law["dim"], "dim") != dim:
            raise NotDescribed("dim is not the number of scales")
    _same_dim(dim, region)
    return values


def _same_dim(dim: int, region: Set) -> None:
    if dim != region.dim:
        raise NotDescribed(f"the law has dimension {dim}, the set {region.dim}")


def _gaussian(law: Any, region: Set) -> Bounds:
    return Bounds.tight((Gaussian(region.l2_reach(_scales(law, region))), 1))


def _laplace(law: Any, region: Set) -> Bounds:
    return _product(_scales(law, region), [False], region)


def _logistic(law: Any, region: Set) -> Bounds:
    """The corner of a box, the vertex of least noise of an L1 ball. Any other set lies in such a ball (of v/s)."""
    scales = _scales(law, region)
    moved = alike(region.dim, region.box or region.widths(), scales)
    if any(width > 0 and scale == 0 for width, scale in moved):
        return Bounds.tight((Hopeless(), 1))
    ratios: Counter[Fraction] = Counter()
    for (width, scale), count in moved.items():
        if width:
            ratios[exact(width) / exact(scale)] += count
    ratios = ratios or Counter([Fraction(0)])
    if region.box is not None:
        return Bounds.tight(*((Logistic(ratio), count) for ratio, count in ratios.items()))
    alone = (Logistic(max(ratios)), 1)
    if region.l1 is not None:
        return Bounds.tight(alone)
    reach = _fraction_above(region.l1_reach(scales))
    return Bounds(((Logistic(reach), 1),), ((alone,),), ("logistic noise: bounded above by a shift of one coordinate",))


def _mixed(law: Any, region: Set) -> Bounds:
    scales = numbers(entry(law, "scale"), "scale", least=0.0)
    chosen = numbers(entry(law, "gaussian"), "gaussian")
    if len(chosen) != len(scales) or any(value not in (0.0, 1.0) for value in chosen):
        raise NotDescribed("gaussian must hold a 0 or a 1 per scale")
    _same_dim(len(scales), region)
    return _product(scales, [value == 1.0 for value in chosen], region)


def _product(scales: Scales, gaussian: list[bool], region: Set) -> Bounds:
    """Independent Gaussian (`gaussian_i`) and Laplace coordinates."""
    places = alike(region.dim, region.box or region.widths(), scales, gaussian)
    if any(width > 0 and scale == 0 for width, scale, _ in places):
        return Bounds.tight((Hopeless(), 1))
    if region.box is not None:
        return Bounds.tight(*_corner(places))
    single = [_corner(Counter([place])) for place in places]
    if region.l1 is not None:
        alone = tuple({pair: None for part in single for pair, _ in part})
        if not any(gaussian):
            top = max(pair.ratio for pair in alone if isinstance(pair, Laplace))
            return Bounds.tight((Laplace(top), 1))
        return Bounds(((Worst(alone), 1),), tuple(((pair, 1),) for pair in alone))
    above: list[Counted] = []
    if any(gaussian):
        above.append((Gaussian(region.l2_reach(_masked(scales, gaussian))), 1))
    if not all(gaussian):
        reach = region.l1_reach(_masked(scales, [not kind for kind in gaussian]))
        above.append((Response(_fraction_above(reach)), 1))
    return Bounds(
        tuple(above),
        (*(tuple(part) for part in single), tuple(_corner(alike(region.dim, _even(region), scales, gaussian)))),
        ("an L2 ball with Laplace coordinates: bounded above by the pure guarantee only",) if not all(gaussian) else (),
    )


def _masked(scales: Scales, keep: list[bool]) -> Scales:
    """Scales with the others so large that they do not count (they are bounded from above by dropping them)."""
    if len(keep) == 1:
        return scales if keep[0] else [2.0**1000]
    return [scale if kept else 2.0**1000 for scale, kept in zip(scales, keep, strict=True)]


def _even(region: Set) -> Widths:
    """A difference inside the set: equal entries per part, radius/sqrt(size), a little less, exactly; or a vertex."""
    if region.vertices:
        return [abs(exact(one)) for one in next(region.listed())]
    if region.parts[0].where is None:
        radius, axes = exact(region.parts[0].radius) * _root_below(region.dim), region.parts[0].axes
        return [radius] if axes is None else [radius * exact(axis) for axis in axes]
    result = [Fraction(0)] * few(region.dim)
    for part in region.parts:
        for i in part.where or ():
            result[i] = exact(part.radius) * _root_below(len(part.where or ()))
    return result


def _root_below(size: int) -> Fraction:
    """1/sqrt(size), rounded down."""
    return Fraction(isqrt((1 << 256) // size), 1 << 128)


def _corner(places: Counter[tuple[Any, ...]]) -> list[Counted]:
    """The pairs of one difference: one Gaussian for all Gaussian coordinates, Laplace ones counted by their ratio.

    `places` counts the coordinates by (width, scale, whether Gaussian).
    """
    square = ball(0)
    merged: Counter[Fraction] = Counter()
    for (width, scale, kind), count in places.items():
        if width and not kind:
            merged[exact(width) / exact(scale)] += count
    normal = [(width, scale, count) for (width, scale, kind), count in places.items() if kind and width]
    for times in {count for *_, count in normal}:
        square += times * total(((width, scale) for width, scale, count in normal if count == times), 2)
    result: list[Counted] = [(Gaussian(square.sqrt()), 1)] if normal else []
    result += [(Laplace(ratio), count) for ratio, count in merged.items()]
    return result or [(Laplace(Fraction(0)), 1)]


def _fraction_above(value: Ball) -> Fraction:
    """A fraction just above a ball."""
    if not value.is_finite():
        raise NotDescribed("the set reaches infinitely far")
    top = value.upper()
    mantissa, exponent = top.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _tensor(law: Any, region: Set) -> Bounds:
    """Noise R x + s z, R a product of one matrix per mode (integers over 2^24) and s one of scales.

    mu = max |diag(1/s) R v|. Without rotations s is one scale per coordinate. With them, an L2 ball of radius D has
    mu = D prod_k |diag(1/s_k) R_k|_2; any other set lies inside the ball of its longest difference.
    """
    modes = entry(law, "modes")
    if not isinstance(modes, list) or not modes:
        raise NotDescribed("modes must be a list")
    for mode in modes:
        only(mode, ("scales", "rotation"), "a mode")
    scales = [numbers(entry(mode, "scales"), "scales", least=0.0) for mode in modes]
    _same_dim(prod(map(len, scales)), region)
    note = "rotated input: its rounding to the grid of the release is not part of the file"
    if all(mode.get("rotation") is None for mode in modes):
        norms = ball(1)
        if region.parts and region.parts[0].where is None and region.parts[0].axes is None:
            for one in scales:
                norms *= total([(1.0, min(one))], 1)
            return Bounds.tight((Gaussian(norms * ball(region.parts[0].radius)), 1))
        flat, power = _flat(scales)
        slack = ball(len(scales)) / (1 << 50)  # the products of the scales are rounded
        reach = region.l2_reach(flat) * ball(2) ** -power
        return Bounds.tight((Gaussian(reach * (1 + slack.union(-slack))), 1))
    if len(modes) == 1 and (region.vertices or region.l1 is not None):
        reach = turned_reach(scales[0], rotation_rows(modes[0]["rotation"], len(scales[0])), region)
        return Bounds(((Gaussian(reach), 1),), (((Gaussian(reach), 1),),), (note,))
    norms = ball(1)
    for mode, one in zip(modes, scales, strict=True):
        norms *= spectral(one, mode.get("rotation"))
    reach = region.l2_reach([1.0])
    worst = Gaussian(reach * norms)
    plain = bool(region.parts) and region.parts[0].where is None and region.parts[0].axes is None
    if plain:
        return Bounds(((worst, 1),), (((worst, 1),),), (note,))
    return Bounds(((worst, 1),), (), (note, "rotated noise on another set than a ball: bounded above only"))


def _flat(scales: list[Scales]) -> tuple[Scales, int]:
    """All products of one scale per mode, and the power of two by which they are to be multiplied.

    Each mode is divided by a power of two first, so that nothing overflows; what would underflow is refused.
    """
    few(prod(map(len, scales)))
    flat, power = [1.0], 0
    for one in scales:
        most = frexp(max(one))[1]
        even = [ldexp(value, -most) for value in one]
        flat = [left * right for left in flat for right in even]
        power += most
        if any(value and small < _FAR for value, small in zip(one, even, strict=True)) or any(
            0 < value < _FAR for value in flat
        ):
            raise TooLarge("the scales of a tensor law are too far apart")
    return flat, power


def _radial(law: Any, region: Set) -> Bounds:
    dim = whole(entry(law, "dim"), "dim")
    _same_dim(dim, region)
    a, b = (number(entry(law, name), name, above=0.0) for name in ("a", "b"))
    scale = number(entry(law, "scale"), "scale", above=0.0)
    if a > dim:
        raise NotDescribed("a > dim: the density is not decreasing, and the largest shift need not be the worst")
    reach = region.l2_reach([scale])
    if a == dim and b == 2:
        return Bounds.tight((Gaussian(reach * ball(2).sqrt()), 1))
    return Bounds.tight((Radial(dim, a, b, reach), 1))


def _steps_moved(width: float | Fraction, grid: float, integers: bool = False) -> int:
    """How far the integers of two inputs at most `width` apart can differ, rounded to the nearest, ties to even.

    `integers`: the inputs are. On a grid of at most 1, of which 1 is a multiple, nothing is rounded; on a wider
    one the ties are integers, too.

    rint(a) - rint(b) = m needs a - b >= m - 1, and equality needs both to be ties that round apart, which is so only
    if m is even. So m = floor(t) + 1 with t = width/grid, but m = t where t is an even integer.
    """
    t = exact(width) / exact(grid)
    if integers and grid <= 1:
        return int(t)
    return int(t) if t.denominator == 1 and t.numerator % 2 == 0 else int(t) + 1


def _grid_columns(law: Any, names: tuple[str, ...], dim: int) -> list[Scales]:
    """The columns of a law on a grid, each with one entry for all coordinates or with one per coordinate."""
    columns = [numbers(entry(law, name), name, least=0.0) for name in names]
    if len({len(column) for column in columns}) != 1 or len(columns[0]) not in (1, dim):
        raise NotDescribed(f"{', '.join(names)} must have one entry, or one per coordinate")
    if any(frexp(grid)[0] != 0.5 for grid in columns[names.index("grid")]):
        raise NotDescribed("grid must hold powers of two")
    return columns


def _discrete_laplace(law: Any, region: Set) -> Bounds:
    dim = whole(entry(law, "dim"), "dim")
    _same_dim(dim, region)
    steps, grids = _grid_columns(law, ("steps", "grid"), dim)
    if any(step != int(step) for step in steps):
        raise NotDescribed("steps must be whole numbers")
    counted: Counter[tuple[int, int]] = Counter()
    for (width, step, grid), count in alike(dim, region.widths(), steps, grids).items():
        counted[int(step), _steps_moved(width, grid, region.whole)] += count
    if any(move and not step for step, move in counted):
        return Bounds.tight((Hopeless(), 1))
    counted = Counter({place: count for place, count in counted.items() if place[1]})
    if region.is_box:
        return Bounds.tight(*((DiscreteLaplace(step, move), count) for (step, move), count in counted.items()))
    noisy = [min(step * grid, float_info.max) if step else 2.0**1000 for step, grid in zip(steps, grids, strict=True)]
    unrounded = region.whole and all(grid <= 1 for grid in grids)
    rounding = sum((Fraction(count, step) for (step, _), count in counted.items() if not unrounded), Fraction(0))
    reach = _fraction_above(region.l1_reach(noisy) + ball(rounding))
    alone = {DiscreteLaplace(step, move): None for step, move in counted}
    below: list[tuple[Counted, ...]] = [((pair, 1),) for pair in alone]
    if not region.whole:  # reals may round apart in every coordinate, however near they are
        even = _even(region) if region.l1 is None else [_TINY]
        below.append(tuple(_discrete_corner(alike(dim, even, steps, grids))))
    return Bounds(
        ((Response(reach), 1),),
        tuple(below),
        ("rounding to the grid moves every coordinate at once: bounded above by the pure guarantee only",),
    )


def _discrete_corner(places: Counter[tuple[Any, ...]]) -> list[Counted]:
    """The pairs of one difference; an arbitrarily small one can move the rounded input by one step everywhere."""
    result: Counter[DiscreteLaplace] = Counter()
    for (width, step, grid), count in places.items():
        move = _steps_moved(width, grid)
        if move:
            result[DiscreteLaplace(int(step), move)] += count
    return list(result.items())


def _staircase(law: Any, region: Set) -> Bounds:
    if not region.is_box:
        raise NotDescribed("staircase noise is checked on boxes only")
    columns = _grid_columns(law, ("width", "inner", "units", "grid"), region.dim)
    counted: Counter[tuple[int, int, Fraction, int]] = Counter()
    for (reach, width, inner, units, grid), count in alike(region.dim, region.widths(), *columns).items():
        if any(one != int(one) for one in (width, inner, units)) or not (1 <= inner <= width and units >= 1):
            raise NotDescribed("width, inner and units must be whole, 1 <= inner <= width, units >= 1")
        counted[int(width), int(inner), Fraction(int(units), _UNITS), _steps_moved(reach, grid, region.whole)] += count
    pairs = [(staircase(*key), count) for key, count in counted.items()]
    reached = tuple((pair.pairs[-1] if isinstance(pair, Worst) else pair, count) for pair, count in pairs)
    return Bounds(tuple(pairs), (reached,))


def _l1_staircase(law: Any, region: Set) -> Bounds:
    """Height e^(-k epsilon) on l1 shells of one width: a shift of l1 length R changes at most ceil(R/width) levels."""
    _same_dim(whole(entry(law, "dim"), "dim"), region)
    width = exact(number(entry(law, "width"), "width", above=0.0))
    epsilon = exact(number(entry(law, "epsilon"), "epsilon", above=0.0))
    number(entry(law, "gamma"), "gamma", least=0.0, most=1.0)
    reach = _fraction_above(region.l1_reach([1.0])) if region.l1 is None else exact(region.l1)
    levels = -(-reach // width)
    return Bounds(((Response(epsilon * levels), 1),), (), ("l1 staircase: bounded above by the pure guarantee only",))


READERS: dict[str, tuple[Callable[[Any, Set], Bounds], tuple[str, ...]]] = {
    "gaussian": (_gaussian, ("scale", "dim", "sizes")),
    "laplace": (_laplace, ("scale", "dim", "sizes")),
    "logistic": (_logistic, ("scale", "dim", "sizes")),
    "mixed": (_mixed, ("scale", "gaussian")),
    "tensor-gaussian": (_tensor, ("modes",)),
    "radial": (_radial, ("dim", "a", "b", "scale")),
    "discrete-laplace": (_discrete_laplace, ("steps", "grid", "dim")),
    "staircase": (_staircase, ("width", "inner", "units", "grid")),
    "l1-staircase": (_l1_staircase, ("width", "epsilon", "dim", "gamma")),
}
