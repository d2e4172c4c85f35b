"""Run the studies piece by piece, keep their rows, and write the tables of docs/classification.md from them.

python experiments/erm/page.py run output logistic,huber Adult KDDCup99     # rows into results.json
python experiments/erm/page.py write                                        # results.json into the page
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
RESULTS, PAGE = HERE / "results.json", HERE.parents[1] / "docs" / "classification.md"
BEGIN, END = "<!-- {}: written by experiments/erm/page.py -->", "<!-- end of {} -->"
ORDER = ("Adult", "KDDCup99", "MNIST", "Synthetic-H", "Real-sim", "RCV1 sample")
SHOWN = {"output": (1e-2, 1e-1, 1.0), "objective": (1e-1, 1.0, 10.0)}


def save(path: Path, text: str) -> None:
    """Whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def stored() -> list[dict[str, Any]]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []


def run(study: str, loss: str, names: Iterable[str]) -> None:
    """Rows of one study for some data sets, in place of those stored."""
    import erm_objective
    import erm_output

    module = {"output": erm_output, "objective": erm_objective}[study]
    for name in names:
        rows, absent = module.run(loss, (name,), True, lambda done, total, what: print(what, flush=True))
        fresh = [{"study": study, "loss": loss, **asdict(row)} for row in rows]
        fresh += [{"study": study, "loss": loss, "dataset": gone, "absent": True} for gone in absent]
        kept = [r for r in stored() if (r["study"], r["loss"], r["dataset"]) != (study, loss, name)]
        save(RESULTS, json.dumps(kept + fresh, indent=1) + "\n")


def interval(row: dict[str, Any]) -> float:
    """Half the 99% interval of a mean accuracy."""
    return 2.6 * row["accuracy_sd"] / math.sqrt(row["runs"])


def at(rows: list[dict[str, Any]], dataset: str, noise: str, epsilon: float) -> dict[str, Any] | None:
    for row in rows:
        if row["dataset"] == dataset and row.get("noise") == noise and math.isclose(row["epsilon"], epsilon):
            return row
    return None


def missing(rows: list[dict[str, Any]], dataset: str) -> str | None:
    """Why a set has no rows, if it has none."""
    mine = [row for row in rows if row["dataset"] == dataset]
    if not mine:
        return "not run yet"
    return "data not at hand" if mine[0].get("absent") else None


def accuracy(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{100 * row['accuracy']:.1f} ± {100 * row['accuracy_sd']:.1f}"


def table(headers: list[str], rows: list[list[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def output_table(loss: str) -> str:
    """Accuracy of every noise, and what is left of the published advantage over the analytic Gaussian."""
    rows = [r for r in stored() if (r["study"], r["loss"]) == ("output", loss)]
    headers = ["data set", "epsilon", "no noise", "classic Gaussian", "multivariate Laplace", "analytic Gaussian"]
    headers += [
        "best radial",
        "product noise, REFUTED (exact delta)",
        "l2 error, radial / analytic",
        "product / analytic",
    ]
    lines = []
    for dataset in ORDER:
        if (reason := missing(rows, dataset)) is not None:
            lines.append([dataset, "", reason, *[""] * 7])
        for epsilon in SHOWN["output"]:
            found = {n: at(rows, dataset, n, epsilon) for n in ("classic-gaussian", "multivariate-laplace", "gaussian")}
            radial, product = at(rows, dataset, "radial", epsilon), at(rows, dataset, "product-noise", epsilon)
            plain = at(rows, dataset, "none", math.inf)
            if radial is None or product is None or found["gaussian"] is None:
                continue
            base = found["gaussian"]["expected_error"]
            lines.append(
                [
                    dataset,
                    f"{epsilon:g}",
                    accuracy(plain),
                    accuracy(found["classic-gaussian"]),
                    accuracy(found["multivariate-laplace"]),
                    accuracy(found["gaussian"]),
                    accuracy(radial),
                    f"{accuracy(product)} ({product['exact_delta']:.2g})",
                    f"{radial['expected_error'] / base:.3f}",
                    f"{product['expected_error'] / base:.3f}",
                ]
            )
    return table(headers, lines)


def objective_table(loss: str) -> str:
    """Accuracy of Algorithm 3 as published and of the exact accounting."""
    import erm_objective

    rows = [r for r in stored() if (r["study"], r["loss"]) == ("objective", loss)]
    headers = ["data set", "epsilon", *erm_objective.LABELS.values(), "delta of the refuted noise"]
    lines = []
    for dataset in ORDER:
        if (reason := missing(rows, dataset)) is not None:
            lines.append([dataset, "", reason, *[""] * 4])
        for epsilon in SHOWN["objective"]:
            cells = [at(rows, dataset, variant, epsilon) for variant in erm_objective.VARIANTS]
            if all(cell is not None for cell in cells):
                shown = cells[2]["exact_delta"]
                lines.append([dataset, f"{epsilon:g}", *map(accuracy, cells), f"{shown:.2g}"])
    return table(headers, lines)


def errors_table() -> str:
    """Mean l2 error of the draws against the closed form and the printed cells, where sizes agree with the paper's."""
    from items import EPSILONS, PRINTED

    lines = []
    for name, loss in (("table 6", "logistic"), ("table 8", "huber")):
        rows = [r for r in stored() if (r["study"], r["loss"]) == ("output", loss)]
        for dataset in ("Adult", "Synthetic-H"):
            for i, epsilon in enumerate(EPSILONS):
                for k, noise in enumerate(("classic-gaussian", "gaussian")):
                    row = at(rows, dataset, noise, epsilon)
                    if row is not None:
                        printed = PRINTED[name][dataset][k][i]
                        form = row["expected_error"]
                        lines.append(
                            [name, dataset, noise, f"{epsilon:g}", f"{printed:g}", f"{form:.4g}", f"{row['error']:.4g}"]
                        )
    return table(["table", "data set", "noise", "epsilon", "printed", "closed form", "mean of the draws"], lines)


def worse() -> list[str]:
    """Where the best radial law lies below the analytic Gaussian by more than both 99% intervals."""
    found = []
    for row in stored():
        if row.get("noise") != "radial":
            continue
        rows = [r for r in stored() if (r["study"], r["loss"]) == (row["study"], row["loss"])]
        other = at(rows, row["dataset"], "gaussian", row["epsilon"])
        if other is not None and row["accuracy"] + interval(row) < other["accuracy"] - interval(other):
            found.append(f"{row['loss']} {row['dataset']} {row['epsilon']:g}")
    return found


def write() -> None:
    """Put the tables between their marks."""
    text = PAGE.read_text(encoding="utf-8")
    compared = sum(row.get("noise") == "radial" for row in stored())
    bad = worse()
    verdict = (
        f"In {compared} comparisons the best radial law is below the analytic Gaussian, beyond both 99% intervals, "
    )
    verdict += f"in {len(bad)}" + (f": {', '.join(bad)}." if bad else ".")
    parts = {
        "output logistic": output_table("logistic"),
        "output huber": output_table("huber"),
        "objective logistic": objective_table("logistic"),
        "objective huber": objective_table("huber"),
        "errors": errors_table(),
        "comparison": verdict,
    }
    for name, part in parts.items():
        begin, end = BEGIN.format(name), END.format(name)
        head, _, rest = text.partition(begin)
        if not rest:
            raise ValueError(f"{PAGE.name} lacks the mark {begin}")
        text = f"{head}{begin}\n\n{part}\n\n{end}{rest.partition(end)[2]}"
    save(PAGE, text)


if __name__ == "__main__":
    command, *given = sys.argv[1:] or [""]
    if command == "run" and len(given) >= 3:
        for loss in given[1].split(","):
            run(given[0], loss, given[2:])
    elif command == "write" and not given:
        write()
    else:
        sys.exit(__doc__)
