"""Passes over the data as parts of a composition: each record in one of several runs at random, and shuffles."""

from __future__ import annotations

from collections.abc import Callable

import placed
from kinds import Generator, Item, scale

from laws import Law, Normal, response
from shapedp.accounting import BareLoss, allocate, compose
from shapedp.privacy import GaussianLoss, Loss
from shapedp.privacy.losses.shuffle import ShuffledLoss

Made = tuple[str, Callable[[], Loss], int, list[tuple[Law, Law]]]


def base_of_pass(rng: Generator, extreme: bool) -> Made:
    """A base, runs of a pass, and the laws of both directions: exact, or one from below and one from above."""
    which, a = int(rng.integers(5)), scale(rng, -3, 1.2) if extreme else scale(rng, -1.5, 0.5)
    mu = scale(rng, -1.5, 0.6) if extreme else scale(rng, -1, 0.4)
    if which == 0:
        runs = 2
        laws = [(placed.TwoPlaces(mu), placed.TwoPlaces(mu, False))]
    elif which == 1:
        runs = int(rng.integers(3, 7))
        laws = [placed.normal_below(mu, runs), placed.normal_above(mu, runs)]
    if which < 2:
        return f"GaussianLoss({mu!r})", lambda: GaussianLoss(mu), runs, laws
    if which == 2:
        lost = scale(rng, -12, -3) if rng.random() < 0.4 else 0.0
        atoms, text = response(a, lost), f"BareLoss({a!r}, {lost!r})"
        build: Callable[[], Loss] = lambda: BareLoss(a, lost)  # noqa: E731
    elif which == 3:
        times = int(rng.integers(2, 6))
        atoms, text = placed.convolved(response(a), times), f"compose([(BareLoss({a!r}), {times})])"
        build = lambda: compose([(BareLoss(a), times)])  # noqa: E731
    else:
        b = scale(rng, -1.5, 0.5)
        atoms, text = placed.two(a, b), f"compose([BareLoss({a!r}), BareLoss({b!r})])"
        build = lambda: compose([BareLoss(a), BareLoss(b)])  # noqa: E731
    runs = int(rng.integers(2, placed.room(len(atoms.values) + bool(atoms.infinity)) + 1))
    return text, build, runs, placed.of_atoms(atoms, runs)


def allocated(rng: Generator, extreme: bool) -> Item:
    text, build, runs, laws = base_of_pass(rng, extreme)
    (there, back), (best, best_back) = laws[0], laws[-1]
    return Item(
        "allocation",
        f"allocate({text}, {runs}, adjacency='add-remove')",
        lambda: allocate(build(), runs, adjacency="add-remove"),
        (there,),
        (best,),
        (back,),
        (best_back,),
        "add-remove",
    )


def shuffled(rng: Generator, extreme: bool) -> Item:
    """Between a lower pair, and what an order known to everybody costs."""
    mu, runs = scale(rng, -1.5, 0.4), int(10 ** rng.uniform(0.31, 3.5))
    worst, back = placed.shuffled(mu, runs)
    text = f"ShuffledLoss(GaussianLoss({mu!r}), {runs})"
    best = (Normal(mu),)
    return Item(
        "shuffle", text, lambda: ShuffledLoss(GaussianLoss(mu), runs), (worst,), best, (back,), best, "zero-out"
    )
