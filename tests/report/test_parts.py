"""Escaping, rounding and axes."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from shapedp.privacy import Bracket
from shapedp.report.figures import interval, number, percent, power
from shapedp.report.markup import Markup, el, readable
from shapedp.report.svg import Chart, linear, logarithmic, places, suited

_LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def value_of(text: str) -> Decimal:
    """The number that a reader would read."""
    lead, mark, tail = text.replace(",", "").replace("\u00d7", "*").rpartition("10")
    if not mark or not tail or tail.translate(_LOWERED) == tail:
        return Decimal(text.replace(",", ""))
    return Decimal(lead.rstrip("*") or "1").scaleb(int(tail.translate(_LOWERED)))


def test_text_is_escaped_and_markup_is_not() -> None:
    assert el("p", "<b>&\"'") == "<p>&lt;b&gt;&amp;&quot;&#x27;</p>"
    assert el("p", el("b", "x"), None, ["y", Markup("<i>")]) == "<p><b>x</b>y<i></p>"
    assert el("a", "t", href='"><script>', hidden=True, id=None) == '<a href="&quot;&gt;&lt;script&gt;" hidden>t</a>'
    assert el("meta", name="x") == '<meta name="x">'


def test_unreadable_characters_are_replaced() -> None:
    text = readable("a\x00b\u202ec\ud800d\x1be\nf")
    assert text == "a\ufffdb\ufffdc\ufffdd\ufffde\nf"
    text.encode()


def test_rounding_keeps_its_side() -> None:
    rng = np.random.default_rng(0)
    for value in (10.0 ** rng.uniform(-20, 12, 2000)).tolist():
        for digits in (1, 3, 6):
            low, high = (value_of(number(value, digits, side)) for side in ("down", "up"))
            assert low <= Decimal(value) <= high
            assert high - low <= Decimal(value) * Decimal(10) ** (1 - digits)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1e-6, "10⁻⁶"), (3.25e-7, "3.25\u00d710⁻⁷"), (1234.5, "1,234"), (0.00012, "0.00012"), (math.inf, "∞"),
     (2e7, "2\u00d710⁷"), (-0.5, "-0.5"), (100.0, "100")],
)  # fmt: skip
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_shares_powers_and_brackets() -> None:
    assert percent(0.123456, 3, "up") == "12.4%"
    assert power(1e-5) == "10⁻⁵"
    assert power(0.1) == "0.1"
    assert power(2000.0) == "2,000"
    assert interval(Bracket(0.12345678, 0.12345679), 4) == "[0.1234, 0.1235]"


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (0.0, 7.3e-9), (-3.2, 18.0), (0.0, 1e12), (5.0, 5.0), (0.0, 0.0)]
)
def test_linear_axes_hold_their_values(low: float, high: float) -> None:
    axis = linear("x", low, high)
    assert axis.low <= low <= high <= axis.high
    assert 2 <= len(axis.ticks) <= 9
    assert axis.ticks == tuple(sorted(axis.ticks))
    assert axis.at(axis.low) == 0
    assert axis.at(axis.high) == 1


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (0.3, 4.0), (1e-30, 1.0), (2e-5, 9e7), (1e-3, 0.9999)])
def test_logarithmic_axes_hold_their_values(low: float, high: float) -> None:
    axis = logarithmic("x", low, high)
    assert axis.low <= low * (1 + 1e-9)
    assert axis.high >= high * (1 - 1e-9)
    assert 2 <= len(axis.ticks) <= 10
    assert all(axis.low * (1 - 1e-9) <= tick <= axis.high * (1 + 1e-9) for tick in axis.ticks)
    assert suited("x", low, high).log == (high > 30 * low)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 30, 999, 10**6])
def test_places_are_few_and_whole(n: int) -> None:
    axis = places("entry", n)
    assert 1 <= len(axis.ticks) <= 8
    assert all(1 <= tick <= n and tick == int(tick) for tick in axis.ticks)


def test_a_chart_stays_in_its_frame() -> None:
    chart = Chart(linear("x", 0.0, 1.0), logarithmic("y", 1e-6, 1.0), "<title>", "text & more")
    chart.line([(-5.0, 1e-9), (0.5, 1e-3), (9.0, 50.0)], "one")
    chart.mark(0.5, 0.0, "two", "tip <b>")
    text = chart.render("c")
    assert "<b>" not in text
    assert "&lt;title&gt;" in text
    assert 'd="M48 218L197 123L346 28"' in text


def test_an_axis_of_the_least_float_has_ticks() -> None:
    """A claim of epsilon 5e-324 in a file stopped its page: no step of the axis was found."""
    assert len(linear("epsilon", 0.0, 5e-324).ticks) > 1
