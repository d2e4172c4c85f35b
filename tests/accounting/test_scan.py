"""The scan of random compositions, in small: no answer breaks a bound that was computed without the library.

The bounds are deterministic, so there is no false-alarm rate. The full scan: experiments/trust/compositions.py.
Every fifth case runs always, the others with the slow tests: no case runs twice.
"""

from __future__ import annotations

import itertools
import math
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "trust"))

import cases
import dp_accounting_goldens as goldens
import numpy as np
import placed
import settle
import ways
from bounds import Composition
from scipy import integrate
from tests.reference.pairs import laplace_delta, response_delta

from laws import ChiSquare, Laplacian, Law, Moved, Normal, Sampled, response

_ABSENT = [name for name in ("dp_accounting", "opendp", "sqlalchemy") if find_spec(name) is None]
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.skipif(bool(_ABSENT), reason=f"not installed: {', '.join(_ABSENT)}"),
]
PARTS = 20
EACH = 100
QUICK = pytest.param(True, id="every fifth")
OTHERS = pytest.param(False, id="the others", marks=pytest.mark.slow)


def wrong_in(case: cases.Case) -> list[str]:
    """What is false in the answers about a case, in words."""
    outcome = cases.run(case)
    raised = [text for text in outcome.raised if "cannot mix neighbour relations" not in text]  # rightly refused
    return [f"case {case.number}: {text}\n  {case.text}" for text in [*map(str, outcome.faults), *raised]]


@pytest.mark.parametrize("quick", [QUICK, OTHERS])
@pytest.mark.parametrize("part", range(PARTS))
def test_two_thousand_compositions(part: int, quick: bool) -> None:
    numbers = [n for n in range(part * EACH, (part + 1) * EACH) if (n % 5 == part % 5) is quick]
    wrong = [text for number in numbers for text in wrong_in(cases.make(number, cheap=True))]
    assert not wrong, "\n".join(wrong)


SOME = pytest.param(slice(5), id="some")
REST = pytest.param(slice(5, None), id="the rest", marks=pytest.mark.slow)


@pytest.mark.parametrize("which", [SOME, REST])
@pytest.mark.parametrize("part", range(4))
def test_compositions_with_passes(part: int, which: slice) -> None:
    """Records placed in one of several runs at random, and shuffled batches, with all other losses.

    Always the first five cases of forty that hold such a pass, and the first five that hold none.
    """
    sorts: dict[bool, list[cases.Case]] = {True: [], False: []}
    for number in range(cases.PASSES + 40 * part, cases.PASSES + 40 * (part + 1)):
        case = cases.make(number, cheap=True)
        sorts["allocation" in case.kinds or "shuffle" in case.kinds].append(case)
    assert min(map(len, sorts.values())) > 5
    wrong = [text for sort in sorts.values() for case in sort[which] for text in wrong_in(case)]
    assert not wrong, "\n".join(wrong)


SLOW_WAYS = [pytest.param(number, marks=pytest.mark.slow) for number in (4, 8, 11)]


@pytest.mark.parametrize("number", [6, 10, *SLOW_WAYS])
def test_every_way_to_ask(number: int) -> None:
    """4: sixteen Laplace releases; 6 and 8: staircase noise through events."""
    asked = ways.make(number)
    outcome = ways.run(asked)
    assert not outcome.faults + outcome.raised, (asked.case.text, list(map(str, outcome.faults)), outcome.raised)


def test_goldens_of_dp_accounting() -> None:
    found = list(goldens.rows(quick=True))
    assert len(found) > 150
    assert not [row for row in found if not row.agrees]


LAWS: dict[str, tuple[list[tuple[Law, int]], float]] = {
    "laplace": ([(Laplacian(1.0), 3)], 2.9),
    "unequal": ([(response(0.2), 10), (Laplacian(0.5), 4)], 1.0),
    "poisson": ([(Sampled(Normal(1.0), 0.3), 4)], 0.5),
    "poisson, reverse": ([(Sampled(Normal(1.0), 0.3, False), 4)], 0.5),
    "poisson, failing": ([(Sampled(response(0.7, 1e-3), 0.3), 4)], 0.2),
    "poisson, failing, reverse": ([(Sampled(response(0.7, 1e-3), 0.3, False), 4)], 0.2),
    "mixing": ([(ChiSquare(5, 0.2), 3)], 2.0),
    "mixing, reverse": ([(ChiSquare(5, 0.2, False), 3)], 1.0),
    "moved": ([(Moved(Laplacian(0.5), 0.1, 1e-3), 3), (Normal(0.3), 1)], 1.0),
    "many": ([(Laplacian(0.01), 300)], 1.0),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_bounds_agree_with_ball_arithmetic(name: str) -> None:
    parts, epsilon = LAWS[name]
    ours = Composition(parts)
    lower, upper = (settle.delta(parts, epsilon, up=up, nodes=1500) for up in (False, True))
    assert ours.lower(epsilon) <= float(upper.upper())
    assert float(lower.lower()) <= ours.upper(epsilon)
    assert 0 < ours.lower(epsilon) <= ours.upper(epsilon) <= 1.6 * ours.lower(epsilon)


@pytest.mark.parametrize(("scale", "times", "share"), [(1.0, 3, 0.5), (0.1, 8, 0.3), (5.0, 2, 0.0), (1e-3, 6, 0.9)])
def test_the_bounds_hold_exact_sums(scale: float, times: int, share: float) -> None:
    epsilon = share * scale * times
    pairs = (
        (Laplacian(scale), float(laplace_delta(scale, times, epsilon))),
        (response(scale), float(response_delta(scale, 0.0, times, epsilon))),
    )
    for law, exact in pairs:
        ours = Composition([(law, times)])
        assert ours.lower(epsilon) <= exact <= ours.upper(epsilon)
        assert ours.upper(epsilon) - ours.lower(epsilon) <= 0.01 * exact


@pytest.mark.parametrize("off", [0.9, 1.1])
def test_the_scan_sees_a_bracket_that_is_off(off: float) -> None:
    """A tenth too small, or too large, in one of the easy cases."""
    seen = 0
    for number in range(40):
        case = cases.make(number, cheap=True)
        epsilon = case.questions[0].epsilon
        least, most = case.least(epsilon), case.most(epsilon)
        if least > 1e-200 and most < 1.01 * least:
            answer = (0.0, least * off) if off < 1 else (most * off, 1.0)
            sorts = [fault.sort for fault in cases.judge(case, cases.Question("delta", epsilon), answer)]
            assert sorts == ["delta too small" if off < 1 else "delta lower end too large"]
            seen += 1
    assert seen >= 5


def test_cases_depend_on_their_number_alone() -> None:
    one, other = cases.make(17), cases.make(17)
    assert (one.text, one.questions) == (other.text, other.questions)
    assert cases.make(18).text != one.text
    assert all(math.isfinite(q.epsilon) for n in range(50) for q in cases.make(n, cheap=True).questions)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("mu", "epsilon"), [(0.3, 0.1), (1.0, 1.0), (2.5, 6.0), (1.0, 9.0)])
def test_two_places_against_a_double_integral(mu: float, epsilon: float, reverse: bool) -> None:
    """H = E (S - e^epsilon)_+ over both outcomes, without any tail."""
    k = 2 * math.exp(-epsilon if reverse else epsilon)

    def inner(z: float) -> float:
        rest = k - math.exp(mu * z - mu * mu / 2)
        if rest <= 0:
            return 0.0 if reverse else 1 - rest
        cut = math.log(rest) / mu + mu / 2
        ends = [0.5 * math.erfc((cut - shift) / math.sqrt(2)) for shift in (mu, 0.0)]
        held = [0.5 * math.erfc((shift - cut) / math.sqrt(2)) for shift in (mu, 0.0)]
        return rest * held[1] - held[0] if reverse else ends[0] - rest * ends[1]

    def density(z: float) -> float:
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * inner(z)

    cut = math.log(k) / mu + mu / 2
    edges = sorted({-12.0, 0.0, mu, cut, cut + 3, max(cut, 0.0) + 14})
    pieces = [integrate.quad(density, a, b, epsabs=0, epsrel=1e-11, limit=400)[0] for a, b in itertools.pairwise(edges)]
    truth = math.fsum(pieces) / 2 * (math.exp(epsilon) if reverse else 1.0)
    law, at = placed.TwoPlaces(mu, not reverse), np.array([epsilon])
    assert float(law.tail(at)[0] - math.exp(epsilon) * law.qtail(at)[0]) == pytest.approx(truth, rel=1e-8)
    for made, sign in ((placed.normal_below, 1), (placed.normal_above, -1)):
        side = Composition([(made(mu, 2)[reverse], 1)])
        assert sign * (truth - (side.lower(epsilon) if sign > 0 else side.upper(epsilon))) >= 0


def test_a_pass_listed_is_a_pass_summed() -> None:
    """The law of few values by all 2^runs orders."""
    base, runs = response(0.8, 1e-3), 7
    high, low = (0.999 / (1 + math.exp(side * 0.8)) for side in (1, -1))
    outcomes = [(math.exp(0.8), high), (math.exp(-0.8), low), (0.0, 1e-3)]
    for side, pair in zip((1, -1), placed.of_atoms(base, runs), strict=True):
        for law, epsilon, reverse in zip(pair, (0.3, 0.2), (False, True), strict=True):
            truth = 0.0 if reverse else 1e-3
            for picked in itertools.product(outcomes, repeat=runs):
                mean, mass = sum(one[0] for one in picked) / runs, math.prod(one[1] for one in picked)
                truth += mass * max(1 - math.exp(epsilon) * mean if reverse else mean - math.exp(epsilon), 0.0)
            at = np.array([epsilon])
            found = float(law.tail(at)[0] - math.exp(epsilon) * law.qtail(at)[0]) + law.infinity
            assert found == pytest.approx(truth, rel=1e-10)
            assert side * (truth - found) >= 0


def test_the_scan_allows_for_its_own_roundings_at_the_largest_loss() -> None:
    """A claim one rounding above the largest loss of three passes, at 1e-66."""
    assert not cases.run(cases.make(108314, cheap=True)).faults


def test_the_scan_finds_a_pass_with_too_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that counts one run more is caught, and so is one fewer."""
    import pass_kinds

    honest = pass_kinds.allocate
    for by in (1, -1):
        monkeypatch.setattr(pass_kinds, "allocate", lambda base, runs, by=by, **how: honest(base, runs + by, **how))
        made = (cases.make(number, cheap=True) for number in range(cases.PASSES, cases.PASSES + 60))
        assert any(cases.run(case).faults for case in made if "allocation" in case.kinds), by
