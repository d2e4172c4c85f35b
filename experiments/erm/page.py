"""Run the studies piece by piece, keep their rows, and write the tables of docs/classification.md from them.

python experiments/erm/page.py run output logistic,huber Adult KDDCup99 --repeats 10     # rows into results.json
python experiments/erm/page.py write                                        # results.json into the page and ../results
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scipy import special

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
RESULTS, PAGE = HERE / "results.json", HERE.parents[1] / "docs" / "classification.md"
KEPT = HERE.parent / "results"
BEGIN, END = "<!-- {}: written by experiments/erm/page.py -->", "<!-- end of {} -->"
ORDER = ("Adult", "KDDCup99", "MNIST", "Synthetic-H", "Real-sim", "RCV1 sample")
AGAINST = (
    ("noise", "radial", "gaussian"),
    ("noise", "exact radial", "exact Gaussian"),
    ("accounting", "exact radial", "analytic"),
)
SHOWN = {"output": (1e-2, 1e-1, 1.0), "objective": (1e-1, 1.0, 10.0)}


def save(path: Path, text: str) -> None:
    """Whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def stored() -> list[dict[str, Any]]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []


def run(study: str, losses: tuple[str, ...], name: str, repeats: int) -> None:
    """Rows of one study for a data set, in place of those stored, saved after every split."""
    import erm_objective
    import erm_output

    module = {"output": erm_output, "objective": erm_objective}[study]
    started, splits = time.monotonic(), 0
    for rows in module.run(losses, name, True, repeats):
        splits = rows[0].splits
        keep(study, losses, name, [{"study": study, **asdict(row)} for row in rows])
        print(f"{study} {'+'.join(losses)} {name}: {splits} splits, {time.monotonic() - started:.0f} s", flush=True)
    if not splits:
        keep(study, losses, name, [{"study": study, "loss": loss, "dataset": name, "absent": True} for loss in losses])


def keep(study: str, losses: tuple[str, ...], name: str, fresh: list[dict[str, Any]]) -> None:
    """Put rows in place of the stored ones."""
    kept = [r for r in stored() if r["study"] != study or r["loss"] not in losses or r["dataset"] != name]
    save(RESULTS, json.dumps(kept + fresh, indent=1) + "\n")


def interval(row: dict[str, Any]) -> float:
    """Half the 99% interval of a mean accuracy, by Student's law."""
    return float(special.stdtrit(row["runs"] - 1, 0.995)) * row["accuracy_sd"] / math.sqrt(row["runs"])


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


def runs(row: dict[str, Any]) -> str:
    return f"{row['splits']} x {row['runs'] // row['splits']}"


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
        "of that saving, certified",
        "splits x draws",
    ]
    lines = []
    for dataset in ORDER:
        if (reason := missing(rows, dataset)) is not None:
            lines.append([dataset, "", reason, *[""] * 9])
        for epsilon in SHOWN["output"]:
            found = {n: at(rows, dataset, n, epsilon) for n in ("classic-gaussian", "multivariate-laplace", "gaussian")}
            radial, product = at(rows, dataset, "radial", epsilon), at(rows, dataset, "product-noise", epsilon)
            plain = at(rows, dataset, "none", math.inf)
            if radial is None or product is None or found["gaussian"] is None:
                continue
            base = found["gaussian"]["expected_error"]
            kept, lost = radial["expected_error"] / base, product["expected_error"] / base
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
                    f"{kept:.3f}",
                    f"{lost:.3f}",
                    f"{max(100 * (1 - kept) / (1 - lost), 0.0):.1f}%",
                    runs(radial),
                ]
            )
    return table(headers, lines)


def objective_table(loss: str) -> str:
    """Accuracy of Algorithm 3 as published and of the exact accounting."""
    import erm_objective

    rows = [r for r in stored() if (r["study"], r["loss"]) == ("objective", loss)]
    headers = ["data set", "epsilon", *erm_objective.LABELS.values(), "delta of the refuted noise", "splits x draws"]
    lines = []
    for dataset in ORDER:
        if (reason := missing(rows, dataset)) is not None:
            lines.append([dataset, "", reason, *[""] * 6])
        for epsilon in SHOWN["objective"]:
            found = [at(rows, dataset, variant, epsilon) for variant in erm_objective.VARIANTS]
            cells = [cell for cell in found if cell is not None]
            if len(cells) == len(found):
                shown = cells[2]["exact_delta"]
                lines.append([dataset, f"{epsilon:g}", *map(accuracy, cells), f"{shown:.2g}", runs(cells[0])])
    return table(headers, lines)


def rates_table() -> str:
    """False-positive rates and mean l2 errors at the middle epsilon of each study."""
    noises = {
        "output": ("gaussian", "radial", "product-noise"),
        "objective": ("analytic", "exact radial", "product"),
    }
    lines = []
    for study, names in noises.items():
        epsilon = SHOWN[study][1]
        for loss in ("logistic", "huber"):
            rows = [r for r in stored() if (r["study"], r["loss"]) == (study, loss)]
            for dataset in ORDER:
                cells = [row for name in names if (row := at(rows, dataset, name, epsilon)) is not None]
                if len(cells) == len(names):
                    rates = [f"{100 * r['false_positives']:.1f} ± {100 * r['false_positives_sd']:.1f}" for r in cells]
                    errors = [f"{r['error']:.4g}" for r in cells]
                    lines.append([study, loss, dataset, f"{epsilon:g}", *rates, *errors])
    kinds = ("analytic Gaussian", "best radial", "product noise, REFUTED")
    headers = ["perturbation", "loss", "data set", "epsilon", *(f"rate, {kind}" for kind in kinds)]
    return table([*headers, *(f"l2 error, {kind}" for kind in kinds)], lines)


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


def comparisons() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(kind, row, its counterpart) at equal claims, for every stored cell of certified radial noise.

    "noise": against the analytic Gaussian in the same objective. "accounting": exact accounting, with the Lambda it
    chooses, against Algorithm 3 with analytic Gaussian noise.
    """
    found = []
    rows = stored()
    for row in rows:
        for kind, noise, other in AGAINST:
            if row.get("noise") == noise:
                same = [r for r in rows if (r["study"], r["loss"]) == (row["study"], row["loss"])]
                counterpart = at(same, row["dataset"], other, row["epsilon"])
                if counterpart is not None:
                    found.append((kind, row, counterpart))
    return found


def apart(row: dict[str, Any], other: dict[str, Any]) -> int:
    """-1 or 1 where a row's accuracy lies below or above another's by more than both 99% intervals, else 0."""
    gap = row["accuracy"] - other["accuracy"]
    return int(math.copysign(abs(gap) > interval(row) + interval(other), gap))


def comparison() -> str:
    """In how many cells certified radial noise is below or above, and which are below."""
    lines = []
    for kind, what in (
        ("noise", "the best radial law against the analytic Gaussian, same objective"),
        ("accounting", "exact accounting with the best radial law against Algorithm 3 with the analytic Gaussian"),
    ):
        mine = [(row, apart(row, other)) for this, row, other in comparisons() if this == kind]
        below = [f"{r['loss']}, {r['dataset']}, epsilon {r['epsilon']:g}" for r, sign in mine if sign < 0]
        above = sum(sign > 0 for _, sign in mine)
        lines.append([what, str(len(mine)), str(above), str(len(below)), "; ".join(below)])
    return table(["beyond both 99% intervals", "cells", "above", "below", "which are below"], lines)


def parts() -> dict[str, str]:
    """Every table of the page."""
    return {
        "output logistic": output_table("logistic"),
        "output huber": output_table("huber"),
        "objective logistic": objective_table("logistic"),
        "objective huber": objective_table("huber"),
        "rates": rates_table(),
        "errors": errors_table(),
        "comparison": comparison(),
    }


def filled(text: str) -> str:
    """The text of the page with the stored rows between its marks."""
    for name, part in parts().items():
        begin, end = BEGIN.format(name), END.format(name)
        head, _, rest = text.partition(begin)
        if not rest:
            raise ValueError(f"{PAGE.name} lacks the mark {begin}")
        text = f"{head}{begin}\n\n{part}\n\n{end}{rest.partition(end)[2]}"
    return text


def tables() -> dict[str, tuple[str, Any]]:
    """(title, table) of every item of `shapedp reproduce` that is a study, in full, from the stored rows."""
    import erm_objective
    import erm_output
    import items

    found = {}
    for study, module in (("output", erm_output), ("objective", erm_objective)):
        for loss in ("logistic", "huber"):
            mine = [{**r} for r in stored() if (r.pop("study"), r["loss"]) == (study, loss)]
            mine.sort(key=lambda r: ORDER.index(r["dataset"]))
            rows = [erm_output.Row(**r) for r in mine if not r.get("absent")]
            absent = [r["dataset"] for r in mine if r.get("absent")]
            (title,) = [item.title for item in items.ITEMS if item.name == f"{study}-{loss}"]
            found[f"{study}-{loss}"] = (title, items.table_of(rows, absent, module.LABELS))
    return found


def write_results() -> None:
    """The four items as `shapedp reproduce --full` would store them."""
    from shapedp.papers.register.harness import Item, reproduce

    for name, (title, made) in tables().items():
        with TemporaryDirectory() as folder:
            item = Item(name, title, lambda full, progress, made=made: made)
            _, paths = reproduce(f"erm/{name}", item, Path(folder), full=True, progress=lambda *_: None)
            save(KEPT / paths[0].name, paths[0].read_text(encoding="utf-8"))


def main() -> None:
    """Run or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write", help="the tables of the page and experiments/results, from the stored rows")
    one = commands.add_parser("run", help="rows of a study, stored after every split")
    one.add_argument("study", choices=("output", "objective"))
    one.add_argument("losses", help="logistic, huber, or both with a comma between")
    one.add_argument("sets", nargs="+", choices=ORDER)
    one.add_argument("--repeats", type=int, default=10, help="random 80/20 splits")
    given = parser.parse_args()
    if given.command == "write":
        save(PAGE, filled(PAGE.read_text(encoding="utf-8")))
        write_results()
        return
    for name in given.sets:
        run(given.study, tuple(given.losses.split(",")), name, given.repeats)


if __name__ == "__main__":
    main()
