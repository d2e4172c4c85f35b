"""A plan without a field, or with a word where an object belongs, ended `account` in KeyError and AttributeError;
`verify` and `certify` of a plan, which makes no claim, in AttributeError: each was exit code 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import Step
from shapedp.boundary.files import read_array
from shapedp.cli import main
from shapedp.mechanisms import mechanism_from_json
from shapedp.noise import law_from_json

PLAN = sdp.Plan((Step(sdp.GaussianLoss(1.0), 0.1, 5),)).to_json()
SUBJECTS: tuple[Any, ...] = ({"loss": "gaussian"}, {"loss": "bare"}, "0.5", None, [], {"mechanism": []}, 3)


@pytest.mark.parametrize("subject", SUBJECTS, ids=repr)
def test_a_step_that_describes_nothing_is_refused(subject: Any, tmp_path: Path) -> None:
    data = {**PLAN, "steps": [{**PLAN["steps"][0], "subject": subject}]}
    with pytest.raises(ValueError):
        sdp.Plan.from_json(data)
    with pytest.raises(ValueError):
        mechanism_from_json(data)
    (tmp_path / "plan.json").write_text(json.dumps(data))
    assert main(["account", "--plan", str(tmp_path / "plan.json"), "--delta", "1e-6"]) == 2


@pytest.mark.parametrize("kind", [[], {}, None, 1])
def test_a_kind_that_is_no_word_is_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match="kind must read"):
        mechanism_from_json({"kind": kind})
    with pytest.raises(ValueError, match="law must be"):
        law_from_json({"law": kind})


@pytest.mark.parametrize("command", ["verify", "certify"])
def test_a_plan_makes_no_claim(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    assert main([command, str(tmp_path / "plan.json")]) == 2
    assert "no claim" in capsys.readouterr().err


def test_a_damaged_header_of_an_npy_file_is_refused(tmp_path: Path) -> None:
    """An open bracket or quote in it ended `release` in TokenError: exit code 1."""
    np.save(tmp_path / "x.npy", np.ones(3))
    sound = (tmp_path / "x.npy").read_bytes()
    for old, new in ((b"}", b"{"), (b"(3,)", b"((3,"), (b"'descr'", b"'descr "), (b"{", b"\0"), (b"3", b"\xff")):
        (tmp_path / "x.npy").write_bytes(sound.replace(old, new))
        with pytest.raises(ValueError, match="not a whole npy file"):
            read_array(tmp_path / "x.npy")
