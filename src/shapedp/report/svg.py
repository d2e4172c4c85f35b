"""Charts as inline SVG: axes, curves, bars and marks in a small frame that fits a narrow screen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from shapedp.report.figures import number, power, whole
from shapedp.report.markup import Child, Markup, el

WIDTH, HEIGHT = 360.0, 262.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 14.0, 28.0, 44.0
_LETTER = 7.6  # the width allowed for a letter of a tick
_DECADES = 8  # the most ticks of a logarithmic axis
_SHORTEST = 1e-290  # of an axis: steps of it are floats

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """A quantity from `low` to `high`, with the values at which ticks stand."""

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False
    show: Callable[[float], str] = number
    grid: bool = True

    def at(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high one; values beyond stay at the ends."""
        inside = min(max(value, self.low), self.high)
        if self.log:
            return (math.log(inside) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (inside - self.low) / (self.high - self.low)


def linear(label: str, low: float, high: float, *, show: Callable[[float], str] = number, most: int = 6) -> Axis:
    """Equal steps of 1, 2 or 5 times a power of ten; the high end grows to a whole step."""
    if not high > low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    high = max(high, low + _SHORTEST)
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(f * power for f in (1, 2, 5, 10) if f * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(float(f"{k * step:.12g}") for k in range(first, last + 1))
    return Axis(label, ticks[0], ticks[-1], ticks, show=show)


def places(thing: str, n: int) -> Axis:
    """n things side by side, numbered from 1, about six of them labelled."""
    step = next(f * 10**p for p in range(19) for f in (1, 2, 5) if f * 10**p * 7 >= n)
    ticks = [*([1] if step > 2 else []), *range(step, n + 1, step)]
    return Axis(thing, 0.5, n + 0.5, tuple(map(float, ticks)), show=lambda value: whole(int(value)), grid=False)


def logarithmic(label: str, low: float, high: float) -> Axis:
    """Powers of ten, thinned where there are many; within two decades 1, 2 and 5 times them."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    if last - first <= 2:
        fine = [m * 10.0**k for k in range(first, last + 1) for m in (1, 2, 5)]
        start = max((t for t in fine if t <= low * (1 + 1e-9)), default=10.0**first)
        end = min((t for t in fine if t >= high * (1 - 1e-9) and t > start), default=10.0**last)
        ticks = tuple(float(f"{t:.6g}") for t in fine if start <= t <= end)
        return Axis(label, ticks[0], ticks[-1], ticks, log=True, show=power)
    every = -(-(last - first) // _DECADES)
    ticks = tuple(10.0**k for k in range(last, first - 1, -every))
    return Axis(label, 10.0**first, 10.0**last, ticks[::-1], log=True, show=power)


def suited(label: str, low: float, high: float) -> Axis:
    """From 0 in equal steps, or logarithmic where positive values span more than a factor of 30."""
    if low > 0 and high > 30 * low:
        return logarithmic(label, low, high)
    return linear(label, 0.0, high)


@dataclass
class Chart:
    """A frame with axes, and what is drawn in it, in order."""

    x: Axis
    y: Axis
    title: str
    text: str
    drawn: list[Markup] = field(default_factory=list)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The position of a point, in units of the drawing."""
        wide, high = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
        return round(_LEFT + wide * self.x.at(x), 2), round(_TOP + high * (1 - self.y.at(y)), 2)

    def _path(self, points: Points) -> str:
        return "M" + "L".join(f"{x:g} {y:g}" for x, y in (self.place(*p) for p in points))

    def line(self, points: Points, kind: str, tip: str | None = None) -> None:
        """A curve through the points; `kind` is its class."""
        self.drawn.append(el("path", _tip(tip), d=self._path(points), class_=f"line {kind}"))

    def steps(self, points: Points, kind: str, tip: str | None = None) -> None:
        """Level from each point to the next, then up."""
        corners = [corner for (x, y), (later, _) in pairwise(points) for corner in ((x, y), (later, y))]
        self.line([*corners, *points[-1:]], kind, tip)

    def area(self, upper: Points, lower: Points, kind: str) -> None:
        """Between two curves."""
        self.drawn.append(el("path", d=self._path([*upper, *list(lower)[::-1]]) + "Z", class_=f"area {kind}"))

    def mark(self, x: float, y: float, kind: str, tip: str | None = None, radius: float = 4.0) -> None:
        """A dot."""
        left, top = self.place(x, y)
        self.drawn.append(el("circle", _tip(tip), cx=left, cy=top, r=radius, class_=f"mark {kind}"))

    def tips(self, points: Iterable[tuple[float, float, str]]) -> None:
        """Unseen dots along a curve that say their values."""
        for x, y, tip in points:
            self.mark(x, y, "unseen", tip, radius=7.0)

    def across(self, start: tuple[float, float], end: tuple[float, float], kind: str, tip: str | None = None) -> None:
        """A straight line between two points."""
        (x1, y1), (x2, y2) = self.place(*start), self.place(*end)
        self.drawn.append(el("line", _tip(tip), x1=x1, y1=y1, x2=x2, y2=y2, class_=f"line {kind}"))

    def column(self, left: float, right: float, value: float, kind: str, tip: str | None = None) -> None:
        """A bar that stands on the low end of the y axis."""
        (x1, top), (x2, foot) = self.place(left, value), self.place(right, self.y.low)
        width, height = max(x2 - x1, 0.5), max(foot - top, 0.75)
        self.drawn.append(el("rect", _tip(tip), x=x1, y=top, width=width, height=height, class_=f"bar {kind}"))

    def render(self, name: str) -> Markup:
        """The drawing; `name` tells its ids from those of the page's other drawings."""
        said = el("title", self.title, id=f"{name}-title"), el("desc", self.text, id=f"{name}-text")
        box, labels = f"0 0 {WIDTH:g} {HEIGHT:g}", f"{name}-title {name}-text"
        parts = (said, self._across(), self._up(), self.drawn)
        return el("svg", parts, viewBox=box, role="img", aria_labelledby=labels, class_="chart")

    def _across(self) -> Markup:
        foot = HEIGHT - _BOTTOM
        parts: list[Child] = []
        end = -math.inf
        for tick in self.x.ticks:
            at, text = round(self.place(tick, self.y.low)[0], 2), self.x.show(tick)
            half = len(text) * _LETTER / 2
            middle = min(max(at, half), WIDTH - half - 1)
            if self.x.grid:
                parts.append(el("line", x1=at, x2=at, y1=_TOP, y2=foot, class_="grid"))
            if middle - half > end + 4:
                parts.append(el("text", text, x=round(middle, 2), y=foot + 15, text_anchor="middle", class_="tick"))
                end = middle + half
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        label = el("text", self.x.label, x=middle, y=HEIGHT - 8, text_anchor="middle", class_="label")
        base = el("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=foot, y2=foot, class_="axis")
        return el("g", parts, base, label)

    def _up(self) -> Markup:
        parts: list[Child] = []
        for tick in self.y.ticks:
            at = round(self.place(self.x.low, tick)[1], 2)
            parts.append(el("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=at, y2=at, class_="grid"))
            parts.append(el("text", self.y.show(tick), x=_LEFT - 6, y=at + 3.5, text_anchor="end", class_="tick"))
        label = el("text", self.y.label, x=2, y=12, class_="label")
        return el("g", parts, label)


def swatch(kind: str, shape: str = "line") -> Markup:
    """A sample of a curve, dot or bar for a legend."""
    shapes = {
        "mark": el("circle", cx=9, cy=5, r=4, class_=f"mark {kind}"),
        "bar": el("rect", x=2, y=0, width=14, height=10, class_=f"bar {kind}"),
        "line": el("line", x1=0, x2=18, y1=5, y2=5, class_=f"line {kind}"),
    }
    return el("svg", shapes[shape], viewBox="0 0 18 10", width="18", height="10", aria_hidden="true", class_="swatch")


def _tip(text: str | None) -> Markup | None:
    return None if text is None else el("title", text)
