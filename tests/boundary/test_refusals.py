"""The longer messages of each package: every one is used, with the words it needs."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path

import pytest

import shapedp
from shapedp.boundary.refusals import messages, refusal

HOUSE = Path(shapedp.__file__).parent
ROOMS = sorted(".".join(path.parent.relative_to(HOUSE).parts) for path in HOUSE.rglob("refusals.toml"))


def used(room: str) -> dict[str, set[str | None]]:
    """The messages that the code of a room asks for, with the words it gives."""
    found: dict[str, set[str | None]] = {}
    for path in HOUSE.joinpath(*room.split(".")).rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "refusal":
                *rooms, name = (ast.literal_eval(argument) for argument in call.args)
                assert rooms in ([], [room])
                found.setdefault(name, set()).update(keyword.arg for keyword in call.keywords)
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_every_message_is_used_with_the_words_it_needs(room: str) -> None:
    fields = {
        name: [field for _, field, _, _ in string.Formatter().parse(text)] for name, text in messages(room).items()
    }
    wanted = {name: {re.split(r"[.\[]", field)[0] for field in found if field} for name, found in fields.items()}
    assert used(room) == wanted


def test_there_are_such_rooms_and_words_are_filled_in() -> None:
    assert {"ledger", "learn", "torch"} <= set(ROOMS)
    assert refusal("learn", "binary-only", solver="cd").endswith("got solver 'cd'")
