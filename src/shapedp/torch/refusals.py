"""The longer messages of what a training refuses: cause and remedy, kept in refusals.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


@cache
def messages() -> dict[str, str]:
    """All messages by name."""
    return tomllib.loads(files("shapedp.torch").joinpath("refusals.toml").read_text("utf-8"))


def refusal(name: str, /, **values: object) -> str:
    """The message of that name, with values for the words in braces."""
    return messages()[name].format(**values)
