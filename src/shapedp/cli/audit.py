"""shapedp audit: what samples show about a mechanism, a recipe or your own function."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shapedp import audit
from shapedp.audit.sizes import readable
from shapedp.cli.files import read_json
from shapedp.cli.options import add_claim, add_json, numbers, tensor_shape
from shapedp.cli.output import DONE, REFUSED, print_json, table
from shapedp.mechanisms import Additive, mechanism_from_json
from shapedp.papers.recipes import RECIPES


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "audit",
        help="test a mechanism, a recipe or your own function by sampling",
        description="Draw outputs at two neighbouring inputs and bound delta and epsilon from below, with confidence. "
        "Exit code 3 if the claim is broken. SUBJECT is a mechanism file, a recipe "
        f"({', '.join(RECIPES)}), or MODULE:FUNCTION, a function f(x, rng).",
        epilog="examples: shapedp audit mechanism.json; "
        "shapedp audit mymodule:f --neighbours 0 1 --epsilon 1 --delta 0; "
        "shapedp audit --power --epsilon 1 --delta 1e-5",
    )
    parser.add_argument("subject", nargs="?", metavar="SUBJECT", help="FILE, RECIPE or MODULE:FUNCTION")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--distribution", action="store_true", help="test the noise against its law instead")
    what.add_argument("--bits", action="store_true", help="test the bit patterns of the outputs instead")
    what.add_argument("--power", action="store_true", help="print how many outputs show how large a fault")
    add_claim(parser, required=False)
    parser.add_argument("--neighbours", nargs=2, metavar=("X", "Y"), help="two inputs: numbers, 1,2,3 or files")
    parser.add_argument("--dim", type=int, help="dimension of the query (recipes)")
    parser.add_argument("--tensor", metavar="SHAPE", help="shape of the query, 28x28x64, instead of --dim (recipes)")
    parser.add_argument("--sensitivity", type=float, default=1.0, help="radius of the recipe's ball (default 1)")
    parser.add_argument(
        "--samples",
        type=_count,
        help="outputs to draw, such as 1e6 (default; 4e5 for --bits, two million values for --distribution)",
    )
    parser.add_argument("--confidence", type=float, default=0.99, help="of every bound (default 0.99)")
    parser.add_argument("--vectorized", action="store_true", help="the function is f(x, rng, n) and returns n rows")
    parser.add_argument("--seed", type=int, help="reproducible instead of secure randomness")
    parser.add_argument("--parallel", type=int, default=1, help="processes (default 1)")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Audit and print."""
    if options.power:
        return _power(options)
    if options.subject is None:
        raise ValueError("name a mechanism file, a recipe or MODULE:FUNCTION, or pass --power")
    subject = _subject(options)
    if options.distribution:
        if not isinstance(subject, Additive):
            raise ValueError("--distribution needs a mechanism file or a recipe: a function has no law to compare with")
        fit = audit.distribution(subject, samples=options.samples, seed=options.seed)
        return _report(options, fit, not fit.passed)
    result: Any
    if options.bits:
        pair = _neighbours(options)
        if pair is None and isinstance(subject, Additive):
            extreme = subject.sensitivity.extreme()
            pair = (0.0 * extreme, extreme)
        if pair is None:
            raise ValueError("--bits on a function needs --neighbours")
        result = audit.bits(subject, neighbours=pair, **_common(options))
    else:
        common = {
            **_common(options),
            "parallel": options.parallel,
            "progress": sys.stderr.isatty() and not options.json,
        }
        result = audit.mechanism(subject, neighbours=_neighbours(options), **common)
    return _report(options, result, result.violation)


def _common(options: argparse.Namespace) -> dict[str, Any]:
    names = ("epsilon", "delta", "samples", "confidence", "vectorized", "seed")
    given = {name: getattr(options, name) for name in (names[2:] if options.subject in RECIPES else names)}
    if given["samples"] is None:
        del given["samples"]
    return given


def _subject(options: argparse.Namespace) -> Any:
    if options.subject in RECIPES:
        return _recipe(options)
    if Path(options.subject).exists():
        return mechanism_from_json(read_json(Path(options.subject)))
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


def _recipe(options: argparse.Namespace) -> Additive:
    if options.epsilon is None or options.delta is None or (options.dim is None) == (options.tensor is None):
        raise ValueError("a recipe needs --epsilon, --delta and either --dim or --tensor")
    recipe = RECIPES[options.subject]
    size = {"dim": options.dim} if options.tensor is None else {"shape": tensor_shape(options.tensor)}
    if not set(size) <= set(inspect.signature(recipe).parameters):
        raise ValueError(f"{options.subject} releases vectors: give --dim instead of --tensor")
    try:
        return recipe(**size, sensitivity=options.sensitivity, epsilon=options.epsilon, delta=options.delta)
    except ValueError as error:
        if "dim" in size and "shape" in str(error):
            raise ValueError(f"{error}: give --tensor instead of --dim, such as --tensor 2x{options.dim}") from None
        raise


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


def _count(text: str) -> int:
    number = float(text)
    if number != int(number):
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text}")
    return int(number)


def _report(options: argparse.Namespace, result: Any, bad: bool) -> int:
    if options.json:
        print_json(result.to_json())
    else:
        print(result.explain())
    return REFUSED if bad else DONE


def _power(options: argparse.Namespace) -> int:
    if options.epsilon is None or options.delta is None:
        raise ValueError("--power needs --epsilon and --delta, the claim whose faults are to be seen")
    rows = audit.power(epsilon=options.epsilon, delta=options.delta, confidence=options.confidence)
    if options.json:
        print_json([{k: v if v < float("inf") else None for k, v in asdict(row).items()} for row in rows])
        return DONE
    headers = ("noise scale", "true epsilon", "true delta", "by the claim", "by the profile", "by the distribution")
    print(
        f"Outputs needed to see Gaussian noise that is too small for (epsilon, delta) = "
        f"({options.epsilon:g}, {options.delta:g})"
    )
    cells = [
        (f"x {r.factor:g}", f"{r.epsilon:.3f}", f"{r.delta:.2e}", *map(readable, (r.claim, r.profile, r.distribution)))
        for r in rows
    ]
    print(table(headers, cells))
    return DONE
