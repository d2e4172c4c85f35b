"""The numbers that dp_accounting's own tests expect, run as data against our brackets.

    python experiments/trust/dp_accounting_goldens.py [--quick]

An exact golden lies inside our bracket, up to the digits or the tolerance it is stated with; an upper golden is not
below our lower end; a lower golden is not above our upper end. Masses become deltas at the nodes of their grid, where
"connect the dots" is exact. Expected: no golden outside. Where a golden lies beside the truth, inside its own
tolerance, the table shows it with bounds in ball arithmetic. The data and its source: dp_accounting_goldens.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from flint import acb, arb

sys.path.insert(0, str(Path(__file__).parent))

import settle

from laws import Laplacian, Law, Normal, Sampled, many_answers, response
from shapedp.accounting import BareLoss, compose, from_event, trade_off
from shapedp.noise import DiscreteLaplace
from shapedp.privacy import Loss, loss_of
from shapedp.sensitivity import L1

DATA = Path(__file__).with_name("dp_accounting_goldens.json")
_DIGITS = 1e-7  # what a mass may be off as printed and tested (7 places)


@dataclass
class Row:
    """One comparison: the golden, our bracket, whether they agree."""

    test: str
    what: str
    golden: float
    lower: float
    upper: float
    agrees: bool
    proof: Callable[[], str] | None = None  # where the golden itself is beside the truth: bounds in ball arithmetic


def event(spec: list[Any]) -> Any:
    """The other library's event."""
    from dp_accounting import dp_event

    if spec[0] == "gaussian":
        return dp_event.GaussianDpEvent(spec[1])
    if spec[0] == "laplace":
        return dp_event.LaplaceDpEvent(spec[1])
    if spec[0] == "response":
        return dp_event.RandomizedResponseDpEvent(spec[1], spec[2])
    return dp_event.PoissonSampledDpEvent(spec[1], event(spec[2]))


def loss(spec: list[Any]) -> Loss:
    return BareLoss(spec[1], spec[2]) if spec[0] == "bare" else from_event(event(spec))


def law(spec: list[Any], back: bool) -> Law:
    """The same in our own laws, for proofs."""
    if spec[0] == "poisson":
        return Sampled(law(spec[2], back), spec[1], not back)
    made = {"gaussian": lambda: Normal(1 / spec[1]), "laplace": lambda: Laplacian(1 / spec[1])}
    made |= {"bare": lambda: response(spec[1], spec[2]), "response": lambda: many_answers(spec[1], spec[2])}
    return made[spec[0]]()


def agrees(sort: str, golden: float, lower: float, upper: float, room: float) -> bool:
    above, below = golden >= lower - room, golden <= upper + room
    return {"exact": above and below, "upper": above, "lower": below, "met": above, "not met": golden < upper}[sort]


def mechanism(golden: dict[str, Any]) -> Loss | None:
    """Our loss of a golden given as masses; None where we have no such pair."""
    family, relation = golden["family"], golden["relation"]
    if family == "response":
        return loss(["response", golden["noise"], golden["buckets"]]) if relation == "replace-one" else None
    scale, moved, rate = golden["scale"], golden["sensitivity"], golden["rate"]
    if relation == "replace-one":
        if rate < 1:
            return None
        moved = 2 * moved  # theirs: one value against its opposite
    if family == "discrete_laplace":
        if rate < 1 or (1 / scale) != round(1 / scale):
            return None
        return loss_of(DiscreteLaplace(1 / scale, 1.0, dim=1), L1(float(moved), dim=1))
    spec = [family, scale / moved]
    return loss(spec if rate == 1 else ["poisson", rate, spec])


def masses(golden: dict[str, Any]) -> Iterator[Row]:
    ours = mechanism(golden)
    if ours is None:
        return
    for back, name in ((True, "add"), (False, "remove")):
        found = golden[name]
        if found is None:
            continue
        points = {int(k): v for k, v in found.items()}
        infinity = golden[f"{name}_infinity"]
        if infinity is None:
            infinity = max(1 - math.fsum(points.values()), 0.0) if golden["sort"] == "upper" else 0.0
        nodes = [k for k in range(0, max(points) + 1) if k >= min(points)]
        if not nodes:
            continue
        lower, upper = ours.profile(np.array(nodes, dtype=np.float64), reverse=back and not ours.symmetric)
        for k, low, high in zip(nodes, lower.tolist(), upper.tolist(), strict=True):
            value = infinity + math.fsum(m * -math.expm1(k - j) for j, m in points.items() if j > k)
            fits = agrees(golden["sort"], value, low, high, _DIGITS * (len(points) + 1))
            yield Row(golden["test"], f"{name} delta({k}) {golden['sort']}", value, low, high, fits)


def rates(golden: dict[str, Any]) -> Iterator[Row]:
    most = 1 - float(trade_off(loss(golden["event"]), golden["fpr"], points=4000)[0])
    room = golden["relative"] * golden["tpr"]
    yield Row(golden["test"], f"tpr at {golden['fpr']:g}", golden["tpr"], 0.0, most, golden["tpr"] <= most + room)


def answers(golden: dict[str, Any]) -> Iterator[Row]:
    parts, sort, at, room = golden["parts"], golden["sort"], golden["at"], golden["tolerance"]
    value = math.inf if golden["value"] == "inf" else golden["value"]
    whole = compose([(loss(spec), n) for spec, n in parts])
    found = whole.delta(at) if golden["ask"] == "delta" else whole.epsilon(at)
    what = f"{golden['ask']}({at:g}) {sort}"
    row = Row(
        golden["test"], what, value, found.lower, found.upper, agrees(sort, value, found.lower, found.upper, room)
    )
    if sort == "exact" and row.agrees and not found.lower - 1e-12 <= value <= found.upper + 1e-12:
        row.proof = partial(proof, parts, golden["ask"], at, value)
    yield row


def proof(parts: list[Any], ask: str, at: float, value: float) -> str:
    """Bounds on delta at the golden's epsilon, in ball arithmetic."""
    epsilon = at if ask == "delta" else value
    sides = {back: [(law(spec, back), n) for spec, n in parts] for back in (False, True)}
    ends = [
        [settle.delta(side, epsilon, up=up, nodes=8000, cut=30.0) for side in sides.values()] for up in (False, True)
    ]
    low, high = (max(float(ball.mid()) for ball in end) for end in ends)
    return f"delta({epsilon:g}) in [{low:.8g}, {high:.8g}]"


def renyi(golden: dict[str, Any]) -> Iterator[Row]:
    ours = loss(golden["event"]).renyi(golden["order"])
    low, high = golden["count"] * ours.lower, golden["count"] * ours.upper
    room = golden["relative"] * golden["value"]
    sort = golden.get("sort", "exact")
    fits = agrees(sort, golden["value"], low, high, room)
    row = Row(golden["test"], f"renyi({golden['order']:g}) {sort}", golden["value"], low, high, fits)
    if sort == "upper" and fits and golden["value"] > high + room:
        row.proof = partial(exact_renyi, golden)
    yield row


def exact_renyi(golden: dict[str, Any]) -> str:
    _, rate, (_, sigma) = golden["event"]
    return f"exact {(golden['count'] * sampled_renyi(rate, sigma, golden['order'])).str(10)} (ball)"


def sampled_renyi(rate: float, sigma: float, order: float) -> arb:
    """log E_Q (1 - rate + rate e^L)^order/(order - 1), L the loss of Gaussian noise; what lies beyond 60 is nothing."""

    def integrand(x: acb, _: bool) -> acb:
        ratio = 1 - rate + rate * ((2 * x - 1) / (2 * arb(sigma) ** 2)).exp()
        density = (-(x * x) / (2 * arb(sigma) ** 2)).exp() / (arb(sigma) * (2 * arb.pi()).sqrt())
        return density * (arb(order) * ratio.log()).exp()

    whole = acb.integral(integrand, -60, 60).real
    return arb(whole.log() / (arb(order) - 1))


def rows(quick: bool = False) -> Iterator[Row]:
    """Every comparison; a third of them if quick. What raises is a row that does not agree."""
    data = json.loads(DATA.read_text())
    for name, compare in (("masses", masses), ("rates", rates), ("answers", answers), ("renyi", renyi)):
        for i, golden in enumerate(data[name]):
            if quick and name != "answers" and i % 3:
                continue
            try:
                yield from compare(golden)
            except (ArithmeticError, ValueError, TypeError) as error:
                yield Row(golden["test"], f"{type(error).__name__}: {error}"[:80], math.nan, 0.0, 0.0, False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    found = list(rows(parser.parse_args().quick))
    wrong = [row for row in found if not row.agrees]
    beside = [row for row in found if row.proof]
    print(f"goldens compared {len(found)}, outside {len(wrong)}, beside the truth {len(beside)}")
    for title, chosen in (("outside:", wrong), ("beside the truth, within their tolerance:", beside)):
        if chosen:
            print(title)
        for row in chosen:
            ends = f"[{row.lower:.9g}, {row.upper:.9g}] {row.proof() if row.proof else ''}"
            print(f"  {row.test.split(' ', 1)[1]} {row.what}: golden {row.golden:.9g}, ours {ends}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
