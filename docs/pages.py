"""Parts of the pages that are made from stored results and from the code.

    python docs/pages.py            # write them into the pages
    python docs/pages.py --check    # exit code 1 if a page is out of date

A part stands between `<!-- name -->` and `<!-- end of name -->`. Benchmarks also get a picture each.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PACKAGES = (
    "sensitivity",
    "noise",
    "sampling",
    "privacy",
    "mechanisms",
    "accounting",
    "ledger",
    "audit",
    "workloads",
    "private",
    "learn",
    "torch",
    "papers.recipes",
    "papers.register",
    "papers.datasets",
    "report",
    "boundary",
    "numerics",
)
MOST_ROWS = 40
NO_BENCHMARKS = "No results are stored yet; `make bench` writes them."


def constants() -> dict[str, str]:
    """What the page says of each constant, by its last name: the hand-written rows of the reference."""
    rows = re.findall(r"^\| `shapedp\.([\w.]+)` \| (.*) \|$", (DOCS / "api.md").read_text("utf-8"), re.MULTILINE)
    return {name.rpartition(".")[2]: text for name, text in rows}


def packages() -> str:
    """One section for each package: what it is for, and a line for every public name."""
    sections, known = [], constants()
    for name in PACKAGES:
        module = importlib.import_module(f"shapedp.{name}")
        lines = [f"## shapedp.{name}", "", first_line(module), ""]
        names = sorted(getattr(module, "__all__", ()), key=str.lower)
        if names:
            lines += ["| name | what it is |", "|---|---|"]
            lines += [f"| `{one}` | {known.get(one) or cell(first_line(getattr(module, one)))} |" for one in names]
            lines.append("")
        sections.append("\n".join(lines))
    return "\n".join(sections)


def first_line(thing: Any) -> str:
    """The first sentence of a docstring; for a constant, its type."""
    own = inspect.ismodule(thing) or inspect.isclass(thing) or callable(thing)
    text = inspect.getdoc(thing) if own else None
    if text is None or (inspect.isclass(thing) and "__doc__" not in vars(thing)):
        return f"a constant of type {type(thing).__name__}" if not own else ""
    return text.split("\n\n")[0].replace("\n", " ").strip()


def reproductions(folder: Path = ROOT / "experiments") -> str:
    """Every figure and table of the papers with its state, then the stored tables."""
    from shapedp.papers.register.harness import published

    lines: list[str] = []
    entries = published(folder)
    for paper in dict.fromkeys(entry.paper for entry in entries):
        lines += [f"## {paper}", "", "| published | title | state | why | the paper's conclusion |", "|---" * 5 + "|"]
        chosen = [entry for entry in entries if entry.paper == paper]
        lines += [
            f"| {e.name} | {cell(e.title)} | {e.state} | {cell(few(e.why))} | {cell(e.conclusion)} |" for e in chosen
        ]
        lines.append("")
        for item in dict.fromkeys(entry.item for entry in chosen if entry.item):
            stored = folder / "results" / (item.replace("/", "-") + ".json")
            if stored.is_file():
                lines += reproduced_table(json.loads(stored.read_text(encoding="utf-8")))
    return "\n".join(lines)


def few(why: str, most: int = 6) -> str:
    """The first differences; all of them are in the JSON of the list."""
    parts = why.split("; ")
    return "; ".join([*parts[:most], *([f"{len(parts) - most} more"] if len(parts) > most else [])])


def reproduced_table(data: dict[str, Any]) -> list[str]:
    size = "published size" if data["full"] else "quick run"
    lines = [f"### {data['item']}", "", f"{data['title']} ({size}; `shapedp reproduce {data['item']}`).", ""]
    lines += ["| " + " | ".join(cell(str(h)) for h in data["headers"]) + " |", "|---" * len(data["headers"]) + "|"]
    for row in data["rows"][:MOST_ROWS]:
        lines.append("| " + " | ".join(cell(f"{v:.4g}" if isinstance(v, float) else str(v)) for v in row) + " |")
    left = len(data["rows"]) - MOST_ROWS
    return [*lines, "", *([f"{left} more rows in the JSON.", ""] if left > 0 else []), data["note"], ""]


def regression_table(
    stored: Path = ROOT / "experiments" / "gaussian_mixing" / "results" / "regression.json",
) -> str:
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
        spread = one["solvers"]["suffstats"]
        shown[0] += f" ({spread['low']:.3g}, {spread['high']:.3g})"
        size = f"{one['n']} x {one['d']}"
        head = [one["scaling"], one["set"], size, f"{one['epsilon']:g}", f"{one['not private']:.3g}"]
        lines.append("| " + " | ".join([*head, *shown]) + " |")
    best = sum(
        min(one["solvers"], key=lambda name: one["solvers"][name]["median"]) == "suffstats" for one in data["lines"]
    )
    return "\n".join([*lines, "", f"`suffstats` has the least median on {best} of {len(data['lines'])} lines."])


def regression_solvers(folder: Path = ROOT / "experiments" / "regression" / "results") -> str:
    """Median test errors of every solver on generated sets, real ones and those of iterative Hessian mixing."""
    parts = []
    for name, what in (
        ("generated", "Generated sets"),
        ("real", "Real sets"),
        ("authors", "Sets of iterative Hessian mixing"),
    ):
        data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        told, names = data["verdicts"], list(data["lines"][0]["solvers"])
        wins = ", ".join(f"`{solver}` {n}" for solver, n in told["wins"].items() if n)
        lost = "; ".join(told["lost"]) or "none"
        parts += [
            f"**{what}** ({told['cells']} cells, {data['runs']} runs). Least median: {wins}. `auto` is within 2 per"
            f"cent of the best of ours in {told['auto near the best']}. Cells where ours lose to a published solver or "
            f"counterpart: {lost}.",
            "",
            "<details markdown><summary>The medians</summary>",
            "",
            "| set | n x d | epsilon | not private | " + " | ".join(names) + " |",
            "|---" * (4 + len(names)) + "|",
        ]
        parts += [_solver_line(one) for one in data["lines"]] + ["", "</details>", ""]
    return "\n".join(parts)


def _solver_line(one: dict[str, Any]) -> str:
    by = {name: found[0] for name, found in one["solvers"].items() if not isinstance(found, str)}
    least = min(by.values())
    shown = ["refused" if name not in by else f"{by[name]:.3g}" for name in one["solvers"]]
    shown = [f"**{text}**" if by.get(name) == least else text for name, text in zip(one["solvers"], shown, strict=True)]
    _, low, high = one["solvers"]["refined"]
    shown[0] += f" ({low:.3g}, {high:.3g})"
    head = [one["set"], f"{one['n']} x {one['d']}", f"{one['epsilon']:g}", f"{one['not private']:.3g}"]
    return "| " + " | ".join([*head, *shown]) + " |"


def benchmark_tables(folder: Path = ROOT / "benchmarks" / "results") -> str:
    """The stored results: one section each, a picture of the ratios first, the tables folded below."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return "\n".join(benchmark_section(result) for result in results) or NO_BENCHMARKS


def benchmark_section(result: dict[str, Any]) -> str:
    lines = [f"## {result['name']}", "", result["what"], ""]
    if result["ratios"]:
        lines += [f"![ratios of {result['name']}](benchmarks/{result['name']}.svg)", ""]
    for at, curve in enumerate(result.get("curves", ())):
        lines += [f"![{curve['name']}](benchmarks/{result['name']}-{at}.svg)", ""]
    lines += ["<details markdown><summary>The numbers</summary>", ""]
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
    lines += ["", f"Python {machine['python']}, {machine['cpus']} cores; {peers or 'no peers'}.", "", "</details>", ""]
    return "\n".join(lines)


def required(entry: dict[str, Any]) -> str:
    bounds = [f"{s} {entry[k]:,g}" for k, s in (("at_least", ">="), ("at_most", "<=")) if k in entry]
    if not bounds:
        return ""
    return f"{' and '.join(bounds)}: {'met' if entry['met'] else 'NOT MET'}"


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def bars(result: dict[str, Any]) -> str:
    """The ratios of a benchmark as bars on a logarithmic scale, 1 in the middle or at the left."""
    ratios = result["ratios"]
    logs = [math.log10(max(entry["value"], 1e-9)) for entry in ratios]
    low, high = min(0.0, *logs), max(0.0, *logs)
    unit = 300 / max(high - low, 0.1)
    zero, height = 330 - low * unit, 26 * len(ratios) + 34
    rows = []
    for at, (entry, log) in enumerate(zip(ratios, logs, strict=True)):
        y = 26 * at + 8
        start, width = zero + min(log, 0.0) * unit, max(abs(log) * unit, 1.0)
        rows.append(
            f'<text x="310" y="{y + 14}" text-anchor="end">{escape(entry["what"])}</text>'
            f'<rect x="{start:.1f}" y="{y}" width="{width:.1f}" height="18" fill="#00897b"/>'
            f'<text x="{max(start + width, zero) + 6:.1f}" y="{y + 14}">{entry["value"]:,.3g}</text>'
        )
    axis = (
        f'<line x1="{zero:.1f}" y1="2" x2="{zero:.1f}" y2="{height - 22}" stroke="#888"/>'
        f'<text x="{zero:.1f}" y="{height - 8}" text-anchor="middle">1</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" width="720" font-family="sans-serif" '
        f'font-size="13" fill="#777">{"".join(rows)}{axis}</svg>\n'
    )


def plot(curve: dict[str, Any]) -> str:
    """The points of a curve, time and memory beyond the input, on logarithmic axes; lines join what was measured."""
    points = curve["points"]
    sizes = [math.log10(point[0]) for point in points]
    times = [math.log10(max(point[1], 1e-7)) for point in points]
    memory = [math.log10(max(point[2], 1e-3)) for point in points]
    left, right = min(sizes), max(*sizes, min(sizes) + 1)
    slope = "" if curve["exponent"] is None else f", exponent {curve['exponent']:.2f}"
    parts = [f'<text x="20" y="18">{escape(curve["name"])}{slope}</text>']
    for values, label, colour, top in ((times, "s", "#00897b", 30), (memory, "MB", "#5e35b1", 170)):
        low, high = math.floor(min(values)), math.ceil(max(*values, math.floor(min(values)) + 1e-9))
        high = max(high, low + 1)
        places = [
            (70 + 560 * (x - left) / (right - left), top + 100 - 90 * (value - low) / (high - low))
            for x, value in zip(sizes, values, strict=True)
        ]
        parts.append(f'<line x1="70" y1="{top + 100}" x2="640" y2="{top + 100}" stroke="#888"/>')
        parts += [
            f'<text x="62" y="{top + 104 - 90 * share}" text-anchor="end">1e{power} {label}</text>'
            for power, share in ((low, 0), (high, 1))
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    parts += [
        f'<text x="{70 + 560 * (x - left) / (right - left):.1f}" y="288" text-anchor="middle">1e{round(x)}</text>'
        for x in sizes
    ]
    parts.append(f'<text x="640" y="304" text-anchor="end">{escape(curve["axis"])}</text>')
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 312" width="720" font-family="sans-serif" '
        f'font-size="13" fill="#777">{"".join(parts)}</svg>\n'
    )


STUDY = ROOT / "experiments" / "results" / "noise-over-time-training.json"
TASKS, EPSILONS, SEEDS = {"mnist": "MNIST", "cifar10": "CIFAR-10", "imdb": "IMDb"}, (0.5, 1.0, 2.0, 8.0), 5


def noise_over_time(path: Path = STUDY) -> str:
    """Accuracy of DP-SGD and of the chosen noise at the same seeds, and which runs are not stored."""
    runs = {
        (one["task"], one["epsilon"], one["seed"], one["noise"]): one for one in json.loads(path.read_text("utf-8"))
    }
    head = "| task | epsilon | seeds | DP-SGD | steps between, `auto` | `auto` | gain, seed by seed |"
    lines, missing = [head, "|---|---|---|---|---|---|---|"], []
    for task, title in TASKS.items():
        for epsilon in EPSILONS:
            seeds = [k for k in range(SEEDS) if all((task, epsilon, k, how) in runs for how in ("none", "auto"))]
            if len(seeds) < SEEDS:
                missing.append(f"{title} at {epsilon:g}: {SEEDS - len(seeds)}")
            if not seeds:
                continue
            plain, chosen = ([runs[task, epsilon, k, how] for k in seeds] for how in ("none", "auto"))
            before, after = ([100 * one["accuracy"] for one in each] for each in (plain, chosen))
            gain = [b - a for a, b in zip(before, after, strict=True)]
            groups = ", ".join(map(str, sorted({one["groups"] for one in chosen})))
            cells = (title, f"{epsilon:g}", str(len(seeds)), _mean(before), groups, _mean(after), _mean(gain))
            lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "Accuracy on test data in percent, with 95% intervals of the mean by Student's t. Seeds not run: "]
    lines[-1] += ("; ".join(missing) if missing else "none") + "."
    return "\n".join(lines)


def persons(path: Path = ROOT / "experiments" / "results" / "persons.json") -> str:
    """What canary persons show of a step, and the training on the same reviews."""
    stored = json.loads(path.read_text("utf-8"))
    lines = ["| noise drawn | runs | epsilon at least (99%) | certified | violation |", "|---|---|---|---|---|"]
    for one in stored["audits"]:
        drawn = "half of what is accounted for" if one["half the noise"] else "what is accounted for"
        found = "yes" if one["violation"] else "no"
        lines.append(f"| {drawn} | {one['runs']} | {one['bound']:.2f} | {one['certified']:.2f} | {found} |")
    made = stored["training"]
    said = f"A training of {made['persons']:,} persons with {made['texts']} reviews each, at (8, 1e-5) per person, is "
    said += f"{made['verdict']}; its model answers {100 * made['accuracy']:.1f}% of other reviews rightly."
    return "\n".join([*lines, "", said])


def _mean(values: list[float]) -> str:
    n = len(values)
    if n == 1:
        return f"{values[0]:.1f}"
    middle = sum(values) / n
    spread = math.sqrt(sum((one - middle) ** 2 for one in values) / (n - 1) / n)
    return f"{middle:.2f} +- {stats.t.ppf(0.975, n - 1) * spread:.2f}"


PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "packages": ("api.md", packages),
    "benchmark tables": ("benchmarks.md", benchmark_tables),
    "noise over time": ("deep-learning.md", noise_over_time),
    "persons": ("membership.md", persons),
    "reproductions": ("reproductions.md", reproductions),
    "regression table": ("regression.md", regression_table),
    "regression solvers": ("regression.md", regression_solvers),
}


def filled(text: str, name: str, part: str) -> str:
    """The page with a part renewed."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if text.count(start) != 1 or text.count(end) != 1:
        raise ValueError(f"a page must hold {start} and {end} once")
    before, _, rest = text.partition(start)
    return f"{before}{start}\n\n{part.strip()}\n\n{end}{rest.partition(end)[2]}"


def rendered() -> dict[Path, str]:
    """Every file that is made here, with its text."""
    files = {
        DOCS / page: filled((DOCS / page).read_text("utf-8"), name, make()) for name, (page, make) in PARTS.items()
    }
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        if result["ratios"]:
            files[DOCS / "benchmarks" / f"{result['name']}.svg"] = bars(result)
        for at, curve in enumerate(result.get("curves", ())):
            files[DOCS / "benchmarks" / f"{result['name']}-{at}.svg"] = plot(curve)
    return files


def main() -> int:
    """Write the parts, or say which pages are out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    old = [path for path, text in rendered().items() if not path.exists() or path.read_text("utf-8") != text]
    if options.check:
        print("\n".join(f"{path.relative_to(ROOT)} is out of date: run python docs/pages.py" for path in old))
        return 1 if old else 0
    for path, text in rendered().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
