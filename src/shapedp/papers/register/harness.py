"""The reproduction harness: one item per published table or figure, found under experiments/<paper>/items.py."""

from __future__ import annotations

import importlib.util
import json
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shapedp.boundary import documents
from shapedp.boundary.files import atomic, write_bytes
from shapedp.boundary.values import boolean
from shapedp.numerics.checks import one_of

Progress = Callable[[int, int, str], None]
REPRODUCED, DIFFERS, COMPUTED, ABSENT = "reproduced", "differs", "computed", "data not at hand"
NOTHING = "nothing to compute"  # a drawing, or a list
NOT_RUN = "not run"
LIST, CELLS = "published.toml", "printed.toml"
STATES = (REPRODUCED, DIFFERS, COMPUTED, ABSENT, NOT_RUN)  # computed: the paper prints no number to compare with


@dataclass(frozen=True)
class Table:
    """What an item found.

    Parameters
    ----------
    headers, rows: a table.
    curves: lines (name, x, y) of its picture.
    axes, log: the names of the picture's axes, and whether each is logarithmic.
    note: a remark to print below the table.
    state: how it compares with the numbers that the paper prints, one of `STATES`.
    why: the reason why it differs; needed where it does.

    >>> Table(("epsilon", "error"), ((1.0, 0.5),)).state
    'computed'
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    curves: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...] = ()
    axes: tuple[str, str] = ("", "")
    log: tuple[bool, bool] = (True, True)
    note: str = ""
    state: str = COMPUTED
    why: str = ""

    def __post_init__(self) -> None:
        if one_of("state", self.state, STATES) == DIFFERS and not self.why:
            raise ValueError("why must give the reason why it differs from the numbers that the paper prints")


def compared(pairs: Iterable[tuple[str, float, float]], within: float) -> dict[str, str]:
    """state and why of a table, from (what, computed, printed): reproduced if all agree within a relative error."""
    apart = [
        f"{what}: computed {computed:.4g}, printed {printed:.4g}"
        for what, computed, printed in pairs
        if not abs(computed - printed) <= within * abs(printed)
    ]
    return {"state": DIFFERS if apart else REPRODUCED, "why": "; ".join(apart)}


@dataclass(frozen=True)
class Item:
    """A published table or figure.

    Parameters
    ----------
    name, title: what it is called.
    run: the function that computes it, given whether in full and a function to report progress to.

    >>> Item("figure-1", "Error over epsilon", lambda full, progress: Table(("epsilon",), ((1.0,),))).name
    'figure-1'
    """

    name: str
    title: str
    run: Callable[[bool, Progress], Table] = field(repr=False)


def experiments_folder(start: Path | None = None) -> Path:
    """The nearest folder experiments that holds published.toml, at or above the working directory or the sources."""
    here = (start or Path.cwd()).resolve()
    for base in (here, *here.parents, *Path(__file__).resolve().parents):
        if (base / "experiments" / LIST).is_file():
            return base / "experiments"
    raise ValueError(
        f"no folder experiments with {LIST} was found: the published tables and figures are computed inside a checkout "
        "of the shapedp repository; run there, or name its folder with --experiments"
    )


def items(folder: Path) -> Iterator[tuple[str, Item]]:
    """Every item as (paper/item, item)."""
    for path in sorted(folder.glob("*/items.py")):
        paper = path.parent.name.replace("_", "-")
        for item in _module(path).ITEMS:
            yield f"{paper}/{item.name}", item


def find_item(name: str, folder: Path) -> Item:
    """One item by its name.

    Parameters
    ----------
    name: "paper/item", as `shapedp reproduce --list` prints it.
    folder: the folder experiments, see `experiments_folder`.

    Returns
    -------
    The item. Raises ValueError with the known names if there is none.

    >>> find_item("nowhere/figure-1", Path("no-such-folder"))
    Traceback (most recent call last):
    ValueError: no item 'nowhere/figure-1'; there are none
    """
    known = dict(items(folder))
    if name not in known:
        raise ValueError(f"no item {name!r}; there are {', '.join(known) or 'none'}")
    return known[name]


def reproduce(name: str, item: Item, out: Path, *, full: bool, progress: Progress) -> tuple[Table, list[Path]]:
    """Run an item; write its table as JSON, and its picture where matplotlib is installed.

    Parameters
    ----------
    name, item: the item and its full name.
    out: the folder to write to; it is made if it does not exist.
    full: whether to compute at the published size instead of quickly.
    progress: is called with (done, of, what).

    Returns
    -------
    What was found, and the files written.

    >>> import tempfile
    >>> item = Item("figure-1", "Error", lambda full, progress: Table(("epsilon",), ((1.0,),)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table, files = reproduce("p/figure-1", item, Path(folder), full=False, progress=print)
    >>> [path.name for path in files]
    ['p-figure-1.json']
    """
    full = boolean("full", full)
    table = item.run(full, progress)
    out.mkdir(parents=True, exist_ok=True)
    stem = out / name.replace("/", "-")
    data: dict[str, Any] = {"schema": 1, "item": name, "title": item.title, "full": full}
    data |= {"headers": table.headers, "rows": table.rows}
    data["curves"] = [{"name": n, "x": x, "y": y} for n, x, y in table.curves]
    data |= {"note": table.note, "state": table.state, "why": table.why}
    written = [stem.with_suffix(".json")]
    write_bytes(written[0], (json.dumps(data, indent=1) + "\n").encode())
    picture = stem.with_suffix(".png")
    if table.curves and _draw(table, item.title, picture):
        written.append(picture)
    return table, written


@dataclass(frozen=True)
class Published:
    """A figure or table of a paper, the item that computes it, how it stands, and what becomes of its conclusion."""

    paper: str
    name: str
    title: str
    item: str
    state: str
    why: str
    conclusion: str = ""


def published(folder: Path) -> list[Published]:
    """Every figure and table of the papers, from published.toml, with the state of the stored results.

    An item without a stored result is "not run"; what no item computes states its own reason in the list. Where the
    cells that the paper prints are in printed.toml, they decide.
    """
    entries, cells = (tomllib.loads((folder / name).read_text(encoding="utf-8")) for name in (LIST, CELLS))
    tables = {(table["paper"], table["name"]): table for table in cells["table"]}
    known = dict(items(folder))
    found = []
    for entry in entries["entry"]:
        item = entry.get("item", "")
        state, why = entry.get("state", ""), entry.get("why", "")
        if item:
            if item not in known:
                raise ValueError(f"published.toml names the item {item}, which does not exist")
            stored = folder / "results" / (item.replace("/", "-") + ".json")
            data = documents.read(stored, constants=True) if stored.is_file() else {"state": NOT_RUN}
            state, why = data["state"], data.get("why", "") or why
            table = tables.get((entry["paper"], entry["name"]))
            if table and "rows" in data:
                state, why = _judged(table, data, cells["noises"][table["study"]], cells["absent"])
        conclusion = entry.get("conclusion", "")
        found.append(Published(entry["paper"], entry["name"], entry["title"], item, state, why, conclusion))
    return found


def _judged(table: Any, data: Any, noises: dict[str, str], absent: dict[str, str]) -> tuple[str, str]:
    """State and reason of a table from its printed cells and the rows found; the last column of a mean is its sd."""
    at = data["headers"].index(table["column"])
    found = {(row[0], row[2], float(row[1])): row[at : at + 2] for row in data["rows"]}
    apart, agree, left = [], 0, dict.fromkeys(absent.values(), 0) | {"no such run is stored": 0}
    for name, printed in table["cells"].items():
        dataset, noise = name.split(", ")
        for epsilon, cell in printed.items():
            mean, deviation = found.get((dataset, noises[noise], float(epsilon)), (None, None))
            if dataset in absent or mean is None:
                left[absent.get(dataset, "no such run is stored")] += 1
                continue
            value, spread = cell if isinstance(cell, list) else (cell, 0.0)
            allowed = 2 * max(spread, deviation) if spread else table["within"] * value
            agree += abs(mean - value) <= allowed
            if not abs(mean - value) <= allowed:
                apart.append(f"{name}, epsilon {float(epsilon):.3g}: computed {mean:.3g}, printed {value:.3g}")
    whole = f"{agree} of {agree + len(apart) + sum(left.values())} cells agree"
    counts = [whole, *(f"{count} not run ({why})" for why, count in left.items() if count)]
    state = DIFFERS if apart else REPRODUCED if agree else NOT_RUN
    return state, "; ".join([", ".join(counts), *apart])


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
    with atomic(path) as stream:
        figure.savefig(stream, dpi=130, format="png")
    return True
