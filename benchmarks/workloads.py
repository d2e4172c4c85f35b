"""Tables of counts against peers at equal (epsilon, delta): root mean square error per cell.

- each table by itself: Gaussian noise on every table, the budget split best between tables, exact accounting;
- OpenDP: Gaussian noise on all tables in a row, the least scale that its zCDP accounting allows;
- ResidualPlanner: what its own code (github.com/dkifer/ResidualPlanner, `selection_only`, RMSE at privacy cost 1)
  printed for these domains; privacy cost 1 is mu = 1, and error scales as 1/mu. Once with our exact accounting, once
  with the conversion of its code, by zCDP;
- the closed form: (sum over blocks m_B sqrt(v_B))^2/N, from the sizes alone.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from _harness import Peers, Result, measure
from shapedp import GaussianLoss, Workload

CLAIM = {"epsilon": 1.0, "delta": 1e-9}
DOMAINS = {
    "CPS": (100, 50, 7, 4, 2),
    "Adult": (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2),
}
ORDERS = {"1-way": (1,), "2-way": (2,), "3-way": (3,), "up to 3-way": (0, 1, 2, 3)}
RESIDUAL_PLANNER = {
    ("CPS", "1-way"): 1.743944635214825,
    ("CPS", "2-way"): 2.0345862384377673,
    ("CPS", "3-way"): 2.047661197048332,
    ("CPS", "up to 3-way"): 2.2758730279567456,
    ("Adult", "1-way"): 3.0468232175613394,
    ("Adult", "2-way"): 6.358720131533941,
    ("Adult", "3-way"): 10.51526951080805,
    ("Adult", "up to 3-way"): 10.665008050725904,
}
ROUNDING = 1e-11  # what certified rounding may cost


def closed_form(sizes: tuple[int, ...], orders: tuple[int, ...]) -> float:
    """The least root mean square error at mu = 1."""
    shares: dict[tuple[int, ...], Fraction] = {}
    cells = 0
    for order in orders:
        for table in itertools.combinations(range(len(sizes)), order):
            size = math.prod(sizes[k] for k in table)
            cells += size
            for block in itertools.chain.from_iterable(itertools.combinations(table, k) for k in range(order + 1)):
                shares[block] = shares.get(block, Fraction(0)) + Fraction(1, size)
    total = math.fsum(math.prod(sizes[k] - 1 for k in block) * math.sqrt(share) for block, share in shares.items())
    return total / math.sqrt(cells)


def run(quick: bool) -> Result:
    mu = GaussianLoss.calibrate(**CLAIM).mu
    with Peers() as peers:
        unit = float(peers.value("opendp_sigma", **CLAIM))  # of a query that a record moves by 1
        result = Result(
            "workloads",
            what="root mean square error per cell of tables of counts over ours, at epsilon 1 and delta 1e-9",
            peers={"opendp": peers.versions["opendp"], "ResidualPlanner": "as printed by its code"},
        )
    for (name, word), printed in RESIDUAL_PLANNER.items():
        sizes = DOMAINS[name]
        asked = Workload({f"x{k}": size for k, size in enumerate(sizes)}).marginals(*ORDERS[word])
        ours = math.sqrt(asked.calibrate(**CLAIM).expected_squared_error / len(asked))
        alone = sum(math.sqrt(math.prod(term.shape)) for term in asked.terms) / mu / math.sqrt(len(asked))
        tables = f"{name}, {word}"
        result.ratio(f"{tables}: each table by itself", alone / ours, at_least=1 - ROUNDING)
        result.ratio(f"{tables}: OpenDP", unit * math.sqrt(len(asked.terms)) / ours, at_least=1)
        result.ratio(f"{tables}: ResidualPlanner, its zCDP", printed * unit / ours, at_least=1)
        result.ratio(f"{tables}: ResidualPlanner, exact", printed / mu / ours, at_least=1 - ROUNDING)
        result.figure(f"{tables}: ours", ours)
        result.figure(f"{tables}: ours over the closed form, less 1", ours * mu / closed_form(sizes, ORDERS[word]) - 1)
    large = Workload({f"x{k}": size for k, size in enumerate(DOMAINS["Adult"])}).marginals(0, 1, 2, 3)
    result.timings = measure({"plan of Adult, up to 3-way": lambda: large.calibrate(**CLAIM)}, rounds=1 if quick else 5)
    result.notes += [
        "Ours is above the exact ResidualPlanner by 1e-12: what rounding up of certified numbers costs.",
        "HDMM and private-pgm are not on the package index: not run. private-pgm chooses no noise of its own.",
    ]
    return result
