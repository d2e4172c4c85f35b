"""What the documentation builds by itself: page order, packages of the reference, tables of stored results."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIRST = (
    "index.md",
    "tutorials/1-choose-a-mechanism.md",
    "tutorials/2-release-a-table.md",
    "tutorials/3-regression-on-a-large-file.md",
    "tutorials/4-train-a-network.md",
    "tutorials/5-audit-your-mechanism.md",
    "tutorials/6-keep-a-budget.md",
    "notation.md",
    "families.md",
    "audit.md",
    "report.md",
    "regression.md",
    "classification.md",
    "coordinate-descent.md",
    "pca.md",
    "choosing-parameters.md",
    "larger-than-memory.md",
    "deep-learning.md",
    "training-studies.md",
    "membership.md",
    "geodp.md",
    "write-your-own-checker.md",
    "threat-model.md",
    "special-functions.md",
    "known-issues.md",
    "claims.md",
    "reproductions.md",
    "benchmarks.md",
    "comparison.md",
    "migrating.md",
    "adding-a-mechanism.md",
    "api.md",
    "decisions.md",
)
PACKAGES = (
    "sensitivity",
    "noise",
    "sampling",
    "privacy",
    "mechanisms",
    "accounting",
    "audit",
    "learn",
    "torch",
    "papers.recipes",
    "papers.register",
    "papers.datasets",
    "report",
    "numerics",
)
MOST_ROWS = 40
NO_BENCHMARKS = "No results are stored yet; `make bench` writes them."


def on_config(config: Any) -> Any:
    """Order the pages: those named in FIRST, then the rest by name."""
    docs = Path(config.docs_dir)
    found = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    config.nav = [name for name in FIRST if name in found] + sorted(found.difference(FIRST))
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the places that are marked in the pages."""
    if page.file.src_uri == "benchmarks.md":
        return markdown.replace("<!-- benchmark tables -->", benchmark_tables(ROOT / "benchmarks" / "results"))
    if page.file.src_uri == "reproductions.md":
        return markdown.replace("<!-- reproductions -->", reproductions(ROOT / "experiments"))
    if page.file.src_uri == "regression.md":
        folder = ROOT / "experiments" / "gaussian_mixing" / "results"
        return markdown.replace("<!-- regression table -->", regression_table(folder / "regression.json"))
    if page.file.src_uri == "api.md":
        return markdown.replace("<!-- packages -->", package_sections(ROOT / "src" / "shapedp"))
    return markdown


def package_sections(source: Path) -> str:
    """One section for each package that has a docstring or exports."""
    sections = []
    for name in PACKAGES:
        init = source.joinpath(*name.split("."), "__init__.py")
        if init.exists() and ast.parse(init.read_text(encoding="utf-8")).body:
            sections.append(f"## shapedp.{name}\n\n::: shapedp.{name}\n")
    return "\n".join(sections)


def reproductions(folder: Path) -> str:
    """Every figure and table of the papers with its state, then the stored tables."""
    from shapedp.papers.register.harness import published

    lines: list[str] = []
    entries = published(folder)
    for paper in dict.fromkeys(entry.paper for entry in entries):
        lines += [f"## {paper}", "", "| published | title | state | why |", "|---|---|---|---|"]
        chosen = [entry for entry in entries if entry.paper == paper]
        lines += [f"| {e.name} | {cell(e.title)} | {e.state} | {cell(e.why)} |" for e in chosen]
        lines.append("")
        for item in dict.fromkeys(entry.item for entry in chosen if entry.item):
            stored = folder / "results" / (item.replace("/", "-") + ".json")
            if stored.is_file():
                lines += reproduced_table(json.loads(stored.read_text(encoding="utf-8")))
    return "\n".join(lines)


def reproduced_table(data: dict[str, Any]) -> list[str]:
    size = "published size" if data["full"] else "quick run"
    lines = [f"### {data['item']}", "", f"{data['title']} ({size}; `shapedp reproduce {data['item']}`).", ""]
    lines += ["| " + " | ".join(cell(str(h)) for h in data["headers"]) + " |", "|---" * len(data["headers"]) + "|"]
    for row in data["rows"][:MOST_ROWS]:
        lines.append("| " + " | ".join(cell(f"{v:.4g}" if isinstance(v, float) else str(v)) for v in row) + " |")
    left = len(data["rows"]) - MOST_ROWS
    return [*lines, "", *([f"{left} more rows in the JSON.", ""] if left > 0 else []), data["note"], ""]


def regression_table(stored: Path) -> str:
    """Median test errors of every solver, one line per set and epsilon, the least of each line in bold."""
    data = json.loads(stored.read_text(encoding="utf-8"))
    names = list(data["lines"][0]["solvers"])
    lines = [
        "| scaling | set | n x d | epsilon | not private | " + " | ".join(names) + " |",
        "|---" * (5 + len(names)) + "|",
    ]
    for one in data["lines"]:
        medians = {name: found["median"] for name, found in one["solvers"].items()}
        least = min(medians.values())
        shown = [f"**{value:.3g}**" if value == least else f"{value:.3g}" for value in medians.values()]
        spread = one["solvers"]["auto"]
        shown[0] += f" ({spread['low']:.3g}, {spread['high']:.3g})"
        size = f"{one['n']} x {one['d']}"
        head = [one["scaling"], one["set"], size, f"{one['epsilon']:g}", f"{one['not private']:.3g}"]
        lines.append("| " + " | ".join([*head, *shown]) + " |")
    best = sum(min(one["solvers"], key=lambda name: one["solvers"][name]["median"]) == "auto" for one in data["lines"])
    return "\n".join([*lines, "", f"`auto` has the least median on {best} of {len(data['lines'])} lines."])


def benchmark_tables(folder: Path) -> str:
    """The stored results: one section each, ratios first."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return "\n".join(benchmark_section(result) for result in results) or NO_BENCHMARKS


def benchmark_section(result: dict[str, Any]) -> str:
    lines = [f"## {result['name']}", "", result["what"], ""]
    entries = result["ratios"] + result["figures"]
    if entries:
        lines += ["| ratio or figure | measured | required |", "|---|---:|---|"]
        lines += [f"| {cell(e['what'])} | {e['value']:,.4g} | {required(e)} |" for e in entries]
        lines.append("")
    if result["timings"]:
        lines += ["| case | median, s | best, s |", "|---|---:|---:|"]
        for name, timing in result["timings"].items():
            lines.append(f"| {cell(name)} | {timing['median_s']:.3g} | {timing['best_s']:.3g} |")
        lines.append("")
    lines += [f"- {note}" for note in result["notes"]]
    machine = result["machine"]
    peers = ", ".join(f"{name} {version}" for name, version in result["peers"].items())
    lines += ["", f"Python {machine['python']}, {machine['cpus']} cores; {peers or 'no peers'}.", ""]
    return "\n".join(lines)


def required(entry: dict[str, Any]) -> str:
    bounds = [f"{s} {entry[k]:,g}" for k, s in (("at_least", ">="), ("at_most", "<=")) if k in entry]
    if not bounds:
        return ""
    return f"{' and '.join(bounds)}: {'met' if entry['met'] else 'NOT MET'}"


def cell(text: str) -> str:
    return text.replace("|", "\\|")
