"""Command lines built from the parser itself, over a folder of sound, broken and special files."""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import random
import stat
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import shapedp as sdp
from fuzz.properties import WAIT, Outcome
from fuzz.yard import FILES, SECRET, Kept, watch, yard
from shapedp.cli.main import main, parser

_NUMBERS = ("1", "0.5", "1e-6", "0", "-1", "nan", "inf", "1e300", "1e-320", "3", "2", "10", "", "one", "0x10", "1_0")
_TEXTS = ("a", "a,b", "b", "zzz", "d", "2,3", "1,1,1", "gaussian", "basic", "", "\x1b[2J", "../x", "0", SECRET)
_CODES = (0, 2, 3)


@cache
def _commands() -> tuple[tuple[tuple[str, ...], argparse.ArgumentParser], ...]:
    """Every command and action, with its parser."""

    def below(words: tuple[str, ...], one: argparse.ArgumentParser) -> Iterator[Any]:
        inner = [action for action in one._actions if isinstance(action, argparse._SubParsersAction)]
        if not inner:
            yield words, one
        for action in inner:
            for name, child in action.choices.items():
                yield from below((*words, name), child)

    return tuple(below((), parser()))


def line(rng: random.Random, files: list[str]) -> list[str]:
    """A random command line."""
    words, one = rng.choice(_commands())
    while words[0] in ("reproduce", "demo", "claims") and rng.random() < 0.95:  # minutes by design
        words, one = rng.choice(_commands())
    made = list(words)
    for action in one._actions:
        if isinstance(action, argparse._HelpAction):
            if rng.random() < 0.005:
                made.append("--help")
            continue
        wanted = 0.97 if action.required or not action.option_strings else 0.3
        if rng.random() > wanted or (words[0] in ("reproduce", "claims") and action.dest in ("all", "verify", "full")):
            continue
        if action.option_strings:
            made.append(rng.choice(action.option_strings))
        times = action.nargs if isinstance(action.nargs, int) else 1
        made += [_value(rng, action, files) for _ in range(times)]
    return made


def _value(rng: random.Random, action: argparse.Action, files: list[str]) -> str:
    if rng.random() < 0.1:
        return rng.choice([*_NUMBERS, *_TEXTS, *files])
    if action.choices is not None:
        return str(rng.choice(list(action.choices)))
    if action.dest in _SOUND and rng.random() < 0.7:
        return rng.choice(_SOUND[action.dest])
    if action.dest in ("output", "page", "plot", "certificate", "out"):
        return rng.choice([*files, "new.csv", "new.json", "new.html", "/dev/null", "no/such", "dir/new.csv"])
    if action.type is Path or action.dest in ("mechanism", "input", "data", "file", "ledger", "database", "where"):
        return rng.choice(files)
    return rng.choice([*_NUMBERS, *_TEXTS])


_SOUND: dict[str, tuple[str, ...]] = {
    "epsilon": ("1", "0.5", "3"),
    "delta": ("1e-6", "1e-3", "0"),
    "dim": ("3", "1"),
    "mechanism": ("m.json", "l.json", "hard.json"),
    "input": ("x.csv", "x.npy", "t.csv", "link"),
    "data": ("t.csv", "t.parquet"),
    "file": ("m.json", "c.json", "p.json"),
    "subject": ("m.json", "classic-gaussian", "l.json", "laplace"),
    "plan": ("p.json",),
    "target": ("c", "b"),
    "features": ("a,b", "a"),
    "columns": ("a,b,c",),
    "database": ("d.db",),
    "ledger": ("d.db",),
    "where": ("d.db",),
    "dataset": ("d",),
    "samples": ("1000",),
    "steps": ("5", "100"),
    "seconds": ("2",),
    "rate": ("0.1",),
    "gaussian": ("1", "5"),
    "box": ("b.csv",),
    "l2": ("1",),
    "l1": ("1",),
    "feature_bound": ("1", "5"),
    "target_bound": ("1", "5"),
    "parallel": ("1",),
}


def judged(words: list[str], code: int, text: str, before: Kept, after: Kept) -> list[str]:
    """The properties 8 and 10 to 12 that a command broke."""
    broken = []
    if "Traceback (most recent" in text:
        broken.append("no traceback: one was printed")
    if code not in _CODES:
        broken.append(f"no traceback: exit code {code}: {text[-200:]}")
    if SECRET in text and SECRET not in words:
        broken.append("nothing told: a cell was quoted")
    outputs, read = _outputs(words), _read(words)
    for name, was in before.items():
        now = after.get(name)
        if now == was or (name.startswith("d.db") and words[0] == "ledger" and now is not None and now[:2] == was[:2]):
            continue
        if name == "empty" and words[:2] == ["ledger", "init"]:
            continue  # an empty file is a database that another process has just begun: it is filled, nothing is lost
        linked = "x.csv" if name == "link" else name
        if was[0] != stat.S_IFREG or now is None or now[0] != was[0] or linked in read or name not in outputs:
            broken.append(f"kept: {name} was changed")
    expected = {*outputs, *(str(Path(one).with_suffix(".certificate.json")) for one in outputs if Path(one).name)}
    if words[0] == "report":  # the page goes beside its file where no output is named
        expected |= {str(Path(one).with_suffix(".html")) for one in read if Path(one).name} | {"claims.html"}
    for name in after.keys() - before.keys():
        # `ledger init` makes a database, a picture or a page gets the name it was given
        if name not in expected and words[0] not in ("ledger", "demo", "reproduce"):
            broken.append(f"nothing left: {name} appeared")
        if Path(name).name.startswith(".") or "tmp" in name:
            broken.append(f"nothing left: {name} is a temporary file")
    return broken


_OUT = ("-o", "--output", "--certificate", "--plot", "--page", "--out")


def _outputs(words: list[str]) -> set[str]:
    named = {value for option, value in itertools.pairwise(words) if option in _OUT}
    return named | {"x.csv" for one in named if one == "link"}


def _read(words: list[str]) -> set[str]:
    """Files that the line names elsewhere than as an output."""
    pairs = zip(["", *words], words, strict=False)
    return {word for option, word in pairs if option not in _OUT}


@cache
def _quick() -> None:
    """Build the parser once, not for every line; real processes build it anew."""
    module = sys.modules["shapedp.cli.main"]
    module.parser = cache(parser)  # type: ignore[attr-defined]


def call(words: list[str]) -> tuple[int, str]:
    """The command in this process: its exit code and everything it printed."""
    _quick()
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 2 if end.code else 0
    return code, text.getvalue()


@cache
def _surroundings() -> dict[str, str]:
    """Of a process: the library is the one of this process, and is compiled once."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(Path(sdp.__file__).parents[1])}


def spawn(words: list[str]) -> tuple[int, str]:
    """The command as a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "shapedp", *words],
            capture_output=True,
            timeout=WAIT / 2,
            env=_surroundings(),
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, "too long"
    except ValueError:
        return 2, "a null character cannot be passed to a process"
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


def case(number: int, folder: Path, *, real: bool = False) -> Outcome:
    """One command line; everything random but the noise follows from the number."""
    rng = random.Random(f"{'process' if real else 'command'} {number}")
    words = line(rng, FILES)
    with yard(folder, ledger="d.db" in words) as place:
        before = watch(place)
        code, text = (spawn if real else call)(words)
        broken = judged(words, code, text, before, watch(place))
    name = " ".join(words[: 2 if words[0] == "ledger" else 1])
    return Outcome(name, f"exit {code}", tuple(broken), " ".join(map(repr, words)))


def real_case(number: int, folder: Path) -> Outcome:
    """As `case`, in a fresh interpreter."""
    return case(number, folder, real=True)
