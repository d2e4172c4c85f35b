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
