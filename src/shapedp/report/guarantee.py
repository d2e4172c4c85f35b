"""What a certificate and its loss say: promise, bracket, profile, trade-off curve, how to recheck."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shapedp.accounting import BareLoss, ComposedLoss
from shapedp.accounting.outline import Outline
from shapedp.accounting.risk import membership_advantage, trade_off
from shapedp.numerics.arrays import Floats
from shapedp.privacy import AdjustedLoss, Bracket, Certificate, Loss
from shapedp.report import words
from shapedp.report.figures import interval, number, percent
from shapedp.report.markup import Child, Markup, el, many, text
from shapedp.report.page import badge, callout, charts, commands, facts, figure, section, table
from shapedp.report.svg import Axis, Chart, linear, logarithmic

_FALSE_ALARMS = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.25)
_FINEST = 1e-6  # the trade-off curve uses epsilons up to the one with this delta: smaller rates cannot be seen
_POINTS = 80
_FARTHEST = 700.0  # e^epsilon is no float beyond


@dataclass(frozen=True, eq=False)
class Guarantee:
    """A certificate with the loss behind it.

    `stated` is the certificate as it was handed over, where it was recomputed; `recomputed` says whether the loss is
    that of the mechanism, or only what (epsilon, delta) allows.
    """

    certificate: Certificate
    loss: Loss
    stated: Certificate | None = None
    recomputed: bool = True

    @cached_property
    def curve(self) -> Loss:
        """The loss that curves are drawn from: compositions are bracketed less finely than for the certificate."""
        if isinstance(self.loss, AdjustedLoss) and isinstance(self.loss.base, ComposedLoss):
            return replace(self.loss, base=Outline(self.loss.base))
        return Outline(self.loss) if isinstance(self.loss, ComposedLoss) else self.loss

    @cached_property
    def advantage(self) -> Bracket:
        """The largest true-positive rate minus false-positive rate."""
        return membership_advantage(self.curve)

    @cached_property
    def epsilon(self) -> Bracket:
        """The least epsilon at the claimed delta."""
        return least_epsilon(self.loss, self.certificate.delta)

    @cached_property
    def largest(self) -> float:
        """The end of the epsilons that the curves look at."""
        seen = self._fallen(_FINEST)
        return max(seen, 1e-3) if math.isfinite(seen) else max(2 * self.certificate.epsilon, 30.0)

    def _fallen(self, delta: float) -> float:
        """About the epsilon from which on the curve is below a delta, for the end of an axis.

        A curve that stands for a composition is asked along grids: each question by itself looks at all its parts.
        """
        if self.curve is self.loss:
            return least_epsilon(self.loss, delta).upper
        grid = np.concatenate([[0.0], np.geomspace(1e-4, _FARTHEST, _POINTS)])
        for _ in range(2):
            below = np.flatnonzero(self._deltas(grid) <= delta)
            if not below.size:
                return math.inf
            first = int(below[0])
            if first == 0:
                return float(grid[0])
            grid = np.linspace(grid[first - 1], grid[first], _POINTS)
        return float(grid[np.flatnonzero(self._deltas(grid) <= delta)[0]])

    def misses(self, alarms: Sequence[float]) -> list[float]:
        """A lower bound on the false-negative rate at each false-positive rate."""
        return [float(rate) for rate in trade_off(self.curve, list(alarms), points=_POINTS, largest=self.largest)]

    def cards(self) -> list[tuple[str, Child, Child]]:
        """The figures that head the page."""
        made = self.certificate
        bound = "at most" if made.verdict == "certified" else "in this bracket"
        shown = number(made.bracket.upper, 4, "up") if made.verdict == "certified" else interval(made.bracket, 4)
        return [
            ("Verdict", badge(made.verdict), "computed, not declared" if self.recomputed else "as stated"),
            ("Claim", f"ε = {number(made.epsilon, 6)}", f"δ = {number(made.delta, 6)}"),
            ("Computed δ", shown, f"{bound}, at ε = {number(made.epsilon, 4)}"),
            ("Attacker's advantage", percent(self.advantage.upper, 3, "up"), "at most; 0% is a blind guess"),
        ]

    def promise(self) -> Markup:
        """In plain words."""
        made = self.certificate
        held = made.epsilon, made.delta
        lead = None
        if made.verdict != "certified":
            held = made.epsilon, min(made.bracket.upper, 1.0)
            lead = many(
                callout("bad" if made.verdict == "refuted" else "open", made.explain()),
                el("p", "What the computation does support is weaker than the claim:") if held[1] < 1 else None,
            )
        supported = words.meaning(*held) if held[1] < 1 else None
        relation = el("p", el("strong", "Neighbours. "), words.neighbours(made.adjacency))
        limits = words.assumed(made), words.not_promised(made)
        return section("promise", "What is promised", lead, supported, relation, limits)

    def bracket(self) -> Markup:
        """Claimed against computed, with the profile."""
        made = self.certificate
        stated = self.stated
        pairs = facts(
            ("Claim", words.claim(made.epsilon, made.delta)),
            (f"δ at ε = {number(made.epsilon, 6)}", interval(made.bracket)),
            None if stated is None else ("δ stated in the file", interval(stated.bracket)),
            (f"ε at δ = {number(made.delta, 6)}", interval(self.epsilon)),
            ("Neighbours", made.adjacency or "as the user vouches"),
            ("Computed by", made.method),
            ("Randomness", words.randomness(made.secure)),
            None if stated is None else ("Stated by version", stated.version),
        )
        note = text("bracket" if self.recomputed else "bracket-as-stated")
        return section("bracket", "The bracket", el("p", note), charts(pairs, self.profile_figure()))

    def _deltas(self, grid: Floats) -> Floats:
        """Upper bounds on delta along a grid of epsilons."""
        values = self.curve.profile(grid)[1]
        return values if self.curve.symmetric else np.maximum(values, self.curve.profile(grid, reverse=True)[1])

    def profile_figure(self) -> Markup:
        """delta at every epsilon."""
        made = self.certificate
        floor = 10.0 ** math.floor(math.log10(min(max(made.delta, 1e-12), 1e-2)) - 1)
        reach = self._fallen(floor)
        end = max(1.25 * made.epsilon, min(reach, 4 * made.epsilon) if math.isfinite(reach) else 2 * made.epsilon)
        x = linear("ε", 0.0, end)
        grid = np.linspace(0.0, x.high, 121)
        values = self._deltas(grid)
        y = logarithmic("δ (log scale)", floor, 1.0)
        points = [(float(e), float(d)) for e, d in zip(grid, values, strict=True)]
        above = [point for point in points if point[1] >= floor]
        cut = points[: len(above) + 1] if above else points[:1]
        at = f"claim: {words.claim(made.epsilon, made.delta)}"
        described = text("profile-described", start=number(points[0][1], 3, "up"), claim=at)
        chart = Chart(x, y, "The privacy profile", described)
        chart.line(cut, "one")
        chart.tips((e, d, f"ε = {number(e, 3)}: δ ≤ {number(d, 4, 'up')}") for e, d in cut[::6])
        chart.mark(made.epsilon, max(made.delta, floor), "two", at, radius=5.0)
        low = " It falls to 0 beyond the lower edge." if made.delta == 0 else ""
        legend = [("one", "line", "computed, upper end"), ("two", "mark", "the claim")]
        return figure("profile", chart, text("profile", zero=low), legend)

    def attacker(self) -> Markup:
        """The trade-off curve, and what it means at usual rates."""
        made, gain = self.certificate, self.advantage
        alarms = [0.0, *np.geomspace(1e-4, 0.02, 12).tolist(), *np.linspace(0.025, 1.0, 40).tolist()]
        misses = self.misses(alarms)
        allowed = trade_off(BareLoss(made.epsilon, made.delta), alarms, points=200, largest=made.epsilon)
        shares = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
        x, y = (Axis(f"false-{which} rate", 0.0, 1.0, shares, show=percent) for which in ("positive", "negative"))
        most = percent(gain.upper, 3, "up")
        chart = Chart(x, y, "The best attacker's errors", text("trade-off-described", most=most))
        curve = list(zip(alarms, misses, strict=True))
        chart.area([(0.0, 1.0), (1.0, 0.0)], curve, "one")
        chart.across((0.0, 1.0), (1.0, 0.0), "plain", "blind guessing")
        chart.line(list(zip(alarms, map(float, allowed), strict=True)), "two", "what the claim alone allows")
        chart.line(curve, "one")
        chart.tips(
            (a, b, f"false positives {percent(a)}: false negatives at least {percent(b, 3, 'down')}")
            for a, b in curve[10::3]
        )
        pairs = zip(_FALSE_ALARMS, self.misses(_FALSE_ALARMS), strict=True)
        rows = [(percent(alarm), percent(1 - miss, 3, "up"), percent(alarm)) for alarm, miss in pairs]
        legend = [
            ("one", "line", "no attacker is below"),
            ("two", "line", "allowed by the claim alone"),
            ("plain", "line", "blind guessing"),
        ]
        shown = figure("trade-off", chart, text("trade-off", most=most), legend)
        headers = ("false positives allowed", "detected, at most", "by guessing")
        listed = table("Largest share of cases an attacker can detect", headers, rows, words=0)
        beside = el("div", listed, el("p", text("detected"), class_="note"))
        risk = el("p", words.advantage_words(gain))
        return section("attacker", "What an attacker can do", risk, charts(shown, beside))


def least_epsilon(loss: Loss, delta: float) -> Bracket:
    """The epsilon at delta; [0, infinity] where the loss cannot be evaluated as far out as the search goes."""
    try:
        return loss.epsilon(delta)
    except ValueError:
        return Bracket(0.0, math.inf)


def recheck(lines: Sequence[str], written: str | None, *content: Child) -> Markup:
    """The commands that compute all of it again; `written` says how the file comes about where there is none yet."""
    start = text("recheck-file") if written is None else text("recheck-written", code=written)
    return section("recheck", "How to recheck", el("p", start), commands(lines), content)
