"""Sentences: what epsilon, delta and the neighbour relation mean, what a law and a set are, what is not promised."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

from shapedp.mechanisms import Mixing
from shapedp.mechanisms.adaptive_mixing import AdaptiveMixing
from shapedp.mechanisms.additive import Additive
from shapedp.noise import Law
from shapedp.privacy import Bracket, Certificate
from shapedp.report.figures import TIMES, counted, number, percent, whole
from shapedp.report.markup import Child, Markup, el, many
from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity, Slices

NEIGHBOURS = {
    "add-remove": "Two data sets are neighbours if one is the other with the data of one person added or removed. "
    "So the number of people is protected too.",
    "replace": "Two data sets are neighbours if one is the other with the data of one person exchanged for any other "
    "data. The number of people is not protected.",
    "zero-out": "Two data sets are neighbours if one is the other with the data of one person set to zero. The number "
    "of records is not protected.",
    None: "No neighbour relation was stated with the bounds. Two data sets count as neighbours here if their true "
    "answers differ by no more than the sensitivity below; that one person cannot change more is vouched for by "
    "whoever set the bounds.",
}


def claim(epsilon: float, delta: float) -> str:
    """(epsilon, delta), spelled out."""
    return f"ε = {number(epsilon, 6)}, δ = {number(delta, 6)}"


def factor(epsilon: float) -> str:
    """e^epsilon, rounded up."""
    return number(math.exp(epsilon), 4, "up") if epsilon < 700 else "more than 10³⁰⁰"


def promise(certificate: Certificate, *, recomputed: bool = True) -> str:
    """What is promised, or what is not, in one paragraph."""
    at = claim(certificate.epsilon, certificate.delta)
    if certificate.verdict == "certified":
        rest = "" if certificate.delta == 0 else f", but for {number(certificate.delta, 6)}"
        how = (
            "was computed from the noise that is added and is certified" if recomputed else "is stated to be certified"
        )
        return (
            "One person's data change the probability of any outcome by a factor of at most "
            f"{factor(certificate.epsilon)}{rest}. The claim, ({at})-differential privacy, {how}."
        )
    if certificate.verdict == "refuted":
        least = number(certificate.bracket.lower, 6, "down")
        return (
            f"The claimed privacy is not given. The claim is {at}; at that ε the exact δ is at least {least}. "
            "The library refuses to release anything under this claim."
        )
    return (
        f"The claim, {at}, is neither proven nor refuted: it lies inside the computed bracket of δ. "
        "The library refuses to release anything under it."
    )


def meaning(epsilon: float, delta: float) -> Markup:
    """What the two numbers say about the outputs."""
    most = factor(epsilon)
    last = (
        "δ = 0 leaves no exception: nothing can come out that would be impossible under the other data set."
        if delta == 0
        else f"δ = {number(delta, 6)} is an allowance on top of that factor. In particular, an outcome that would be "
        f"impossible under the other data set has probability at most {number(delta, 6)}."
    )
    return many(
        el(
            "p",
            "Take any two neighbouring data sets and any event: a value that comes out, a conclusion drawn from it, a "
            "decision taken on it. Its probability under one data set is at most ",
            el("strong", f"{most} times"),
            f" its probability under the other, plus {number(delta, 6)}.",
        ),
        el(
            "ul",
            el(
                "li",
                f"ε = {number(epsilon, 6)} bounds the ratio: e^ε = {most}. The smaller it is, the less anybody can "
                "tell the two data sets apart. It holds whatever else the observer knows and however long they "
                "compute.",
            ),
            el("li", last),
        ),
    )


def assumed(certificate: Certificate) -> Markup | None:
    """What the promise rests on that is not proved."""
    if not certificate.assumptions:
        return None
    items = [el("li", sentence) for sentence in certificate.assumptions]
    return many(el("p", el("strong", "Assumed, not proved:")), el("ul", items))


def not_promised(certificate: Certificate) -> Markup:
    """The limits of the promise."""
    grown = "its ε times k, with a larger δ" if certificate.delta else "k times its ε"
    items: list[Child] = [
        "It is not a promise that nothing is learned. What the data say about people in general can be learned, and "
        "may be applied to anybody, in the data or not.",
        "It is for one person at a time. A group of k people (a family, or one person whose data were counted as "
        f"k people's) is protected by {grown}.",
        "The person is the unit that was bounded: one record, or everything one person contributed if records were "
        "grouped by owner when they were clipped. This page cannot tell which.",
        "It covers this release only. Other releases from the same data add to it: keep one budget for all of them.",
        "It covers what is published, not the data themselves, the unperturbed answer, logs, or the time a computation "
        "took.",
        "It rests on the bounds on what one person can change. They must come from clipping or from the nature of the "
        "question, never from looking at the data.",
    ]
    if certificate.scope:
        items.insert(0, certificate.scope)
    if certificate.secure is False:
        items.insert(
            0,
            "The randomness was seeded or watched, as in a simulation. Whoever knows the seed can subtract the noise: "
            "do not publish what was drawn.",
        )
    return many(el("p", "What is not promised:"), el("ul", [el("li", item) for item in items]))


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
    low, high = float(sensitivity.profile.min()), float(sensitivity.profile.max())
    span = f"{number(high)}" if low == high else f"a bound of its own, from {number(low)} to {number(high)}"
    return f"each coordinate by at most {span}"


@set_words.register
def _(sensitivity: Blocks) -> str:
    low, high = float(sensitivity.radii.min()), float(sensitivity.radii.max())
    return (
        f"each of {counted(sensitivity.radii.size, 'block')} of coordinates by a Euclidean length of its own, from "
        f"{number(low)} to {number(high)}"
    )


@set_words.register
def _(sensitivity: Slices) -> str:
    low, high = float(sensitivity.radii.min()), float(sensitivity.radii.max())
    return (
        f"each of {counted(sensitivity.radii.size, 'slice')} along mode {sensitivity.mode} of the tensor by a "
        "Euclidean "
        f"length of its own, from {number(low)} to {number(high)}"
    )


def law_words(law: Law) -> str:
    """The noise, in a phrase."""
    return law.words(number)


@singledispatch
def subject_words(subject: Any) -> str:
    """What a step of a plan runs."""
    return type(subject).__name__


@subject_words.register
def _(subject: Additive) -> str:
    return f"{subject.law.kind} noise on {counted(subject.law.dim, 'coordinate')}"


@subject_words.register
def _(subject: Mixing) -> str:
    return f"a Gaussian sketch of {counted(subject.rows, 'row')}"


@subject_words.register
def _(subject: AdaptiveMixing) -> str:
    return f"an adaptive Gaussian sketch of {counted(subject.rows, 'row')}"


def shape_words(shape: tuple[int, ...]) -> str:
    """A vector of 3, or a tensor of 28 x 28 x 3."""
    if len(shape) == 1:
        return f"a vector of {counted(shape[0], 'coordinate')}"
    return f"a tensor of {f' {TIMES} '.join(whole(size) for size in shape)} entries"


def advantage_words(gain: Bracket) -> str:
    """What the attacker's advantage means for a guess."""
    right, reached = percent((1 + gain.upper) / 2, 4, "up"), percent((1 + gain.lower) / 2, 4, "down")
    also = f" The best one reaches {reached}." if gain.lower > 0 else ""
    return (
        "The best attacker, who knows the rest of the data and the method, is to say which of two "
        "neighbouring data sets "
        f"was used. A coin decides which one it is, so a blind guess is right half the time; no attacker is right more "
        f"than {right} of the time.{also}"
    )
