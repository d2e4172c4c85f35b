"""Wrong calls of make_private say what to write instead; a training prints short."""

from __future__ import annotations

import ast
import string
from pathlib import Path
from typing import Any

import pytest
from tests.torch.helpers import private, step

import shapedp.torch
from shapedp.torch.refusals import messages


def test_other_names_and_kinds_of_clips() -> None:
    with pytest.raises(TypeError, match="clip="):
        private(max_grad_norm=1.0)
    with pytest.raises(TypeError, match="Flat, Auto, PerLayer"):
        private(clip="flat")


@pytest.mark.parametrize("state", [{"a": 1}, {}, None, {"account": {}}])
def test_a_foreign_state_is_refused(state: Any) -> None:
    *_, training = private()
    with pytest.raises(ValueError, match="state_dict"):
        training.load_state_dict(state)


def test_a_training_prints_short() -> None:
    model, optimizer, loader, training = private(epsilon=2.0, steps=5)
    assert repr(training).startswith("Training(0 of 5 steps, epsilon=2, delta=1e-05, noise=GaussianNoise scale")
    assert len(repr(training)) < 200
    step(model, optimizer, *next(iter(loader)))
    assert "Training(1 of 5" in repr(training)
    assert "spent" not in repr(training)
    spent = training.epsilon()
    assert f"spent {spent}" in repr(training)


def test_every_message_is_used_with_the_words_it_needs() -> None:
    used: dict[str, set[str | None]] = {}
    for path in Path(shapedp.torch.__file__).parent.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "refusal":
                name = ast.literal_eval(call.args[0])
                used.setdefault(name, set()).update(keyword.arg for keyword in call.keywords)
    wanted = {
        name: {word for _, word, _, _ in string.Formatter().parse(text) if word} for name, text in messages().items()
    }
    assert used == wanted
