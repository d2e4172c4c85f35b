"""Tables of counts against peers, in one run and at equal (epsilon, delta): root mean square error per cell.

    python experiments/workloads/peers.py

- ours: `Workload.calibrate`;
- one by one: Gaussian noise on each table, the budget split best between tables, exact accounting;
- OpenDP: Gaussian noise on all tables in a row, its zCDP accounting (needs opendp);
- ResidualPlanner: what its own code (github.com/dkifer/ResidualPlanner, `selection_only`, RMSE at privacy cost 1) gave
  for these domains; privacy cost 1 is mu = 1, and error scales as 1/mu. Its code
  converts by zCDP: that is shown, too.
"""

from __future__ import annotations

import json
import math
from typing import Any

import shapedp as sdp

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


def one_by_one(asked: sdp.Workload, mu: float) -> float:
    """(sum_A sqrt(cells_A))^2/mu^2 in all: a record is one in a cell of every table."""
    return sum(math.sqrt(math.prod(term.shape)) for term in asked.terms) ** 2 / mu**2


def opendp_scale(tables: int) -> float | None:
    """The least scale that OpenDP certifies for so many tables in a row; None without OpenDP."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    reach = math.sqrt(tables)

    def epsilon(scale: float) -> float:
        space: Any = (dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float))
        made = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale))
        return float(made.map(reach).epsilon(CLAIM["delta"]))

    low, high = reach, 1000 * reach
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if epsilon(middle) <= CLAIM["epsilon"] else (middle, high)
    return high


def main() -> None:
    mu = sdp.GaussianLoss.calibrate(**CLAIM).mu
    for name, sizes in DOMAINS.items():
        for word, orders in ORDERS.items():
            asked = sdp.Workload({f"x{k}": size for k, size in enumerate(sizes)}).marginals(*orders)
            made = asked.calibrate(**CLAIM)
            ours, scale = math.sqrt(made.expected_squared_error / len(asked)), opendp_scale(len(asked.terms))
            row = {
                "ours": ours,
                "one by one": math.sqrt(one_by_one(asked, mu) / len(asked)),
                "OpenDP": scale,
                "ResidualPlanner, exact accounting": RESIDUAL_PLANNER[name, word] / mu,
                "ResidualPlanner, zCDP": scale and RESIDUAL_PLANNER[name, word] * scale / math.sqrt(len(asked.terms)),
                "ours over the exact one": ours * mu / RESIDUAL_PLANNER[name, word],
            }
            print(json.dumps({"domain": name, "tables": word, **row}))


if __name__ == "__main__":
    main()
