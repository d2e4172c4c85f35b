"""The scan of random compositions, in small: no answer breaks a bound that was computed without the library.

The bounds are deterministic, so there is no false-alarm rate. The full scan: experiments/trust/compositions.py.
"""

from __future__ import annotations

import math
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "trust"))

import cases
import dp_accounting_goldens as goldens
import settle
import ways
from bounds import Composition
from tests.reference.pairs import laplace_delta, response_delta

from laws import ChiSquare, Laplacian, Law, Moved, Normal, Sampled, response

_ABSENT = [name for name in ("dp_accounting", "opendp", "sqlalchemy") if find_spec(name) is None]
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.skipif(bool(_ABSENT), reason=f"not installed: {', '.join(_ABSENT)}"),
]
PARTS = 20
EACH = 100


@pytest.mark.parametrize("part", range(PARTS))
def test_two_thousand_compositions(part: int) -> None:
    wrong = []
    for number in range(part * EACH, (part + 1) * EACH):
        case = cases.make(number, cheap=True)
        outcome = cases.run(case)
        raised = [text for text in outcome.raised if "cannot mix neighbour relations" not in text]  # rightly refused
        wrong += [f"case {number}: {text}\n  {case.text}" for text in [*map(str, outcome.faults), *raised]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("number", [4, 6, 8, 10, 11])
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
