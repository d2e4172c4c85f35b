"""How long the large plans take, and what memory.

    OMP_NUM_THREADS=2 python experiments/workloads/speed.py

Tables of up to three of 100 attributes of 10 values; prefix sums of 1,024 cells and all ranges over 256, to a gap of
1e-4.
"""

from __future__ import annotations

import json
import math
import resource
import time
from collections.abc import Callable

import shapedp as sdp

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
CASES: dict[str, Callable[[], sdp.Workload]] = {
    "marginals of order 1 to 3, 100 attributes of 10": lambda: sdp.Workload(
        {f"x{k}": 10 for k in range(100)}
    ).marginals(1, 2, 3),
    "all ranges, 256 cells": lambda: sdp.Workload({"t": 256}).ranges("t"),
    "prefix sums, 1,024 cells": lambda: sdp.Workload({"t": 1024}).prefixes("t"),
}


def main() -> None:
    for name, make in CASES.items():
        clock, processor = time.perf_counter(), time.process_time()
        asked = make()
        made = asked.calibrate(**CLAIM)
        found = {"seconds": time.perf_counter() - clock, "processor": time.process_time() - processor}
        best = made.optimality
        rms = math.sqrt(made.expected_squared_error / len(asked))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            json.dumps(
                {
                    "case": name,
                    "answers": len(asked),
                    **found,
                    "peak GiB so far": peak,
                    "rms": rms,
                    "optimality": best.upper if best else None,
                    "verdict": made.certificate.verdict,
                }
            )
        )


if __name__ == "__main__":
    main()
