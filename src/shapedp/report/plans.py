"""A plan, step by step: what sampling saves, what repetition costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shapedp.accounting import Plan, Step, compose
from shapedp.accounting.bare import BareLoss
from shapedp.accounting.compose import loss_from
from shapedp.privacy import Certificate, GaussianLoss, Loss
from shapedp.report.figures import counted, number, percent, whole
from shapedp.report.markup import Child, Markup, el
from shapedp.report.noise import noise_sections
from shapedp.report.page import charts, figure, section, table
from shapedp.report.svg import Chart, linear
from shapedp.report.words import subject_words

_ROUGH = 0.02  # the relative gap of the parts; the whole is computed as finely as it is certified
_MOMENTS = 7
_LISTED = 200


@subject_words.register
def _(subject: GaussianLoss) -> str:
    return f"Gaussian noise, {number(1 / subject.mu)} times the sensitivity" if subject.mu else "no release"


@subject_words.register
def _(subject: BareLoss) -> str:
    return f"any mechanism with ε = {number(subject.pure_epsilon)}, δ = {number(subject.failure)}"


def sampling_words(rate: float) -> str:
    """What a sampling rate does."""
    return "everybody" if rate == 1 else f"each person with probability {percent(rate, 4)}"


def plan_sections(plan: Plan, certificate: Certificate) -> list[Markup]:
    """The breakdown, and the noise of each kind of step."""
    delta = certificate.delta
    rows = [_row(k, step, delta) for k, step in enumerate(plan.steps[:_LISTED], 1)]
    headers = (
        "step",
        "what is run",
        "on",
        "runs",
        "ε of one run on everybody",
        "ε of one run, sampled",
        "ε of its runs",
    )
    total = sum(step.count for step in plan.steps)
    left = f" The first {_LISTED} of {whole(len(plan.steps))} steps are listed." if len(plan.steps) > _LISTED else ""
    text = (
        f"The plan fixes {counted(total, 'run')} in {counted(len(plan.steps), 'step')} before the first "
        "result is seen. Every ε "
        f"below is an upper bound at δ = {number(delta, 6)}, each on its own: they are not to be added, the whole is "
        f"composed exactly.{left}"
    )
    sampled = any(step.sampling_rate < 1 for step in plan.steps)
    condition = el("p", _SAMPLING) if sampled else None
    found = [
        section(
            "plan",
            "How the budget is made up",
            el("p", text),
            condition,
            table("Steps of the plan", headers, rows, words=3),
            charts(growth_figure(plan, certificate)) if total > 1 else None,
        )
    ]
    kinds = {id(step.subject): step.subject for step in plan.steps}
    return found + (noise_sections(next(iter(kinds.values()))) if len(kinds) == 1 else [])


_SAMPLING = (
    "Sampling helps only if it is done as stated: in every run each person is drawn independently with "
    "that probability, "
    "from secure randomness, and nobody learns who was drawn. Batches of a fixed size or in a fixed "
    "order are something else."
)


def _row(place: int, step: Step, delta: float) -> list[Child]:
    def bound(loss: Loss) -> str:
        return number(loss.epsilon(delta).upper, 4, "up")

    whole_step = compose([(step.loss, step.count)], accuracy=_ROUGH) if step.count > 1 else step.loss
    return [
        whole(place),
        subject_words(step.subject),
        sampling_words(step.sampling_rate),
        whole(step.count),
        bound(loss_from(step.subject)),
        bound(step.loss),
        bound(whole_step),
    ]


def growth_figure(plan: Plan, certificate: Certificate) -> Markup | None:
    """epsilon after so many runs."""
    total = sum(step.count for step in plan.steps)
    moments = sorted({max(round(total * t * t), 1) for t in np.linspace(0.0, 1.0, _MOMENTS).tolist()})
    delta = certificate.delta
    points = [(float(t), compose(_first(plan.steps, t), accuracy=_ROUGH).epsilon(delta).upper) for t in moments]
    if not all(math.isfinite(epsilon) for _, epsilon in points):
        return None
    top = max(certificate.epsilon, *(epsilon for _, epsilon in points))
    x, y = linear("runs done", 0.0, float(total), show=lambda value: number(value, 7)), linear("ε", 0.0, top)
    chart = Chart(
        x,
        y,
        "The budget as the plan runs",
        f"Epsilon at delta {number(delta)} after each of {len(points)} moments, up to {number(points[-1][1], 4, 'up')} "
        f"after {counted(total, 'run')}; the claim is {number(certificate.epsilon)}.",
    )
    chart.across((x.low, certificate.epsilon), (x.high, certificate.epsilon), "limit", "the claim")
    chart.line(points, "one")
    for runs, epsilon in points:
        chart.mark(runs, epsilon, "one", f"after {whole(int(runs))} runs: ε ≤ {number(epsilon, 4, 'up')}", radius=3.0)
    return figure(
        "growth",
        chart,
        f"ε at δ = {number(delta, 6)}, upper bounds. Stopping early costs less only if the moment was fixed "
        "beforehand.",
        [("one", "line", "composed so far"), ("limit", "line", "the claim")],
    )


def _first(steps: Sequence[Step], runs: int) -> list[tuple[Loss, int]]:
    """The first runs of the plan, in order."""
    parts: list[tuple[Loss, int]] = []
    for step in steps:
        taken = min(step.count, runs)
        if taken:
            parts.append((step.loss, taken))
        runs -= taken
    return parts
