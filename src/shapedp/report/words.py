"""Sentences: what epsilon, delta and the neighbour relation mean, what a law and a set are, what is not promised."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

from shapedp.accounting import BareLoss
from shapedp.mechanisms import Mixing
from shapedp.mechanisms.adaptive_mixing import AdaptiveMixing
from shapedp.mechanisms.additive import Additive
from shapedp.numerics.arrays import Floats
from shapedp.privacy import Bracket, Certificate, GaussianLoss
from shapedp.report.figures import TIMES, counted, number, percent, span, whole
from shapedp.report.markup import Markup, el, many, text
from shapedp.sensitivity import L1, L2, Blocks, Box, Hull, Sensitivity, Slices


def neighbours(adjacency: str | None) -> Markup:
    """The neighbour relation in words."""
    return text(f"neighbours-{adjacency or 'unstated'}")


def claim(epsilon: float, delta: float) -> str:
    """(epsilon, delta), spelled out."""
    return f"ε = {number(epsilon, 6)}, δ = {number(delta, 6)}"


def factor(epsilon: float) -> str:
    """e^epsilon, rounded up."""
    return number(math.exp(epsilon), 4, "up") if epsilon < 700 else "more than 10³⁰⁰"


def promise(certificate: Certificate, *, recomputed: bool = True) -> Markup:
    """What is promised, or what is not, in one paragraph."""
    stated = claim(certificate.epsilon, certificate.delta)
    if certificate.verdict == "refuted":
        return text("promise-refuted", claim=stated, least=number(certificate.bracket.lower, 6, "down"))
    if certificate.verdict != "certified":
        return text("promise-undecided", claim=stated)
    rest = "" if certificate.delta == 0 else f", but for {number(certificate.delta, 6)}"
    how = "was computed from the noise that is added and is certified" if recomputed else "is stated to be certified"
    return text("promise-certified", claim=stated, factor=factor(certificate.epsilon), rest=rest, how=how)


def meaning(epsilon: float, delta: float) -> Markup:
    """What the two numbers say about the outputs."""
    shown = number(delta, 6)
    exception = text("no-exception") if delta == 0 else text("exception", delta=shown)
    return text("meaning", factor=factor(epsilon), epsilon=number(epsilon, 6), delta=shown, exception=exception)


def assumed(certificate: Certificate) -> Markup | None:
    """What the promise rests on that is not proved."""
    if not certificate.assumptions:
        return None
    items = [el("li", sentence) for sentence in certificate.assumptions]
    return many(el("p", el("strong", "Assumed, not proved:")), el("ul", items))


def not_promised(certificate: Certificate) -> Markup:
    """The limits of the promise."""
    seeded = [text("seeded")] if certificate.secure is False else []
    first = [el("li", sentence) for sentence in (*seeded, certificate.scope) if sentence]
    group = "its ε times k, with a larger δ" if certificate.delta else "k times its ε"
    return text("not-promised", first=first, group=group)


def randomness(secure: bool | None) -> str:
    """Whether secure randomness was used."""
    return {
        None: "nothing was released yet",
        True: "secure: from the system's generator",
        False: "not secure: seeded or watched, as in a simulation",
    }[secure]


@singledispatch
def set_words(sensitivity: Sensitivity) -> str:
    """What one person can change, in a sentence."""
    return f"a set of kind {sensitivity.kind} in {counted(sensitivity.dim, 'coordinate')}"


@set_words.register
def _(sensitivity: L2) -> str:
    if sensitivity.scales is not None:
        return f"an ellipsoid: {number(sensitivity.radius)} in units of one semi-axis per coordinate"
    return f"at most {number(sensitivity.radius)} in Euclidean length, all coordinates together"


@set_words.register
def _(sensitivity: L1) -> str:
    return f"at most {number(sensitivity.radius)} in the sum of absolute changes, all coordinates together"


@set_words.register
def _(sensitivity: Box) -> str:
    bounds = span(sensitivity.profile)
    return f"each coordinate by at most {f'a bound of its own, from {bounds}' if ' to ' in bounds else bounds}"


@set_words.register
def _(sensitivity: Blocks) -> str:
    return _lengths(counted(sensitivity.radii.size, "block") + " of coordinates", sensitivity.radii)


@set_words.register
def _(sensitivity: Slices) -> str:
    slices = counted(sensitivity.radii.size, "slice")
    return _lengths(f"{slices} along mode {sensitivity.mode} of the tensor", sensitivity.radii)


@set_words.register
def _(sensitivity: Hull) -> str:
    rows = counted(sensitivity.count, "listed vector")
    what = f"a mixture of the differences of two of {rows}" if sensitivity.differences else f"a mixture of {rows}"
    return f"{what}, or of their negatives, in {counted(sensitivity.dim, 'coordinate')}"


def _lengths(things: str, radii: Floats) -> str:
    low, high = number(float(radii.min())), number(float(radii.max()))
    return f"each of {things} by a Euclidean length of its own, from {low} to {high}"


def subject_words(subject: Any) -> str:
    """What a step of a plan runs."""
    match subject:
        case Additive():
            return f"{subject.law.kind} noise on {counted(subject.law.dim, 'coordinate')}"
        case AdaptiveMixing():
            return f"an adaptive Gaussian sketch of {counted(subject.rows, 'row')}"
        case Mixing():
            return f"a Gaussian sketch of {counted(subject.rows, 'row')}"
        case GaussianLoss():
            return f"Gaussian noise, {number(1 / subject.mu)} times the sensitivity" if subject.mu else "no release"
        case BareLoss():
            return f"any mechanism with ε = {number(subject.pure_epsilon)}, δ = {number(subject.failure)}"
    return type(subject).__name__


def shape_words(shape: tuple[int, ...]) -> str:
    """A vector of 3, or a tensor of 28 x 28 x 3."""
    if len(shape) == 1:
        return f"a vector of {counted(shape[0], 'coordinate')}"
    return f"a tensor of {f' {TIMES} '.join(whole(size) for size in shape)} entries"


def advantage_words(gain: Bracket) -> Markup:
    """What the attacker's advantage means for a guess."""
    most, least = percent((1 + gain.upper) / 2, 4, "up"), percent((1 + gain.lower) / 2, 4, "down")
    return text("advantage", most=most, reached=f" The best one reaches {least}." if gain.lower > 0 else "")
