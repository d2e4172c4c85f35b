"""Wrong calls of make_private say what to write instead; a training prints short."""

from __future__ import annotations

from typing import Any

import pytest
from tests.torch.helpers import private, step


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
