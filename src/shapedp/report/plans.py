"""A plan, step by step: what sampling saves, what repetition costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shapedp.accounting import Plan, Step, compose
from shapedp.accounting.compose import loss_from
from shapedp.privacy import Certificate, Loss
from shapedp.report.figures import counted, number, percent, whole
from shapedp.report.markup import Child, Markup, el, text
from shapedp.report.noise import noise_sections
from shapedp.report.page import charts, figure, section, table
from shapedp.report.svg import Chart, linear
from shapedp.report.words import subject_words

_ROUGH = 0.02  # the relative gap of the parts; the whole is computed as finely as it is certified
_MOMENTS = 6
_LISTED = 200


def plan_sections(plan: Plan, certificate: Certificate, composed: float | None) -> list[Markup]:
    """The breakdown, and the noise of each kind of step; `composed` is the epsilon of a plan that runs step by step."""
    delta = certificate.delta
    rows = [_row(k, step, delta) for k, step in enumerate(plan.steps[:_LISTED], 1)]
    costs = ("ε of one run on everybody", "ε of one run, sampled", "ε of its runs")
    headers = ("step", "what is run", "on", "runs", *costs)
    total = sum(step.count for step in plan.steps)
    left = f" The first {_LISTED} of {whole(len(plan.steps))} steps are listed." if len(plan.steps) > _LISTED else ""
    runs, steps = counted(total, "run"), counted(len(plan.steps), "step")
    described = el("p", text("plan", runs=runs, steps=steps, delta=number(delta, 6), left=left))
    condition = el("p", text("sampling")) if any(step.sampling_rate < 1 for step in plan.steps) else None
    listed = table("Steps of the plan", headers, rows, words=3)
    growth = None if composed is None or total == 1 else charts(growth_figure(plan, certificate, composed))
    first, *others = plan.steps
    noise = [] if any(step.subject is not first.subject for step in others) else noise_sections(first.subject)
    return [section("plan", "How the budget is made up", described, condition, listed, growth), *noise]


def _row(place: int, step: Step, delta: float) -> list[Child]:
    def bound(loss: Loss) -> str:
        return number(loss.epsilon(delta).upper, 4, "up")

    alone = bound(loss_from(step.subject))
    everybody = step.sampling_rate == 1 and step.scheme == "poisson"
    sampled = alone if everybody else bound(step.loss)
    runs = bound(compose([(step.loss, step.count)], accuracy=_ROUGH)) if step.count > 1 else sampled
    return [whole(place), subject_words(step.subject), _sample(step), whole(step.count), alone, sampled, runs]


def _sample(step: Step) -> str:
    if step.scheme == "allocation":
        return f"everybody, each in one of {whole(step.batches)} parts at random"
    if step.scheme == "shuffle":
        return f"everybody, shuffled into {whole(step.batches)} batches of fixed sizes"
    if step.sampling_rate == 1:
        return "everybody"
    share = percent(step.sampling_rate, 4)
    return f"each person with probability {share}" if step.scheme == "poisson" else f"{share} of the people, drawn anew"


def growth_figure(plan: Plan, certificate: Certificate, composed: float) -> Markup | None:
    """epsilon after so many runs; after all of them it is `composed`."""
    total = sum(step.count for step in plan.steps)
    moments = sorted({max(round(total * t * t), 1) for t in np.linspace(0.0, 1.0, _MOMENTS).tolist()})
    delta = certificate.delta
    points = [(float(t), compose(_first(plan.steps, t), accuracy=_ROUGH).epsilon(delta).upper) for t in moments[:-1]]
    points.append((float(total), composed))
    if not all(math.isfinite(epsilon) for _, epsilon in points):
        return None
    top = max(certificate.epsilon, *(epsilon for _, epsilon in points))
    x, y = linear("runs done", 0.0, float(total), show=lambda value: number(value, 7)), linear("ε", 0.0, top)
    sizes = {"moments": str(len(points)), "runs": counted(total, "run")}
    ends = {"last": number(points[-1][1], 4, "up"), "claim": number(certificate.epsilon)}
    described = text("growth-described", delta=number(delta), **sizes, **ends)
    chart = Chart(x, y, "The budget as the plan runs", described)
    chart.across((x.low, certificate.epsilon), (x.high, certificate.epsilon), "limit", "the claim")
    chart.line(points, "one")
    for runs, epsilon in points:
        chart.mark(runs, epsilon, "one", f"after {whole(int(runs))} runs: ε ≤ {number(epsilon, 4, 'up')}", radius=3.0)
    legend = [("one", "line", "composed so far"), ("limit", "line", "the claim")]
    return figure("growth", chart, text("growth", delta=number(delta, 6)), legend)


def _first(steps: Sequence[Step], runs: int) -> list[tuple[Loss, int]]:
    """The first runs of the plan, in order."""
    parts: list[tuple[Loss, int]] = []
    for step in steps:
        taken = min(step.count, runs)
        if taken:
            parts.append((step.loss, taken))
        runs -= taken
    return parts
