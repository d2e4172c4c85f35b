"""Quantiles: draws against enumerated laws, all neighbours against the certificate, intervals against the truth."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import shapedp as sdp
from shapedp.mechanisms import Quantiles, quantiles
from shapedp.mechanisms.selection import Prefixes, recursion
from shapedp.mechanisms.selection.recursion import _draw, chosen_method, local
from shapedp.sampling import source
from shapedp.sampling.choice import Bits

ALARM = 1e-6


def law(records, start, end, target, weight):
    """Probabilities of the points of [start, end): weight(gap) of |b c(z) - a n|."""
    a, b = target.as_integer_ratio()
    found = [weight(abs(b * sum(x < z for x in records) - a * len(records))) for z in range(start, end)]
    return [one / sum(found) for one in found]


@pytest.mark.parametrize("target", [Fraction(1, 2), Fraction(1, 3), Fraction(4, 5)])
def test_one_draw_is_of_bounded_range_for_a_record_more(target):
    """Exact fractions: e^(-rate) is 2/3, and the reach 2 max(a, b - a) rates."""
    r, size = Fraction(2, 3), 5
    longest = 0
    a, b = target.as_integer_ratio()
    for n in range(4):
        for records in itertools.combinations_with_replacement(range(size), n):
            one = law(records, 0, size, target, lambda gap: r**gap)
            for joined in range(size):
                other = law((*records, joined), 0, size, target, lambda gap: r**gap)
                ratios = [p / q for p, q in zip(one, other, strict=True)]
                longest = max(longest, max(ratios) / min(ratios))
    assert longest <= r ** (-2 * max(a, b - a))
    assert longest >= r ** -(max(a, b - a) + 1)


@pytest.mark.parametrize("target", [Fraction(1, 2), Fraction(1, 4)])
def test_draws_have_that_law(target):
    places, bits, draws = np.array([2, 2, 3, 9, 11]), Bits(source(np.random.default_rng(2))), 6000
    reach = Fraction(3, 2)
    a, b = target.as_integer_ratio()
    rate = float(reach / (2 * max(a, b - a)))
    expected = law(places, 1, 14, target, lambda gap: math.exp(-rate * gap))
    found = [_draw(places, 1, 14, target, reach, bits) for _ in range(draws)]
    assert all(under == (places < point).sum() for point, under in found)
    seen = np.bincount([point - 1 for point, _ in found], minlength=13)
    assert stats.chisquare(seen, draws * np.array(expected)).pvalue > ALARM
    other = law(places, 1, 14, target, lambda gap: math.exp(-1.25 * rate * gap))
    assert stats.chisquare(seen, draws * np.array(other)).pvalue < ALARM


def recursion_law(records, size, levels, reach):
    """The joint law of the points, by enumeration of the recursion."""

    def descend(first, last, below, above, inside, start, end):
        if first == last:
            return {(): 1.0}
        middle = (first + last) // 2
        target = local((levels[middle] - below) / (above - below))
        a, b = target.as_integer_ratio()
        rate = reach / (2 * max(a, b - a))
        if start < end:
            points = zip(range(start, end), law(inside, start, end, target, lambda g: math.exp(-rate * g)), strict=True)
        else:
            points = [(start, 1.0)]
        found = {}
        for z, p in points:
            left = descend(first, middle, below, levels[middle], [x for x in inside if x < z], start, z)
            right = descend(middle + 1, last, levels[middle], above, [x for x in inside if x >= z], z, end)
            for (one, q), (other, s) in itertools.product(left.items(), right.items()):
                key = (*one, min(z, size - 1), *other)
                found[key] = found.get(key, 0.0) + p * q * s
        return found

    return descend(0, len(levels), Fraction(0), Fraction(1), list(records), 0, size)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_no_neighbours_exceed_the_certificate(adjacency, monkeypatch):
    """The whole recursion for three quantiles on a grid of four cells; no finer places, so that all is enumerated."""
    levels, size = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)], 4
    m = Quantiles(size, tuple(q.as_integer_ratio() for q in levels), (3, 4), 1.0, 0.0, adjacency)
    bounds = {e: m.loss.delta(e).upper for e in (0.0, 0.4, 0.9, 1.3)}
    laws = {}

    def of(records):
        return laws.setdefault(records, recursion_law(records, size, levels, 0.75))

    worst = dict.fromkeys(bounds, 0.0)
    for n in range(1, 4):
        for records in itertools.combinations_with_replacement(range(size), n):
            fewer = records[1:]
            others = [fewer] if adjacency == "add-remove" else [tuple(sorted((*fewer, x))) for x in range(size)]
            for other in others:
                for p, q in ((of(records), of(other)), (of(other), of(records))):
                    for e in bounds:
                        shown = sum(max(p[o] - math.exp(e) * q.get(o, 0.0), 0.0) for o in p)
                        worst[e] = max(worst[e], shown)
    for e, bound in bounds.items():
        assert worst[e] <= bound + 1e-12
    assert worst[0.0] > 0.3 * bounds[0.0]
    monkeypatch.setattr(recursion, "_FINER", 0)
    counts, rng, draws = np.array([1, 0, 1, 1]), np.random.default_rng(4), 4000
    exact = of((0, 2, 3))
    seen = dict.fromkeys(exact, 0)
    for _ in range(draws):
        seen[tuple(m.release(counts, rng=rng, unsafe=True).value.tolist())] += 1
    likely = [o for o in exact if exact[o] * draws > 10]
    rest = draws - sum(seen[o] for o in likely)
    expected = [exact[o] * draws for o in likely]
    assert stats.chisquare([*(seen[o] for o in likely), rest], [*expected, draws - sum(expected)]).pvalue > ALARM


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace", "zero-out"])
def test_calibration_files_and_ranks(delta, adjacency):
    q = np.arange(1, 8) / 8
    m = Quantiles.calibrate(64, q, epsilon=1.0, delta=delta, adjacency=adjacency, records=2)
    assert m.levels == 3
    assert m.certificate.verdict == "certified"
    if not delta:
        assert m.reach == (1, 12 if adjacency == "replace" else 6)
    assert sdp.verify(sdp.Certificate.from_json(m.certificate.to_json())).bracket == m.certificate.bracket
    counts, rng = np.full(64, 500), np.random.default_rng(1)
    far = m.ranks(0.95)
    for _ in range(5):
        ranks = m.release(counts, rng=rng).value * 500
        assert (np.abs(ranks - q * 32000) <= far + 500).all()


def test_ties_are_served():
    """Half of all records in one cell: every quantile among them is that cell."""
    counts = np.array([100, 10_000, 5000, 5000, 10])
    made = quantiles(
        counts, [1, 2, 3, 4, 9], [0.1, 0.2, 0.3, 0.45, 0.6, 0.9], epsilon=1.0, delta=0.0, adjacency="add-remove",
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert made.value.tolist() == [2, 2, 2, 2, 3, 4]
    with pytest.raises(ValueError, match="prefix"):
        made.interval(0.9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_prefix_counts_and_their_intervals(adjacency):
    """Coverage of 95% intervals, one-sided test with false alarms of 1e-6; a neighbour stays within the hull."""
    rng = np.random.default_rng(8)
    counts = rng.integers(0, 60, 30)
    q = [0.1, 0.5, 0.77]
    plan = Prefixes.calibrate(np.arange(30.0), q, epsilon=1.0, delta=1e-6, adjacency=adjacency)
    assert plan.mechanism.certificate.verdict == "certified"
    below = np.cumsum(counts)
    truth = [int(np.searchsorted(below, level * below[-1])) for level in q]
    held, width, rounds, missed = np.zeros(3), 0.0, 400, 0
    for _ in range(rounds):
        made = plan.release(counts, rng=rng)
        low, high = made.interval(0.95)
        held += (low <= truth) & (truth <= high)
        width += float((high - low).mean())
        at = made.value.astype(int)
        error = np.maximum(
            0, np.maximum(below[at] - counts[at] - np.array(q) * below[-1], np.array(q) * below[-1] - below[at])
        )
        missed += bool((error > made.ranks(0.95)).any())
    assert all(stats.binomtest(int(one), rounds, 0.95, alternative="less").pvalue > ALARM for one in held)
    assert missed <= 0.1 * rounds
    assert width / rounds < 6


def test_the_better_method_is_chosen_before_any_count():
    def chosen(cells, m, delta=1e-6):
        levels = tuple(Fraction(k + 1, m + 1) for k in range(m))
        return chosen_method("best", cells, levels, 1.0, delta, "add-remove", 1)

    assert chosen(100, 1) == "recursion"
    assert chosen(100, 50) == "prefix"
    assert chosen(100, 50, 0.0) == chosen(100_000, 50) == "recursion"
    assert chosen_method("prefix", 100, (Fraction(1, 2),), 1.0, 1e-6, "replace", 1) == "prefix"


@pytest.mark.parametrize(
    ("counts", "grid", "q"),
    [
        ([1, 2], [1, 2, 3], [0.5]),
        ([1, 2], [2, 1], [0.5]),
        ([1, -2], [1, 2], [0.5]),
        ([1.5, 2], [1, 2], [0.5]),
        ([1, 2], [1, 2], [0.5, 0.5]),
        ([1, 2], [1, 2], [0.9, 0.5]),
        ([1, 2], [1, 2], [1.0]),
        ([1, 2], [1, 2], []),
    ],
)
def test_what_is_no_question_is_refused(counts, grid, q):
    with pytest.raises((TypeError, ValueError)):
        quantiles(counts, grid, q, epsilon=1.0, delta=0.0, adjacency="add-remove")


def test_records_keep_to_themselves():
    """A record's place within its cell depends on no other record: what neighbours share stays."""
    one, other = (
        recursion._places(np.array(counts), source(np.random.default_rng(3))) for counts in ([3, 4, 5], [3, 4, 6])
    )
    assert (one == other[:-1]).all()
    assert other[-1] >> recursion._FINER == 2
