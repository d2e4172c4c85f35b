"""The shape of the noise: scales per coordinate, block or mode, the radius, one coordinate; and error bars."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.mechanisms import Mixing
from shapedp.mechanisms.adaptive_mixing import AdaptiveMixing
from shapedp.mechanisms.additive import Additive
from shapedp.noise import Law, Radial, TensorGaussian
from shapedp.noise.spread import SpreadLaw
from shapedp.numerics.arrays import Floats
from shapedp.report import words
from shapedp.report.figures import counted, number, percent, span, whole
from shapedp.report.markup import Child, Markup, el, text
from shapedp.report.page import charts, facts, figure, more, section, table
from shapedp.report.svg import Chart, linear, places, suited
from shapedp.sensitivity import Box, Sensitivity
from shapedp.workloads import AnswerMechanism, WorkloadMechanism

_BARS = 80  # coordinates drawn one by one; more are drawn in groups
_LISTED = 500  # coordinates listed in a table
_LEVELS = (0.5, 0.9, 0.95, 0.99)


@singledispatch
def noise_sections(mechanism: Any) -> list[Markup]:
    """What is known of the noise of a mechanism; of one that is not additive, the noise of the query inside it."""
    law, bounds = getattr(mechanism, "law", None), getattr(mechanism, "sensitivity", None)
    if not isinstance(law, Law) or not isinstance(bounds, Sensitivity):
        return []
    additive = isinstance(mechanism, Additive)
    recipe = f"the published recipe {mechanism.recipe}" if additive and mechanism.recipe else None
    pairs = facts(
        ("Answer" if additive else "Query inside", words.shape_words(mechanism.shape if additive else bounds.shape)),
        ("One person can change", words.set_words(bounds)),
        ("Noise", law.words(number)),
        ("Chosen by", recipe or "calibration to the claim") if additive else None,
    )
    shape = section("noise", "The shape of the noise", pairs, charts(*law_figures(law, bounds)))
    return [shape, error_bars(law, bounds)] if additive else [shape]


@noise_sections.register
def _(mechanism: Mixing) -> list[Markup]:
    sigma = math.sqrt(mechanism.noise_variance)
    pairs = facts(
        *_sketch_facts(mechanism),
        ("Noise", f"Gaussian, standard deviation {number(sigma)} in every entry of the sketch"),
        ("Noise variance", f"{number(mechanism.gamma - 1)} times the squared bound on a row"),
    )
    return [section("noise", "The shape of the noise", el("p", text("mixing")), pairs)]


@noise_sections.register
def _(mechanism: AdaptiveMixing) -> list[Markup]:
    pairs = facts(
        *_sketch_facts(mechanism),
        ("Eigenvalue's noise", f"standard deviation {number(mechanism.eta)} in units of the squared bound on a row"),
        ("Most noise", f"variance {number(mechanism.gamma - 1)} times the squared bound on a row"),
    )
    drawn = charts(_adaptive_figure(mechanism))
    return [section("noise", "The shape of the noise", el("p", text("adaptive-mixing")), pairs, drawn)]


@noise_sections.register
def _(mechanism: WorkloadMechanism | AnswerMechanism) -> list[Markup]:
    asked, best = mechanism.workload, mechanism.optimality
    people = ", ".join(f"{one.name} ({whole(one.size)})" for one in asked.schema.attributes[:20])
    pairs = facts(
        ("Answers", f"{whole(len(asked))} in {counted(len(asked.terms), 'group')}"),
        ("Attributes", people + (" and more" if len(asked.schema.attributes) > 20 else "")),
        ("One record adds", "one to a cell of every table, and its clipped measures to the sums of that cell"),
        ("Noise", mechanism.phrase),
        None
        if best is None
        else ("Error", f"at most {number(best.upper, 6, 'up')} times the least of any Gaussian noise"),
    )
    rows = []
    for term in asked.terms[:_LISTED]:
        errors = mechanism.standard_error(term.name)
        rms = math.sqrt(float(np.square(errors).mean()))
        rows.append((term.name, whole(errors.size), number(rms), number(float(errors.max()))))
    listed = table("Standard errors, known before any record is read", ("queries", "answers", "rms", "largest"), rows)
    return [section("noise", "The shape of the noise", pairs), section("errors", "Error of every query", listed)]


def _sketch_facts(mechanism: Any) -> list[tuple[str, Child]]:
    sizes = "not fixed"
    if mechanism.records is not None:
        sizes = f"at most {counted(mechanism.records, 'record')} of {counted(mechanism.dim, 'column')}"
    return [
        ("Released", f"{counted(mechanism.rows, 'row')}, each a Gaussian mixture of all records"),
        ("Bound on a row", f"Euclidean length {number(mechanism.row_bound)}; longer rows are shortened to it"),
        ("Data", sizes),
    ]


def _adaptive_figure(mechanism: AdaptiveMixing) -> Markup:
    most, eta, offset = mechanism.gamma - 1, mechanism.eta, mechanism.eta * mechanism.tau
    x = linear("least eigenvalue / squared bound on a row", 0.0, 1.3 * mechanism.reach)
    values = np.linspace(0.0, x.high, 161)

    def variance(z: float) -> list[tuple[float, float]]:
        kept = np.clip(mechanism.gamma - (values + eta * z - offset), 0.0, most)
        return list(zip(values.tolist(), kept.tolist(), strict=True))

    middle = variance(0.0)
    y = linear("noise variance / squared bound", 0.0, most)
    described = text("adaptive-described", most=number(most), reach=number(mechanism.reach))
    chart = Chart(x, y, "Less noise where the data are rich", described)
    chart.area(variance(-2.0), variance(2.0), "one")
    chart.line(middle, "one")
    chart.tips((e, v, f"eigenvalue {number(e, 3)}: noise variance {number(v, 3)}") for e, v in middle[::10])
    return figure("adaptive", chart, text("adaptive"), [("one", "line", "noise added")])


def law_figures(law: Law, bounds: Sensitivity) -> list[Markup]:
    """The charts that suit a law."""
    if isinstance(law, Radial):
        return [radius_figure(law), coordinate_figure(law)]
    if isinstance(law, TensorGaussian):
        return [
            scale_figure(f"mode-{k}", mode.deviations(), None, f"Noise along mode {k}", "entry of the mode")
            for k, mode in enumerate(law.modes)
        ]
    deviations = np.sqrt(law.variances())
    if float(deviations.min()) == float(deviations.max()):
        return [] if not law.traits().widths else [coordinate_figure(law)]
    if isinstance(law, SpreadLaw) and law.spread.sizes is not None:
        sizes = law.spread.sizes
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        return [scale_figure("blocks", deviations[starts], None, "Noise of each block", "block", sizes=sizes)]
    profile = bounds.profile if isinstance(bounds, Box) else None
    return [scale_figure("scales", deviations, profile, "Noise of each coordinate", "coordinate")]


def scale_figure(
    name: str,
    deviations: Floats,
    profile: Floats | None,
    title: str,
    thing: str,
    sizes: NDArray[np.int64] | None = None,
) -> Markup:
    """Standard deviations side by side, in groups where they are many; what one person can change as dots."""
    every = np.concatenate([deviations, [] if profile is None else profile])
    noisy = every[every > 0]
    y = suited("standard deviation", *((float(noisy.min()), float(noisy.max())) if noisy.size else (1.0, 1.0)))
    n = deviations.size
    edges = np.unique(np.linspace(0, n, min(n, _BARS) + 1).astype(np.int64))
    ends = f"from {number(float(deviations.min()))} to {number(float(deviations.max()))}"
    chart = Chart(places(thing, n), y, title, f"Standard deviations of {counted(n, thing)}, {ends}.")
    gap = 0.12 if n <= _BARS else 0.0
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = deviations[first:last]
        where = f"{thing} {first + 1}" if last == first + 1 else f"{thing} {first + 1} to {last}"
        size = "" if sizes is None else f" ({counted(int(sizes[first]), 'coordinate')})"
        if part.max() > 0:
            chart.column(first + 0.5 + gap, last + 0.5 - gap, float(part.max()), "one", f"{where}{size}: {span(part)}")
        if profile is not None and profile[first:last].max() > 0:
            bound, radius = profile[first:last], 2.6 if edges.size > 40 else 3.5
            tip = f"{where}: one person changes at most {span(bound)}"
            chart.mark((first + last + 1) / 2, float(bound.max()), "two", tip, radius)
    legend = [("one", "bar", "standard deviation of the noise")]
    if profile is not None:
        legend.append(("two", "mark", "what one person can change"))
    note = f"The largest of each of {edges.size - 1} groups is drawn." if edges.size - 1 < n else "One bar each."
    still = int((deviations == 0).sum())
    unchanged = f" {counted(still, 'coordinate')} that nobody can change carry no noise." if still else ""
    return figure(name, chart, note + unchanged + (" The scale is logarithmic." if y.log else ""), legend)


def radius_figure(law: Radial) -> Markup:
    """How long the noise vector is."""
    edge = np.geomspace(1e-7, 4e-3, 20)
    levels = np.concatenate([edge, np.linspace(0.005, 0.995, 200), 1 - edge[::-1]])
    radii = law.radius_quantile(levels)
    density = np.diff(levels) / np.diff(radii)
    middles = (radii[:-1] + radii[1:]) / 2
    half, most = (float(r) for r in law.radius_quantile(np.array([0.5, 0.95])))
    marks = [(half, "half of all draws are shorter"), (most, "19 in 20 draws are shorter")]
    together = f"All {counted(law.dim, 'coordinate')} together."
    return _density_figure("radius", "Length of the noise vector", "length", middles, density, marks, together)


def coordinate_figure(law: Law) -> Markup:
    """The density of the noise of one coordinate, from its quantiles."""
    middle, edge = np.linspace(0.004, 0.9, 90), 1 - np.geomspace(0.009, 1e-5, 16)
    levels = np.concatenate([middle, np.linspace(0.91, 0.99, 17), edge])
    widths = np.array([float(law.half_widths(float(level))[0]) for level in levels])
    kept = np.concatenate([[True], np.diff(widths) > 0])
    levels, widths = levels[kept], widths[kept]
    density = np.diff(np.concatenate([[0.0], levels])) / np.diff(np.concatenate([[0.0], widths])) / 2
    middles = (np.concatenate([[0.0], widths[:-1]]) + widths) / 2
    marks = [(float(law.half_widths(level)[0]), f"{percent(level)} within ±") for level in (0.5, 0.95)]
    at, both = np.concatenate([-middles[::-1], middles]), np.concatenate([density[::-1], density])
    alike = "Every coordinate has the same distribution."
    return _density_figure("coordinate", "Noise of one coordinate", "noise", at, both, marks, alike)


def _density_figure(
    name: str, title: str, label: str, at: Floats, density: Floats, marks: list[tuple[float, str]], text: str
) -> Markup:
    x = linear(label, float(min(at.min(), 0.0)), float(at.max()), most=5)
    y = linear("density", 0.0, float(density.max()) * 1.02, most=5)
    said = "; ".join(f"{words_} {number(value)}" for value, words_ in marks)
    chart = Chart(x, y, title, f"The density of the {title.lower()}. {said}.")
    points = list(zip(at.tolist(), density.tolist(), strict=True))
    chart.area(points, [(points[0][0], 0.0), (points[-1][0], 0.0)], "one")
    chart.line(points, "one")
    for value, words_ in marks:
        for place in (value, -value) if at.min() < 0 else (value,):
            chart.across((place, 0.0), (place, y.high), "plain", f"{words_} {number(value)}")
    return figure(name, chart, f"{text} {said[0].upper()}{said[1:]} (dashed lines).")


def error_bars(law: Law, bounds: Sensitivity) -> Markup:
    """How far a released coordinate is from the truth."""
    rows = [(percent(level), span(law.half_widths(level), "up")) for level in _LEVELS]
    bound = " These are upper bounds." if not law.traits().widths else ""
    pairs = facts(
        ("Expected squared error", f"{number(law.second_moment)}, all coordinates together"),
        ("Root mean square", f"{number(_rms(law))} per coordinate"),
    )
    widths = table("Half-width of the interval around a released coordinate", ("confidence", "half-width ±"), rows)
    listed = _listed(law, bounds) if 1 < law.dim <= _LISTED else None
    return section("errors", "Error bars", el("p", text("error-bars", bound=bound)), pairs, widths, listed)


def _rms(law: Law) -> float:
    return math.sqrt(law.second_moment / law.dim)


def _listed(law: Law, bounds: Sensitivity) -> Markup:
    deviations, half = law.marginal_scales(), np.broadcast_to(law.half_widths(0.95), law.dim)
    profile = bounds.profile if isinstance(bounds, Box) else None
    headers = ["coordinate", "standard deviation", "95% half-width ±"]
    if profile is not None:
        headers.insert(1, "one person changes at most")
    bounded = [[]] * law.dim if profile is None else [[number(bound)] for bound in profile.ravel().tolist()]
    found = zip(bounded, deviations.tolist(), half.tolist(), strict=True)
    rows = [[whole(i), *bound, number(one), number(width, 4, "up")] for i, (bound, one, width) in enumerate(found, 1)]
    return more("Every coordinate", table("Each coordinate on its own", headers, rows, words=0))


def summary(mechanism: Any) -> list[tuple[str, Child, Child]]:
    """The error in one figure, where a mechanism has one."""
    if not isinstance(mechanism, Additive):
        return []
    return [("Error per coordinate", number(_rms(mechanism.law)), "root mean square")]
