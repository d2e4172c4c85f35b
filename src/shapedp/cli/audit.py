"""shapedp audit: what samples show about a mechanism, a recipe or your own function."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shapedp import audit as audits
from shapedp.audit.sizes import readable
from shapedp.boundary.documents import read
from shapedp.cli.codes import DONE, REFUSED
from shapedp.cli.options import claim, numbers, recipe
from shapedp.cli.output import finite, show, table
from shapedp.mechanisms import Additive, mechanism_from_json
from shapedp.papers.recipes import RECIPES


def audit(options: argparse.Namespace) -> int:
    """Audit and print."""
    if options.power:
        return _power(options)
    if options.subject is None:
        raise ValueError("name a mechanism file, a recipe or MODULE:FUNCTION, or pass --power")
    subject = _subject(options)
    if options.distribution:
        if not isinstance(subject, Additive):
            raise ValueError("--distribution needs a mechanism file or a recipe: a function has no law to compare with")
        fit = audits.distribution(subject, samples=options.samples, seed=options.seed)
        return _report(options, fit, not fit.passed)
    result: Any
    if options.bits:
        pair = _neighbours(options)
        if pair is None and isinstance(subject, Additive):
            extreme = subject.sensitivity.extreme()
            pair = (0.0 * extreme, extreme)
        if pair is None:
            raise ValueError("--bits on a function needs --neighbours")
        result = audits.bits(subject, neighbours=pair, **_common(options))
    else:
        shown = sys.stderr.isatty() and not options.json
        common = {**_common(options), "parallel": options.parallel, "progress": shown}
        result = audits.mechanism(subject, neighbours=_neighbours(options), **common)
    return _report(options, result, result.violation)


def _common(options: argparse.Namespace) -> dict[str, Any]:
    given = {"confidence": options.confidence, "vectorized": options.vectorized, "seed": options.seed}
    stated = {} if options.subject in RECIPES else claim(options)
    samples = {} if options.samples is None else {"samples": options.samples}
    return {**stated, **samples, **given}


def _subject(options: argparse.Namespace) -> Any:
    if options.subject in RECIPES:
        return recipe(options)
    if Path(options.subject).exists():
        return mechanism_from_json(read(Path(options.subject)))
    module, _, name = options.subject.partition(":")
    if not name:
        raise ValueError(f"{options.subject!r} is no file, no recipe ({', '.join(RECIPES)}) and no MODULE:FUNCTION")
    sys.path.insert(0, "")
    try:
        function = getattr(importlib.import_module(module), name, None)
    except Exception as error:
        raise ValueError(f"{module} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise ValueError(f"{module} has no function {name}")
    return Named(options.subject, function)


@dataclass(frozen=True)
class Named:
    """A user's function whose exceptions say where they come from."""

    name: str
    function: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self.function(*arguments)
        except Exception as error:
            called = "f(x, rng, n)" if len(arguments) > 2 else "f(x, rng)"
            raise ValueError(f"{self.name}, called {called}, raised {type(error).__name__}: {error}") from error


def _neighbours(options: argparse.Namespace) -> tuple[Any, Any] | None:
    if options.neighbours is None:
        return None
    first, second = (numbers("neighbours", text) for text in options.neighbours)
    return (first[0], second[0]) if first.size == second.size == 1 and ":" in options.subject else (first, second)


def _report(options: argparse.Namespace, result: Any, bad: bool) -> int:
    return show(options, result.to_json(), result.explain(), code=REFUSED if bad else DONE)


def _power(options: argparse.Namespace) -> int:
    if None in claim(options).values():
        raise ValueError("--power needs --epsilon and --delta, the claim whose faults are to be seen")
    rows = audits.power(**claim(options), confidence=options.confidence)
    headers = ("noise scale", "true epsilon", "true delta", "by the claim", "by the profile", "by the distribution")
    cells = [
        (f"x {r.factor:g}", f"{r.epsilon:.3f}", f"{r.delta:.2e}", *map(readable, (r.claim, r.profile, r.distribution)))
        for r in rows
    ]
    what = "Outputs needed to see Gaussian noise that is too small for (epsilon, delta)"
    data = [{name: finite(value) for name, value in asdict(row).items()} for row in rows]
    return show(options, data, f"{what} = ({options.epsilon:g}, {options.delta:g})", table(headers, cells))
