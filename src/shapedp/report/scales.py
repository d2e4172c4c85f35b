"""The noise scale of each coordinate, one line per family."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from shapedp.boundary.files import atomic
from shapedp.mechanisms import Advice


def draw(ranked: Sequence[Advice], path: Path) -> None:
    """Standard deviation against coordinate, coordinates in their order, both on log scales where they span a lot."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'shapedp[plots]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for advice in ranked:
        if advice.mechanism is None:
            continue
        deviations = np.array(advice.mechanism.law.marginal_scales())
        style = "o-" if deviations.size <= 50 else "-"
        label = f"{advice.family}, expected error {advice.expected_error:.4g}"
        axes.plot(np.arange(1, deviations.size + 1), np.where(deviations > 0, deviations, np.nan), style, label=label)
    axes.set(xlabel="coordinate", ylabel="standard deviation of the noise", yscale="log")
    axes.legend()
    with atomic(path) as stream:
        figure.savefig(stream, dpi=120, bbox_inches="tight", format=Path(path).suffix[1:] or "png")
    plt.close(figure)
