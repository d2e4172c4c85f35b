"""The examples on the page run, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from shapedp.torch.rounding import NORMS, OTHERS, margin, most_records

PAGE = Path(__file__).parents[2] / "docs" / "deep-learning.md"


def test_the_examples_run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(compile(code, str(PAGE), "exec"), names)
    out, lines = capsys.readouterr()
    assert "certified: claimed delta 1e-05 at epsilon 2" in out
    assert "100 steps, epsilon in" in out
    assert "private training of 42 parameters: 40 steps on Poisson samples of 100 of 2000 records" in out
    assert float(re.findall(r"accuracy ([\d.]+)", out)[0]) > 0.8
    assert "26010 parameters, SPR noise has 1.435" in out
    assert "refuted: claimed delta" in out
    assert 0 < float(re.findall(r"^epsilon ([\d.]+)", out, re.M)[0]) < 3
    assert lines.count("epsilon in [") == 5


def test_the_room_for_rounding_is_what_the_page_says() -> None:
    page = " ".join(PAGE.read_text().split())
    assert (OTHERS, NORMS) == (2.0**-22, 2.0**-24)
    for expected, words in ((256.0, "{} for an expected 256: {:.3f}%"), (10_000.0, "{} for 10000: {:.2f}%")):
        n, share = most_records(expected), margin(expected, 26010, 0.0)
        assert words.format(n, 100 * share) in page
        assert share == pytest.approx((OTHERS + NORMS) * n, rel=0.01)
