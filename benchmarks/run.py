"""Run the benchmarks against peers and write their ratios.

    python benchmarks/run.py [--quick] [--list] [--check] [--but NAME] [--output FOLDER] [names]

Results go to benchmarks/results/<name>.json (a quick run prints only, unless --output is given).
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from _harness import RESULTS, Result  # noqa: E402

SIGNS = {"at_least": ">=", "at_most": "<="}


def available() -> list[str]:
    """Names of the benchmarks: every other public module of this folder."""
    return sorted(path.stem for path in HERE.glob("[!_]*.py") if path.stem != "run")


def table(result: Result) -> str:
    """A readable account of one result."""
    lines = [f"{result.name}: {result.what}"]
    for name, timing in result.timings.items():
        lines.append(f"  {name:<40} {timing.median:>12.3e} s  (best {timing.best:.3e})")
    for entry in result.ratios + result.figures:
        bounds = [f"{word} {entry[key]:g}" for key, word in (("at_least", ">="), ("at_most", "<=")) if key in entry]
        verdict = {True: "met", False: "NOT MET", None: ""}[entry.get("met")]
        lines.append(f"  {entry['what']:<40} {entry['value']:>12.4g}  {' '.join(bounds)} {verdict}".rstrip())
    lines += [f"  {note}" for note in result.notes]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="benchmarks to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller sizes, nothing written")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and stop")
    parser.add_argument("--check", action="store_true", help="exit with status 1 where a bound is not met")
    parser.add_argument("--but", action="append", default=[], metavar="NAME", help="leave this one out")
    parser.add_argument("--output", type=Path, help="folder for the results (default: benchmarks/results)")
    options = parser.parse_args(arguments)

    names = available()
    if options.list:
        print("\n".join(names))
        return 0
    unknown = sorted({*options.names, *options.but} - set(names))
    if unknown:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(names) or 'none'}")

    met = held = True
    for name in (one for one in options.names or names if one not in options.but):
        result: Result = importlib.import_module(name).run(quick=options.quick)
        print(table(result), flush=True)
        met = met and result.met
        held = held and (result.met or not result.guards)
        if options.output is not None or not options.quick:
            print(f"  written: {result.write(options.output or RESULTS)}", flush=True)
    return 0 if held and (met or not options.check) else 1


if __name__ == "__main__":
    sys.exit(main())
