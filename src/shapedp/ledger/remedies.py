"""What to say to a spend that a cap does not admit: what is left of it, and what to do."""

from __future__ import annotations

import math

from shapedp.boundary.refusals import refusal
from shapedp.ledger.errors import SpendRefusedError
from shapedp.ledger.filters import BasicFilter, Filter
from shapedp.ledger.fixed import Charge
from shapedp.mechanisms import Mechanism

_NAMES = {"epsilon": "epsilon {:.4g}", "delta": "delta {:.4g}", "mu": "Gaussian noise of mu {:.4g}"}


def remedy(budget: Filter, before: Charge, mechanism: Mechanism, count: int) -> str:
    """What is left, and how to ask for less. Nothing of it depends on data: only on what was spent."""
    return refusal("ledger", "ask-for-less", left=left(budget, before)) + _another_rule(budget, mechanism, count)


def left(budget: Filter, totals: Charge) -> str:
    """What the cap still admits, in the currency of the rule, for showing."""
    used = budget.describe(totals)
    if not budget.admits(totals) or budget.spent(totals) >= 1:
        return "nothing"
    if "renyi" in used:
        rooms = zip(used["orders"], used["renyi"], used["renyi_cap"], strict=True)
        order, room = max(((order, cap - total) for order, total, cap in rooms), key=lambda pair: pair[1])
        return f"a Renyi divergence of {room:.4g} at order {order:g}"
    squares = {"mu": math.sqrt(max(used["mu_cap"] ** 2 - used["mu"] ** 2, 0.0))} if "mu" in used else {}
    sums = {name: max(used[name + "_cap"] - used[name], 0.0) for name in ("epsilon", "delta") if name in used}
    parts = [_NAMES[name].format(room) for name, room in sums.items()]
    plain = " and ".join(parts) + (" by plain addition" if squares and parts else "")
    noise = [_NAMES["mu"].format(room) for room in squares.values()]
    return ", or ".join([*([plain] if plain else []), *noise])


def _another_rule(budget: Filter, mechanism: Mechanism, count: int) -> str:
    """What to say where plain addition would have charged less."""
    sums = BasicFilter.build(budget.epsilon, budget.delta, 0.0, None)
    try:
        plain, own = sums.charge(mechanism).times(count), budget.charge(mechanism).times(count)
    except SpendRefusedError:
        return ""
    if isinstance(budget, BasicFilter) or sums.spent(plain) >= budget.spent(own):
        return ""
    return refusal("ledger", "plain-addition-is-less", plain=sums.spent(plain), own=budget.spent(own))
