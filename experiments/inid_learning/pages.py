"""Write the tables of docs/coordinate-descent.md and docs/pca.md from the stored results.

python experiments/inid_learning/pages.py
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import components
import descent

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
STORED = [descent.RESULTS, components.RESULTS, HERE / "trainer_audits.json"]


def rows_of(header: list[str], rows: list[list[Any]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def percent(one: dict[str, Any]) -> str:
    """Mean and standard deviation."""
    return f"{one['mean']:.2f} ± {one['deviation']:.2f}"


def figures(results: dict[str, Any]) -> str:
    """Both data sets by passes, with the published errors after 50."""
    rows = []
    for name, found in results.items():
        for arm, part in found["figure"].items():
            rows.append([name, arm, *(percent(one) for one in part), descent.PUBLISHED[name][arm][0]])
    passes = [f"{count} passes" for count in descent.PASSES]
    return rows_of(["data", "method", *passes, "published, 50"], rows)


def readings(results: dict[str, Any]) -> str:
    """After 50 passes, by reading, with the published errors."""
    rows = []
    for reading in descent.READINGS:
        rows.append([reading, *(percent(found["readings"][reading]) for found in results.values())])
    for arm in descent.ARMS:
        rows.append([f"published, {arm}", *(descent.PUBLISHED[name][arm][0] for name in results)])
    return rows_of(["reading", *results], rows)


def budgets(results: dict[str, Any]) -> str:
    """After 50 passes, by epsilon."""
    rows = []
    for name, found in results.items():
        for arm, part in found["budgets"].items():
            rows.append([name, arm, percent(found["figure"][arm][-1]), *(percent(one) for one in part)])
    return rows_of(["data", "method", "epsilon 1", *(f"epsilon {e:g}" for e in descent.EPSILONS)], rows)


def estimated(results: dict[str, Any]) -> str:
    """Table V, computed and published."""
    rows = []
    for name, found in results.items():
        for arm, part in found["table"].items():
            rows.append([name, arm, *(percent(one) for one in part)])
            rows.append(["", "published", *descent.PUBLISHED[name][arm]])
    shares = [f"{100 * share:g}%" for share in descent.FRACTIONS]
    return rows_of(["data", "method", "known", *shares], rows)


def recovery(results: dict[str, Any]) -> str:
    """Table III, computed and published."""
    rows = []
    for row in results["table"]:
        printed = components.PUBLISHED.get((row["noise"], row["release"]), ("", "", ""))
        means = [f"{mean:.4f} ± {error:.4f}" for mean, error in zip(row["mean"], row["error"], strict=True)]
        rows.append([row["noise"], row["release"], *means, *printed])
    epsilons = [f"epsilon {e:g}" for e in components.EPSILONS]
    return rows_of(["noise", "release", *epsilons, *(f"published, {e:g}" for e in components.EPSILONS)], rows)


def audits(rows: list[dict[str, Any]]) -> str:
    """The audits of the trainers."""
    cells = [
        [row["trainer"], f"{row['noise']:g}", row["fits"], f"{row['epsilon_lower']:.3f}", f"{row['delta_lower']:.4f}",
         row["verdict"]]
        for row in rows
    ]  # fmt: skip
    return rows_of(["trainer", "noise", "fits", "epsilon at least", "delta at least", "verdict"], cells)


def filled(text: str, parts: dict[str, str]) -> str:
    """A page's text with each part between its marks."""
    for name, part in parts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"the page has no place for {name}")
        text = pattern.sub(lambda found, part=part: found[1] + part + "\n" + found[2], text)
    return text


def fill(page: Path, parts: dict[str, str]) -> None:
    """Put each part between its marks."""
    temporary = page.with_suffix(".part")
    temporary.write_text(filled(page.read_text(encoding="utf-8"), parts), encoding="utf-8")
    temporary.rename(page)


def pages() -> dict[str, dict[str, str]]:
    """Every table of both pages, from the stored results."""
    descents, subspaces, found = (json.loads(path.read_text(encoding="utf-8")) for path in STORED)
    split = {
        name: [row for row in found if row["trainer"].startswith("PCA") == (name == "pca")] for name in ("pca", "cd")
    }
    return {
        "coordinate-descent.md": {
            "figures": figures(descents),
            "readings": readings(descents),
            "budgets": budgets(descents),
            "estimated": estimated(descents),
            "audits": audits(split["cd"]),
        },
        "pca.md": {"recovery": recovery(subspaces), "audits": audits(split["pca"])},
    }


def main() -> None:
    """Fill both pages."""
    for name, parts in pages().items():
        fill(DOCS / name, parts)


if __name__ == "__main__":
    main()
