"""The examples on the page run, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from shapedp.torch.training import OTHERS, OWN

PAGE = Path(__file__).parents[2] / "docs" / "deep-learning.md"


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(compile(code, str(PAGE), "exec"), names)
    out, lines = capsys.readouterr()
    assert "certified: claimed delta 1e-05 at epsilon 2" in out
    assert "100 steps, epsilon in" in out
    assert float(re.findall(r"accuracy ([\d.]+)", out)[0]) > 0.8
    assert "26010 parameters, SPR noise has 1.435" in out
    assert "refuted: claimed delta" in out
    assert 0 < float(re.findall(r"^epsilon ([\d.]+)", out, re.M)[0]) < 3
    assert lines.count("epsilon in [") == 5


def test_the_room_for_rounding_is_what_the_page_says() -> None:
    share = OWN + OTHERS * 256
    assert f"({100 * share:.4f}% at 256)" in PAGE.read_text().replace("\n", " ")
