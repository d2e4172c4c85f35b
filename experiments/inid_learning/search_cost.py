"""What a private search costs: the noise of one run against a single fit, and against as many fits.

python experiments/inid_learning/search_cost.py       # writes the table of docs/choosing-parameters.md
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from pages import DOCS, fill, rows_of

from shapedp.accounting.repeat import gamma_for, gaussian_run
from shapedp.privacy import GaussianLoss

CLAIMS = ((0.5, 1e-6), (1.0, 1e-6), (3.0, 1e-6), (1.0, 1e-3))
REPEATS = (3, 10, 30, 100)


def main() -> None:
    """Noise scales relative to one fit at the whole claim."""
    rows = []
    for epsilon, delta in CLAIMS:
        whole = GaussianLoss.calibrate(epsilon, delta).mu
        for repeats in REPEATS:
            run = gaussian_run(gamma_for(float(repeats)), epsilon, delta)
            rows.append(
                [f"({epsilon:g}, {delta:g})", repeats, f"{run.epsilon(delta).upper:.3f}", f"{whole / run.mu:.2f}",
                 f"{math.sqrt(repeats):.2f}"]
            )  # fmt: skip
    header = ["claim", "expected runs", "epsilon of a run", "noise over one fit", "noise if every run were paid for"]
    fill(DOCS / "choosing-parameters.md", {"cost": rows_of(header, rows)})


if __name__ == "__main__":
    main()
