"""Keys that nobody listed: the published optimum, exact probabilities, certificates against all neighbours."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import shapedp as sdp
from shapedp.mechanisms import KeySelection
from shapedp.mechanisms.selection.keys import keep_ends
from shapedp.privacy.losses.selected import KeysLoss

ALARM = 1e-6


def published(epsilon, delta, most):
    """The recursion in 60 digits."""
    with mpmath.workdps(60):
        e, d, found = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta), [mpmath.mpf(0)]
        for _ in range(most):
            p = found[-1]
            found.append(min(e * p + d, 1 - (1 - p - d) / e, mpmath.mpf(1)))
        return found


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.05])
def test_probabilities_are_those_of_the_recursion(epsilon, delta):
    m = KeySelection(epsilon, delta, 1, epsilon, delta, "add-remove")
    exact = published(epsilon, delta, 3000)
    assert m.probabilities(np.arange(3001)) == pytest.approx([float(p) for p in exact], abs=1e-12)
    lows, highs = keep_ends(epsilon, delta, 100)
    with mpmath.workdps(60):
        for p, low, high in zip(exact, lows, highs, strict=False):
            assert low <= p * 2**100 <= high
            assert high - low <= 2


def test_the_published_closed_form():
    """Theorem 1 of the paper: the places where the rule changes, and the values there."""
    epsilon, delta = 1.0, 1e-5
    first = 1 + math.floor(math.log((math.exp(epsilon) + 2 * delta - 1) / ((math.exp(epsilon) + 1) * delta)) / epsilon)
    m = KeySelection(epsilon, delta, 1, epsilon, delta, "add-remove")
    p = m.probabilities(np.arange(60))
    n = np.arange(first + 1)
    assert p[: first + 1] == pytest.approx(np.expm1(n * epsilon) / math.expm1(epsilon) * delta, rel=1e-12)
    after = np.arange(1, 8)
    grown = (1 - np.exp(-after * epsilon)) * (1 + delta / math.expm1(epsilon)) + np.exp(-after * epsilon) * p[first]
    assert p[first + 1 : first + 8] == pytest.approx(grown, rel=1e-12)
    assert p[-1] == 1


@pytest.mark.parametrize("adjacency", ["add-remove", "replace", "zero-out"])
@pytest.mark.parametrize("keys", [1, 2, 3])
def test_no_neighbours_exceed_the_certificate(adjacency, keys):
    """All outcomes of all small tables; one person's keys leave, or others come in their place."""
    m = KeySelection.calibrate(keys=keys, epsilon=0.8, delta=0.02, adjacency=adjacency)
    table = m.probabilities(np.arange(12)).tolist()
    worst = 0.0

    def law(counts):
        found = np.ones(1)
        for n in counts:
            found = np.concatenate([found * (1 - table[n]), found * table[n]])
        return found

    size = 2 * keys if adjacency == "replace" else keys  # the counts that differ
    most = 8 if size <= 3 else 3 if size == 4 else 2
    for counts in itertools.product(range(most), repeat=size):
        joined = [n + (1 if adjacency != "replace" or i < keys else 0) for i, n in enumerate(counts)]
        left = [n + (1 if adjacency == "replace" and i >= keys else 0) for i, n in enumerate(counts)]
        p, q = law(joined), law(left)
        for one, other in ((p, q), (q, p)):
            worst = max(worst, float(np.maximum(one - math.exp(0.8) * other, 0).sum()))
    bracket = m.certificate.bracket
    assert bracket.lower - 1e-12 <= worst <= bracket.upper + 1e-12
    assert m.certificate.verdict == "certified"


def test_decisions_have_these_probabilities():
    """False alarms: 1e-6. A key more or fewer is seen."""
    m = KeySelection(0.5, 1e-3, 1, 0.5, 1e-3, "add-remove")
    counts, rng, draws = np.array([0, 1, 5, 9, 11, 13, 50]), np.random.default_rng(5), 4000
    seen = np.bincount(np.concatenate([m.release(counts, rng=rng).value for _ in range(draws)]), minlength=7)
    assert seen[0] == 0
    assert seen[-1] == draws
    p = m.probabilities(counts)
    for n, chance in zip(seen[1:-1], p[1:-1], strict=True):
        assert stats.binomtest(int(n), draws, float(chance)).pvalue > ALARM
    off = m.probabilities(counts + 1)
    assert stats.binomtest(int(seen[3]), draws, float(off[3])).pvalue < ALARM


def test_a_word_between_the_ends_is_decided_by_more_bits():
    m = KeySelection(0.5, 1e-3, 1, 0.5, 1e-3, "add-remove")
    low = keep_ends(0.5, 1e-3, 64)[0][5]

    class Near:
        secure = False

        def __init__(self, later):
            self.words_given, self.later = 0, later

        def words(self, n):
            first = not self.words_given
            self.words_given += n
            return np.full(n, low if first else self.later, dtype=np.uint64)

    assert m._kept(np.array([5]), Near(0)).size == 1
    assert m._kept(np.array([5]), Near(2**64 - 1)).size == 0


def test_several_keys_share_the_claim_better_than_evenly():
    for keys in (2, 20, 100):
        m = KeySelection.calibrate(keys=keys, epsilon=1.0, delta=1e-6, adjacency="add-remove")
        even = KeySelection(1.0 / keys, 1e-6 / keys, keys, 1.0, 1e-6, "add-remove")
        assert m.certificate.verdict == even.certificate.verdict == "certified"
        assert m.threshold(0.5) <= even.threshold(0.5)
        if keys > 2:
            assert m.threshold(0.5) < 0.93 * even.threshold(0.5)


def test_claims_files_and_compositions():
    m = KeySelection.calibrate(keys=3, epsilon=1.0, delta=1e-6, adjacency="replace")
    assert sdp.verify(sdp.Certificate.from_json(m.certificate.to_json())).bracket == m.certificate.bracket
    bold = KeySelection(m.key_epsilon, 2.5 * m.key_delta, 3, 1.0, 1e-6, "replace")
    assert bold.certificate.verdict == "refuted"
    both = sdp.compose([m, sdp.GaussianLoss(0.3, adjacency="replace")])
    assert 0 < sdp.GaussianLoss(0.3).delta(2.0).upper < both.delta(2.0).upper < 2e-4
    assert KeysLoss(0.5, 0.0, 4, 0).epsilon(0.0).upper == pytest.approx(2.0)


@pytest.mark.parametrize("counts", [[0.5], [-1], [[1]], ["a"]])
def test_what_counts_no_persons_is_refused(counts):
    m = KeySelection.calibrate(keys=1, epsilon=1.0, delta=1e-6, adjacency="add-remove")
    with pytest.raises((TypeError, ValueError)):
        m.release(counts)


def test_extreme_claims_are_served_or_refused():
    m = KeySelection.calibrate(keys=3, epsilon=1000.0, delta=1e-9, adjacency="replace")
    assert m.probabilities([0, 1, 2, 3]) == pytest.approx([0, m.key_delta, 1, 1], abs=1e-9)
    with pytest.raises(ValueError, match="persons"):
        KeySelection.calibrate(keys=3, epsilon=1e-6, delta=1e-9, adjacency="replace")


def test_a_table_without_keys_is_released_like_any_other():
    m = KeySelection.calibrate(keys=1, epsilon=1.0, delta=1e-6, adjacency="add-remove")
    for counts in ([], np.array([], dtype=np.int64), [0]):
        assert m.release(counts).value.shape == (0,)


def test_delta_zero_publishes_nothing_and_is_refused():
    with pytest.raises(ValueError, match="delta"):
        KeySelection.calibrate(keys=1, epsilon=1.0, delta=0.0, adjacency="add-remove")
    with pytest.raises(ValueError, match="adjacency"):
        KeySelection.calibrate(keys=1, epsilon=1.0, delta=1e-6, adjacency=None)
