"""Pictures in files, by matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from shapedp.boundary.files import atomic
from shapedp.mechanisms import Advice


@contextmanager
def picture(path: Path, size: tuple[float, float], panels: int = 1) -> Iterator[Any]:
    """Axes to draw on, or several side by side; the file is written at the end, whole or not at all."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'shapedp[plots]'") from None
    figure = Figure(figsize=size, layout="constrained")
    yield figure.subplots(1, panels)
    with atomic(path) as stream:
        figure.savefig(stream, dpi=130, format=path.suffix[1:] or "png")


def draw_errors(groups: Sequence[tuple[str, float, float]], path: Path) -> None:
    """The predicted standard error of each group of queries: root mean square, and the largest."""
    names = [name for name, _, _ in groups]
    shown = len(names) <= 40
    with picture(path, (7, max(3.0, 0.25 * len(names)) if shown else 4)) as axes:
        places = np.arange(len(names))
        for k, (label, mark) in enumerate((("root mean square", "o"), ("largest", "|"))):
            axes.plot([group[1 + k] for group in groups], places, mark, label=label)
        axes.set(xlabel="standard error", xlim=(0, None))
        axes.invert_yaxis()
        if shown:
            axes.set_yticks(places, names)
        axes.legend()


def draw_scales(ranked: Sequence[Advice], path: Path) -> None:
    """The noise of each coordinate, one line per family."""
    with picture(path, (7, 4)) as axes:
        for advice in ranked:
            if advice.mechanism is None:
                continue
            deviations = np.array(advice.mechanism.law.marginal_scales())
            label = f"{advice.family}, expected error {advice.expected_error:.4g}"
            seen, style = np.where(deviations > 0, deviations, np.nan), "o-" if deviations.size <= 50 else "-"
            axes.plot(np.arange(1, deviations.size + 1), seen, style, label=label)
        axes.set(xlabel="coordinate", ylabel="standard deviation of the noise", yscale="log")
        axes.legend()
