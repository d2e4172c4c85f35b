"""The parser, built from `commands.toml`.

Fields of a command in that file: `help`, `description` and `epilog` as in argparse (`raw`: keep the line breaks),
`options`, `writes` (the options that name outputs), `certified` (a certificate is written beside the first output),
`module` (the module of this folder whose function of the command's name runs it; else that of the command's name) and
`actions` (commands of a command). Fields of an option are those of argparse, and:

- the key holds the flags, or the name of a positional argument; "+name" puts the options of `[shared.name]` there;
- `type` is one of `TYPES`; `choices` may be the address "module:NAME" of a collection;
- `one_of` and `at_most_one_of` name a set of options that exclude each other; `group` names a heading in the help.

In a text, {module:NAME} stands for the names in a collection. `[names]` holds those of collections whose modules take
long to load, so that help is quick (a test compares them); other addresses are read when the command is used.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any

from shapedp._version import __version__


@dataclass(frozen=True)
class Command:
    """The command of a command line.

    `module` holds the function that runs it, `name` is the function's. `writes` are the options that name outputs,
    `words` those whose values come from a list and so never name a file. `certified` says that a certificate is written
    beside the first output.
    """

    module: str
    name: str
    writes: tuple[str, ...]
    words: frozenset[str]
    certified: bool


def count(text: str) -> int:
    """A whole number, which may be written 1e6."""
    number = float(text)
    if number != int(number):
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text}")
    return int(number)


TYPES = {"float": float, "int": int, "path": Path, "count": count, "names": lambda text: text.split(",")}
_ADDRESS = re.compile(r"\{([\w.]+:\w+)\}")


@cache
def _book() -> dict[str, Any]:
    return tomllib.loads((resources.files("shapedp.cli") / "commands.toml").read_text(encoding="utf-8"))


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """The whole command line; with `only`, the options of that command alone (the others keep name and help)."""
    book = _book()
    top = argparse.ArgumentParser(prog="shapedp", **_texts({**book, "raw": True}))
    top.add_argument("--version", action="version", version=f"shapedp {__version__}")
    for name, spec, child in _children(top, "command", book["commands"], only):
        module = spec.get("module", name)
        if "actions" not in spec:
            _add_options(child, module, name, spec, book)
        for action, inner, grandchild in _children(child, "action", spec.get("actions", {}), None):
            _add_options(grandchild, module, action, inner, book)
    return top


def _children(
    parent: argparse.ArgumentParser, word: str, specs: Mapping[str, Any], only: str | None
) -> Iterator[tuple[str, Mapping[str, Any], argparse.ArgumentParser]]:
    """The parser of each command below another; those that are not asked for get their help line alone."""
    if not specs:
        return
    below = parent.add_subparsers(title=f"{word}s", metavar=word.upper(), required=True)
    for name, spec in specs.items():
        if only not in (None, name):
            below.add_parser(name, help=spec["help"])
        else:
            yield name, spec, below.add_parser(name, help=spec["help"], **_texts(spec))


def _texts(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Description, epilog and formatter. The help line serves as the description where none is given."""
    usual = spec.get("help", "")
    return {
        "description": _filled(spec.get("description", usual[:1].upper() + usual[1:] + ".")),
        "epilog": spec.get("epilog"),
        "formatter_class": argparse.RawDescriptionHelpFormatter if spec.get("raw") else argparse.HelpFormatter,
    }


def _add_options(
    parser: argparse.ArgumentParser, module: str, name: str, spec: Mapping[str, Any], book: Mapping[str, Any]
) -> None:
    holders: dict[str, Any] = {}
    words = set()
    for flags, settings in _expanded(spec["options"], book["shared"]):
        holder = _holder(parser, settings, holders, book["groups"])
        action = holder.add_argument(*flags.split(), **_arguments(settings))
        if action.choices is not None:
            words.add(action.dest)
    certified = spec.get("certified", False)
    if certified and "--certificate" not in spec["options"]:
        parser.set_defaults(certificate=None)
    command = Command(module, name, tuple(spec.get("writes", ())), frozenset(words), certified)
    parser.set_defaults(command=command)


def _expanded(options: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every option with its settings; those that are shared in the place of their name."""
    for flags, settings in options.items():
        if not flags.startswith("+"):
            yield flags, dict(settings)
            continue
        for inner, own in _expanded(shared[flags[1:]], shared):
            yield inner, {**own, **settings}


def _holder(
    parser: argparse.ArgumentParser, settings: dict[str, Any], made: dict[str, Any], titles: Mapping[str, str]
) -> Any:
    """Where an option is added: the parser, one of its groups, or a set of options that exclude each other."""
    holder: Any = parser
    if (group := settings.pop("group", None)) is not None:
        holder = made[group] = made.get(group) or parser.add_argument_group(titles[group])
    for rule, required in (("one_of", True), ("at_most_one_of", False)):
        if (name := settings.pop(rule, None)) is not None:
            holder = made[name] = made.get(name) or holder.add_mutually_exclusive_group(required=required)
    return holder


def _arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as argparse takes them."""
    found = dict(settings)
    if "type" in found:
        found["type"] = TYPES[found["type"]]
    if isinstance(found.get("choices"), str):
        found["choices"] = tuple(_at(found["choices"]))
    if isinstance(found.get("metavar"), list):
        found["metavar"] = tuple(found["metavar"])
    if "help" in found:
        found["help"] = _filled(found["help"])
    return found


def _filled(text: str) -> str:
    return _ADDRESS.sub(lambda found: ", ".join(_at(found[1])), text)


def _at(address: str) -> Iterable[str]:
    """The names in the collection at "module:NAME"."""
    module, _, name = address.partition(":")
    known: Iterable[str] | None = _book()["names"].get(address)
    return vars(import_module(module))[name] if known is None else known
