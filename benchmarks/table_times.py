"""The seven tasks of a statistician beside OpenDP, diffprivlib and Tumult Analytics: times of one release.

See `tables.py` for the tasks, the claims and what they need. 2,000,000 visits with several rows of most persons.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from _harness import Result, measure, ratio
from tables import CANNOT, Tasks, others

TIMES = ("histogram", "means", "quantiles", "total", "many visits", "weeks", "report")


def run(quick: bool) -> Result:
    """One release from the file, every library in turn."""
    rows = 20_000 if quick else 2_000_000
    result = Result("table_times", what=f"seven tasks, on Adult and {rows:,} visits: times", notes=list(CANNOT))
    with tempfile.TemporaryDirectory() as place, others(result, quick) as peers:
        tasks = Tasks(Path(place), rows)
        for task in TIMES:
            cases: dict[str, Any] = {f"{task}: shapedp": lambda task=task: tasks.release(task)}
            for name, peer in peers.items():
                if task == "report" or (task, name) == ("many visits", "diffprivlib"):
                    continue
                given = {"task": task.removeprefix("many "), "file": tasks.file(task), "degrees": tasks.degrees}
                cases[f"{task}: {name}"] = peer.call(f"{name.lower()}_table", **given)
            found = measure(cases, rounds=1 if quick else 3)
            result.timings |= found
            for case in list(cases)[1:]:
                result.ratio(f"{case} / shapedp, time", ratio(found, case, f"{task}: shapedp"))
        return result
