"""The longer messages of what is refused, each with its cause and a remedy: the refusals.toml of each package."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


@cache
def messages(package: str) -> dict[str, str]:
    """All messages of a package by name."""
    return tomllib.loads(files(f"shapedp.{package}").joinpath("refusals.toml").read_text("utf-8"))


def refusal(package: str, name: str, /, **values: object) -> str:
    """The message of that name, with values for the words in braces."""
    return messages(package)[name].format(**values)
