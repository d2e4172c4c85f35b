"""The reproduction harness: one item per published table or figure, found under experiments/<paper>/items.py."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Table:
    """What an item found: rows under headers, and curves (name, x, y) for its picture."""

    headers: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    curves: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...] = ()
    axes: tuple[str, str] = ("", "")
    log: tuple[bool, bool] = (True, True)
    note: str = ""


@dataclass(frozen=True)
class Item:
    """A published table or figure: a title, and the function that computes it (quickly, or in full)."""

    name: str
    title: str
    run: Callable[[bool, Progress], Table] = field(repr=False)


def experiments_folder(start: Path | None = None) -> Path:
    """The nearest folder named experiments at or above the working directory, or beside the source tree."""
    here = (start or Path.cwd()).resolve()
    for base in (here, *here.parents, *Path(__file__).resolve().parents):
        if (base / "experiments").is_dir():
            return base / "experiments"
    raise ValueError("no folder named experiments was found: run inside a checkout of the repository")


def items(folder: Path) -> Iterator[tuple[str, Item]]:
    """Every item as (paper/item, item)."""
    for path in sorted(folder.glob("*/items.py")):
        paper = path.parent.name.replace("_", "-")
        for item in _module(path).ITEMS:
            yield f"{paper}/{item.name}", item


def find_item(name: str, folder: Path) -> Item:
    """The item of that name."""
    known = dict(items(folder))
    if name not in known:
        raise ValueError(f"no item {name!r}; there are {', '.join(known) or 'none'}")
    return known[name]


def reproduce(name: str, item: Item, out: Path, *, full: bool, progress: Progress) -> tuple[Table, list[Path]]:
    """Run an item; write its JSON, and its picture where matplotlib is installed."""
    table = item.run(full, progress)
    out.mkdir(parents=True, exist_ok=True)
    stem = out / name.replace("/", "-")
    data = {
        "schema": 1,
        "item": name,
        "title": item.title,
        "full": full,
        "headers": table.headers,
        "rows": table.rows,
        "curves": [{"name": n, "x": x, "y": y} for n, x, y in table.curves],
        "note": table.note,
    }
    written = [stem.with_suffix(".json")]
    written[0].write_text(json.dumps(data, indent=1) + "\n")
    picture = stem.with_suffix(".png")
    if table.curves and _draw(table, item.title, picture):
        written.append(picture)
    return table, written


def _module(path: Path) -> Any:
    name = f"shapedp_experiments_{path.parent.name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be read")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _draw(table: Table, title: str, path: Path) -> bool:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.subplots()
    for name, x, y in table.curves:
        axes.plot(x, y, marker="o", markersize=3, label=name)
    axes.set_xlabel(table.axes[0])
    axes.set_ylabel(table.axes[1])
    if table.log[0]:
        axes.set_xscale("log")
    if table.log[1]:
        axes.set_yscale("log")
    axes.set_title(title)
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    return True
