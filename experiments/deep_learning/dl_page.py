"""Write the tables of docs/training-studies.md and docs/membership.md from the stored trainings.

    python experiments/deep_learning/dl_page.py

A page holds `<!-- table NAME -->` before and `<!-- end -->` after each table; what stands between is replaced.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import items

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (DOCS / "training-studies.md", DOCS / "membership.md")
Rows = list[list[Any]]


def markdown(header: list[str], rows: Rows) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def quiet(done: int, total: int, what: str) -> None:
    """No progress."""


def percent(mean: float, half: float) -> str:
    """An accuracy in percent with half of its interval, where there is one."""
    return f"{100 * mean:.2f}" if math.isnan(half) else f"{100 * mean:.2f} +- {100 * half:.2f}"


ORDER = ("flat Gaussian", "radial", "optimal per layer", "SPR per layer", "Laplace", "angle windows", "no noise")


def mnist() -> str:
    """The MNIST CNN at every epsilon."""
    found = {(row[2], row[3]): row for row in items.equal(False, quiet).rows if row[:2] == ("MNIST", "CNN")}
    epsilons = sorted({epsilon for _, epsilon in found if epsilon})
    rows: Rows = []
    for method in ORDER[:-1]:
        cells = [found.get((method, epsilon)) for epsilon in epsilons]
        rows.append([method, *("" if cell is None else percent(*cell[5:7]) for cell in cells)])
    rows.append(["*optimal less SPR, paired*", *(percent(*items.gain(epsilon)) for epsilon in epsilons)])
    rows.append(["no noise", percent(*found["no noise", None][5:7]), *[""] * (len(epsilons) - 1)])
    certified = [found["flat Gaussian", epsilon][4] for epsilon in epsilons]
    rows.append(["*epsilon certified*", *(f"{value:.4f}" for value in certified)])
    return markdown(["noise", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], rows)


def others() -> str:
    """Other data at epsilon 1."""
    found = {row[:3]: row for row in items.equal(False, quiet).rows if row[:2] != ("MNIST", "CNN")}
    pairs = sorted({key[:2] for key in found})
    methods = [method for method in ORDER if any((*pair, method) in found for pair in pairs)]
    rows: Rows = []
    for pair in pairs:
        cells = [found.get((*pair, method)) for method in methods]
        rows.append([", ".join(pair), *("" if cell is None else percent(*cell[5:7]) for cell in cells)])
    return markdown(["data, network", *methods], rows)


def accounted() -> str:
    """Laplace and radial noise."""
    rows = [[f"{data}, {net}", method, f"{epsilon:g}", f"{scale:.4f}", f"{spent:.4f}", f"{delta:.3g}"]
            for data, net, method, epsilon, scale, spent, delta in items.accounted(False, quiet).rows]  # fmt: skip
    return markdown(["data, network", "noise", "epsilon", "noise multiplier", "certified", "delta at epsilon"], rows)


def energies() -> str:
    """SPR over optimal noise."""
    return markdown(
        ["network", "parameters", "layers", "SPR / optimal", "closed form"],
        [[*row[:3], *(f"{value:.6f}" for value in row[3:])] for row in items.energy(False, quiet).rows],
    )


def published() -> str:
    """Product noise and Gaussian noise at the settings of table 12."""
    rows: Rows = []
    for data in ("MNIST", "Adult", "IMDb", "CIFAR-10"):
        for method, records, epochs, accuracy, epsilon, delta, holds, least in items.figure(data)(False, quiet).rows:
            claim = f"({epsilon:.3g}, {delta:.3g})" if epsilon != "" else ""
            given = "" if least == "" else f"{least:.2g}"
            name = "Gaussian" if method == "DP" else method
            rows.append([data, name, records, epochs, f"{100 * accuracy:.2f}", claim, holds, given])
    return markdown(
        ["data", "noise", "records", "epochs", "accuracy", "claimed", "what holds", "delta of one step >="], rows
    )


def geodp() -> str:
    """Table 2 of the GeoDP paper."""
    rows: Rows = []
    for method, batch, beta, sigma, accuracy, printed, rate, exact in items.geodp_table_2(False, quiet).rows:
        holds = exact if isinstance(exact, str) else f"epsilon {exact:.3g}"
        rows.append(
            [method, batch, beta, f"{sigma:g}", f"{100 * accuracy:.2f}", f"{100 * printed:.2f}", f"{rate:g}", holds]
        )
    return markdown(["noise", "B", "beta", "sigma", "accuracy", "printed", "rate", "what holds at 1e-5"], rows)


def table_iv() -> str:
    """Table IV of the i.n.i.d. paper."""
    rows: Rows = []
    for method, epsilon, delta, *how, holds, mean, half, seeds, printed in items.table_iv(False, quiet).rows:
        certified = "" if holds is None else f"{holds:.4f}"
        score = f"{mean:.2f}" if math.isnan(half) else f"{mean:.2f} +- {half:.2f}"
        settings = [f"{value:g}" for value in (epsilon, delta, *how)]
        rows.append([method, *settings, certified, score, seeds, printed])
    header = ["noise", "epsilon", "delta", "epochs", "rate", "certified", "accuracy", "seeds", "printed"]
    return markdown(header, rows)


def claims() -> str:
    """Table 12: what is claimed for product noise."""
    rows = [[row[0], f"{row[7]:.3f}", row[8], f"{row[9]:.2f}", row[10]] for row in items.table_12(False, quiet).rows]
    return markdown(["data", "product noise claims", "printed", "Gaussian, exact", "PRV printed"], rows)


def windows() -> str:
    """Angle windows at smaller learning rates."""
    rows = [[f"{data}, {net}", f"{rate:g}", f"{100 * mean:.2f}"]
            for data, net, rate, _, mean, _, _ in items.windows(False, quiet).rows]  # fmt: skip
    return markdown(["data, network", "rate", "accuracy"], rows)


def mixing() -> str:
    """Figures 3 and 5 of the mixing paper, from the stored result of their item."""
    path = DOCS.parent / "experiments" / "results" / "erm-figure-3.json"
    found = json.loads(path.read_text(encoding="utf-8"))["rows"]
    cells = {tuple(row[1:5]): row for row in found}
    epsilons = sorted({row[3] for row in found if math.isfinite(row[3])})
    rows: Rows = []
    for figure, name, kind in dict.fromkeys(tuple(row[:3]) for row in found):
        plain = f"{100 * cells[name, kind, math.inf, 'scikit-learn'][5]:.1f}"
        solvers = dict.fromkeys(row[4] for row in found if math.isfinite(row[3]))
        mine = {solver: [cells[name, kind, epsilon, solver] for epsilon in epsilons] for solver in solvers}
        for solver, line in mine.items():
            scores = [f"{100 * cell[5]:.1f} +- {100 * cell[6]:.1f}" for cell in line]
            ratio = line[-1][7] / mine["mixing"][-1][7]
            rows.append([figure, name, kind, solver, *scores, plain, f"{ratio:.2f}"])
        if kind == "CNN":
            rows.append([figure, name, kind, "*epsilon in all*", *(f"{c[8]:.3f}" for c in mine["mixing"]), "", ""])
    header = ["figure", "data", "features", "solver", *(f"epsilon {epsilon:g}" for epsilon in epsilons)]
    return markdown([*header, "no noise", "time / mixing"], rows)


def tailored() -> str:
    """Table 4 of the product-noise paper."""
    rows: Rows = []
    for data, method, area, deviation, count, printed in items.table_4(False, quiet).rows:
        value = area if isinstance(area, str) else f"{area:.3f} +- {deviation:.3f}"
        rows.append([data, "Gaussian" if method == "DP" else method, value, count, f"{printed:.2f}"])
    return markdown(["data", "noise", "tailored AUC", "repetitions", "printed"], rows)


def attacks() -> str:
    """Both attacks."""
    rows: Rows = []
    for data, method, epsilon, attack, auc, low, high, rare, few, train, test in items.membership(False, quiet).rows:
        area = f"{auc:.3f} [{low:.3f}, {high:.3f}]"
        trained = f"{100 * train:.1f} / {100 * test:.1f}"
        rows.append([data, method, epsilon, attack, area, f"{100 * rare:.2f}", f"{100 * few:.2f}", trained])
    header = ["data", "noise", "epsilon", "attack", "AUC", "TPR at 0.1%", "TPR at 1%", "accuracy, members / test"]
    return markdown(header, rows)


TABLES: dict[str, Callable[[], str]] = {
    "mnist": mnist,
    "others": others,
    "accounted": accounted,
    "energies": energies,
    "published": published,
    "claims": claims,
    "geodp": geodp,
    "table-iv": table_iv,
    "windows": windows,
    "mixing": mixing,
    "tailored": tailored,
    "attacks": attacks,
}


def rendered(text: str) -> str:
    """A page with its tables written anew."""

    def table(found: re.Match[str]) -> str:
        return f"<!-- table {found[1]} -->\n\n{TABLES[found[1]]()}\n\n<!-- end -->"

    return re.sub(r"<!-- table ([\w-]+) -->.*?<!-- end -->", table, text, flags=re.S)


if __name__ == "__main__":
    for page in PAGES:
        text = rendered(page.read_text(encoding="utf-8"))
        temporary = page.with_name(f".{page.name}.part")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(page)
