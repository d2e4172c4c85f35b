"""Selections: exact probabilities by enumeration, certificates against all neighbours, samplers by chi-square."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

import shapedp as sdp
from shapedp.mechanisms import Selection
from shapedp.mechanisms.selection.choose import fraction_below
from shapedp.privacy.losses.selected import METHODS, SelectionLoss
from shapedp.sampling import SecureSource, source
from shapedp.sampling.choice import Bits, exponential_choice, exponential_ends

ALARM = 1e-6
HALF = Fraction(1, 2)


def exponential(utilities, r):
    weights = [r ** (max(utilities) - u) for u in utilities]
    return [w / sum(weights) for w in weights]


def permute_and_flip(utilities, r):
    """Over all orders: the first candidate that shows heads, with probability r^gap."""
    heads = [r ** (max(utilities) - u) for u in utilities]
    found = [Fraction(0)] * len(heads)
    orders = list(itertools.permutations(range(len(heads))))
    for order in orders:
        left = Fraction(1, len(orders))
        for one in order:
            found[one] += left * heads[one]
            left *= 1 - heads[one]
    return found


def noisy_max(utilities, r, reach=60):
    """Over all values of the maximum within reach; ties are shared."""
    c = (1 - r) / (1 + r)
    n, found = len(utilities), [Fraction(0)] * len(utilities)

    def at(k):
        return c * r ** abs(k)

    def below(k):  # P(noise < k)
        return r ** (1 - k) / (1 + r) if k <= 0 else 1 - r**k / (1 + r)

    for top in range(min(utilities) - reach, max(utilities) + reach):
        for ties in itertools.product((0, 1), repeat=n):
            if any(ties):
                p = math.prod(at(top - u) if t else below(top - u) for u, t in zip(utilities, ties, strict=True))
                for i, t in enumerate(ties):
                    found[i] += p * t / sum(ties)
    return found


EXACT = {"exponential": exponential, "permute-and-flip": permute_and_flip, "noisy-max": noisy_max}


def neighbours(n, most, monotone):
    """All pairs of small integer utilities that one person can lie between."""
    steps = [(0, 1), (-1, 0)] if monotone else [(-1, 0, 1)]
    for u in itertools.product(range(most + 1), repeat=n):
        if min(u):
            continue  # only differences matter
        for moves in steps:
            for move in itertools.product(moves, repeat=n):
                yield u, tuple(a + b for a, b in zip(u, move, strict=True))


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_no_neighbours_exceed_the_certificate(method, monotone):
    """The weight per unit of utility is a fraction here, so that every probability and every ratio is exact."""
    r = Fraction(3, 5)
    most, n = (1, 2) if method == "noisy-max" else (3, 3)
    law = {}
    distance = 1 if monotone else 2
    rate = Fraction(-math.log(r)).limit_denominator(10**9)
    if math.exp(-rate) > r:  # a rate that is not below: the loss is that of no less
        rate += Fraction(1, 10**9)
    loss = SelectionLoss(method, rate, distance)
    ceiling = {e: loss.delta(e * loss.pure).upper for e in (0.0, 0.3, 0.6, 0.9)}
    worst = dict.fromkeys(ceiling, 0.0)
    for pair in neighbours(n, most, monotone):
        p, q = (law.setdefault(u, EXACT[method](u, r)) for u in pair)
        assert max(a / b for a, b in zip(p, q, strict=True)) <= r**-distance * (1 + Fraction(1, 10**12))
        if method == "exponential":
            ratios = [a / b for a, b in zip(p, q, strict=True)]
            assert max(ratios) / min(ratios) <= r**-distance  # bounded range, exactly
        for e in ceiling:
            k = math.exp(e * loss.pure)
            worst[e] = max(worst[e], sum(max(float(a) - k * float(b), 0.0) for a, b in zip(p, q, strict=True)))
    for e, bound in ceiling.items():
        assert worst[e] <= bound + 1e-8
    assert worst[0.0] > 0.3 * ceiling[0.0]


def test_permute_and_flip_is_not_of_bounded_range():
    r = Fraction(math.exp(-HALF)).limit_denominator(10**6)
    p, q = permute_and_flip((0, 1), r), permute_and_flip((1, 0), r)
    assert math.log(p[1] / q[1] / (p[0] / q[0])) == pytest.approx(2 * math.log(2 * math.exp(0.5) - 1), abs=1e-5)  # 1.66


@pytest.mark.parametrize("method", METHODS)
def test_lower_ends_are_reached_and_upper_ends_are_not_passed(method):
    loss = SelectionLoss(method, Fraction(1, 4), 4)
    with mpmath.workdps(40):
        r = mpmath.exp(mpmath.mpf(-1) / 4)
        law = {}
        for margin in range(-24, 29):
            low = min(margin, 0)
            pair = (margin - low, -low)
            law[margin] = EXACT[method](pair, r, *([200] if method == "noisy-max" else []))
        for epsilon in (0.0, 0.3, 0.7) if method == "noisy-max" else (0.0, 0.3, 0.7, 0.95):
            k = mpmath.exp(epsilon)
            shown = max(sum(max(a - k * b, 0) for a, b in zip(law[d], law[d - 4], strict=True)) for d in range(-20, 29))
            bracket = loss.delta(epsilon)
            assert bracket.lower <= shown * (1 + mpmath.mpf(10) ** -30)
            assert bracket.lower >= shown * (0.98 if method == "noisy-max" else 0.9999)
            assert shown <= bracket.upper
            if method == "exponential":
                assert bracket.lower >= 0.98 * bracket.upper


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("utilities", [(0, 0), (3, 1, 4), (2, 2, 0, 1)])
def test_stated_probabilities_are_those_of_the_enumeration(method, utilities):
    m = Selection(len(utilities), (3, 4), 9.0, 0.0, 1, True, method)
    with mpmath.workdps(40):
        expected = EXACT[method](utilities, mpmath.exp(mpmath.mpf(-3) / 4))
    assert m.probabilities(utilities) == pytest.approx([float(p) for p in expected], abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_frequencies_of_the_sampler(method):
    """False alarms: 1e-6. A rate that is a quarter off is seen."""
    utilities, draws, rng = np.array([0, 3, 5, 5, 1, 4]), 8_000, np.random.default_rng(7)
    m = Selection(6, (2, 5), 1.0, 0.0, 1, True, method)
    seen = np.bincount([m.release(utilities, rng=rng).index for _ in range(draws)], minlength=6)
    assert stats.chisquare(seen, draws * m.probabilities(utilities)).pvalue > ALARM
    other = Selection(6, (1, 2), 1.0, 0.0, 1, True, method).probabilities(utilities)
    assert stats.chisquare(seen, draws * other).pvalue < ALARM


def test_choices_refine_until_they_are_decided():
    """Few bits at first: a source that always falls on an end is decided by later bits, never by a guess."""

    class Ends:
        secure = False

        def __init__(self):
            self.given = 0

        def words(self, n):
            self.given += n
            return np.zeros(n, dtype=np.uint64) if self.given > 64 else np.full(n, 2**63, dtype=np.uint64)

    assert exponential_choice([0, 10**9], [1, 1], Fraction(1), Bits(Ends())) == 0
    low, high = exponential_ends(Fraction(7, 3), 200)
    with mpmath.workdps(90):
        exact = mpmath.exp(mpmath.mpf(-7) / 3) * 2**200
        assert low <= exact <= high
        assert high - low <= 4
    counts = np.bincount([Bits(SecureSource()).below(3) for _ in range(300)], minlength=3)
    assert counts.min() > 40


@pytest.mark.parametrize("k", [1, 2, 3, 17, 1000])
def test_exponentials_are_enclosed(k):
    for exponent in (Fraction(0), Fraction(1, 3 * k), Fraction(k), Fraction(10**6 + k, 7)):
        low, high = exponential_ends(exponent, 64 + k)
        with mpmath.workdps(2000 if k == 1000 else 400):
            exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * mpmath.mpf(2) ** (64 + k)
            assert low <= exact <= high


def test_discrete_laplace_of_any_rate():
    bits, rate, draws = Bits(source(np.random.default_rng(3))), Fraction(5, 7), 20_000
    seen = np.array([bits.laplace(rate) for _ in range(draws)])
    inside = np.arange(-6, 7)
    p = math.tanh(5 / 14) * np.exp(-5 / 7 * np.abs(inside))
    counts = np.array([(seen == k).sum() for k in inside])
    expected = draws * np.append(p, 1 - p.sum())
    assert stats.chisquare(np.append(counts, draws - counts.sum()), expected).pvalue > ALARM


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("monotone", [True, False])
def test_two_best_by_enumeration(method, monotone):
    """The joint law of two choices, the second among what is left, never passes the loss."""
    n, r = 3, 0.5
    rate = Fraction(math.log(2)).limit_denominator(10**9) + Fraction(1, 10**9)
    loss = SelectionLoss(method, rate, 1 if monotone else 2, 2, 1)
    cache = {}

    def joint(u):
        found = {}
        for first, p in enumerate(cache.setdefault(u, [float(x) for x in EXACT[method](u, Fraction(r))])):
            rest = tuple(x for i, x in enumerate(u) if i != first)
            left = [i for i in range(n) if i != first]
            second = cache.setdefault(rest, [float(x) for x in EXACT[method](rest, Fraction(r))])
            for i, q in zip(left, second, strict=True):
                found[first, i] = p * q
        return found

    pairs = (
        itertools.islice(neighbours(n, 1, monotone), 0, None, 16) if method == "noisy-max" else neighbours(n, 3, True)
    )
    bounds = {e: loss.delta(e).upper for e in (0.0, 0.4, 0.9, 1.2)}
    for pair in pairs:
        p, q = map(joint, pair)
        for e, bound in bounds.items():
            assert sum(max(p[o] - math.exp(e) * q[o], 0.0) for o in p) <= bound + 1e-8


def test_compositions_are_tighter_than_addition_and_hold_for_adaptive_choices():
    eta, times = 0.5, 3
    loss = SelectionLoss("exponential", HALF, 1)
    whole = sdp.compose([(loss, times)])
    together = SelectionLoss("exponential", HALF, 1, times, 2)
    tops = np.linspace(1e-6, eta - 1e-6, 31)
    odds = (math.exp(eta) - np.exp(tops)) / math.expm1(eta)

    def worst(epsilon, left):
        """The most that an adaptive choice of the position of the range can show."""
        if left == 0:
            return np.maximum(-np.expm1(epsilon), 0.0)
        shown = [
            p * worst(epsilon - t, left - 1) + (1 - p) * worst(epsilon - t + eta, left - 1)
            for t, p in zip(tops, odds, strict=True)
        ]
        return np.max(shown, axis=0)

    for epsilon in (0.2, 0.7, 1.0):
        exact = float(worst(np.float64(epsilon), 2))
        pair = SelectionLoss("exponential", HALF, 1, 2, 1).delta(epsilon).upper
        assert exact <= pair <= 1.3 * exact + 1e-12 or exact == 0
        assert whole.delta(epsilon).upper == pytest.approx(together.delta(epsilon).upper, rel=1e-4)
    assert whole.epsilon(1e-3).upper < 0.95 * times * eta
    many = SelectionLoss("exponential", Fraction(1, 10), 1, 200, 100)
    assert many.epsilon(1e-6).upper < 0.4 * many.pure
    flips = SelectionLoss("permute-and-flip", Fraction(1, 10), 1, 200, 100)
    assert many.epsilon(1e-6).upper < 0.75 * flips.epsilon(1e-6).upper < 0.75 * flips.pure


def test_renyi_is_the_largest_over_positions():
    loss = SelectionLoss("exponential", Fraction(3, 2), 1)
    tops = np.linspace(0, 1.5, 20001)
    p = (math.exp(1.5) - np.exp(tops)) / math.expm1(1.5)
    for alpha in (1.1, 2.0, 16.0, 200.0):
        exact = np.log(p * np.exp((alpha - 1) * tops) + (1 - p) * np.exp((alpha - 1) * (tops - 1.5))).max() / (
            alpha - 1
        )
        assert exact <= loss.renyi(alpha).upper <= exact * (1 + 1e-6) + 1e-9
    assert SelectionLoss("noisy-max", Fraction(1), 1).renyi(1e9).upper == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("monotone", "factor"), [(True, 1), (False, 2)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_calibration_meets_the_claim_and_no_more(method, monotone, factor, delta):
    m = Selection.calibrate(
        9, epsilon=0.1, delta=delta, sensitivity=3, monotone=monotone, method=method, times=2, adjacency="add-remove"
    )
    assert m.certificate.verdict == "certified"
    assert m.certificate.assumptions == ()
    assert m.certificate.adjacency == "add-remove"
    if not delta:
        assert m.rate == (1, 10 * 3 * factor * 2)
    more = Selection(9, (m.rate[0] * 11, m.rate[1] * 10), 0.1, delta, 3, monotone, method, 2)
    assert more.certificate.verdict == "undecided"
    twice = Selection(9, (m.rate[0] * 3, m.rate[1]), 0.1, delta, 3, monotone, method, 2)
    assert twice.certificate.verdict == "refuted"
    again = sdp.verify(sdp.Certificate.from_json(m.certificate.to_json()))
    assert again.bracket == m.certificate.bracket


def test_what_is_monotone_for_one_is_refuted_for_the_other():
    m = Selection.calibrate(4, epsilon=1.0, delta=0.0, sensitivity=1, monotone=True)
    said = Selection(4, m.rate, 1.0, 0.0, 1, False)
    assert said.certificate.verdict == "refuted"
    with pytest.raises(sdp.RefutedError):
        said.release([1, 2, 3, 4])


def test_the_best_are_found_and_the_shortfall_holds():
    counts, rng = np.array([900, 20, 500, 30, 700]), np.random.default_rng(0)
    made = sdp.top_k(counts, 3, epsilon=1.0, delta=0.0, sensitivity=1, monotone=True, rng=rng)
    assert made.value.tolist() == [0, 4, 2]
    assert made.index == 0
    for method in METHODS:
        m = Selection.calibrate(40, epsilon=0.5, delta=0.0, sensitivity=1, monotone=True, method=method)
        utilities = np.arange(40) * 2
        missed = [78 - utilities[m.release(utilities, rng=rng).index] > m.shortfall(0.9) for _ in range(400)]
        assert stats.binomtest(sum(missed), 400, 0.1, alternative="greater").pvalue > ALARM
        assert m.shortfall(0.9) < 40


@pytest.mark.parametrize(
    ("utilities", "words"),
    [
        ([0.5, 1.0, 2.0], "integers"),
        ([1, 2], "one entry per candidate"),
        ([[1, 2, 3]], "1-d"),
        (["a", "b", "c"], "real"),
    ],
)
def test_what_is_not_one_integer_per_candidate_is_refused(utilities, words):
    m = Selection.calibrate(3, epsilon=1.0, delta=0.0, sensitivity=1, monotone=True)
    with pytest.raises((TypeError, ValueError), match=words):
        m.release(utilities)


def test_what_is_no_selection_is_refused():
    for change in (
        {"rate": (1, 0)},
        {"rate": 0.5},
        {"monotone": "no"},
        {"times": 3},
        {"method": "best"},
        {"sensitivity": 0},
    ):
        given = {"candidates": 3, "rate": (1, 2), "epsilon": 1.0, "delta": 0.0, "sensitivity": 1, "monotone": True}
        with pytest.raises((TypeError, ValueError)):
            Selection(**{**given, **change})


def test_exchanged_persons_are_not_monotone():
    given = {"epsilon": 1.0, "delta": 0.0, "sensitivity": 1, "adjacency": "replace"}
    with pytest.raises(ValueError, match="monotone=False"):
        Selection.calibrate(3, monotone=True, **given)
    assert Selection.calibrate(3, monotone=False, **given).rate == (1, 2)


def test_rates_are_rounded_down():
    for value in (0.1, 1 / 3, 1e-9, 12345.678, 2.0**-30):
        exact = Fraction(value)
        assert exact * (1 - Fraction(1, 2**30)) <= fraction_below(exact) <= exact
