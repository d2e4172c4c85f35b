"""Tracebacks reached users of the command line, and a closed pipe changed exit codes. One boundary keeps both."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shapedp import mechanisms
from shapedp.cli import main
from shapedp.numerics import SearchError

ADVISE = ["advise", "--l2", "1", "--dim", "2", "--epsilon", "1", "--delta", "1e-5"]
WRONG = (
    RecursionError,
    ArithmeticError,
    csv.Error,
    EOFError,
    MemoryError,
    OverflowError,
    ZeroDivisionError,
    SearchError,
)
WRONG += (ValueError, TypeError, OSError, ImportError, UnicodeError)
FAULTS = (KeyError, IndexError, AttributeError, RuntimeError, AssertionError, StopIteration, NotImplementedError)


def _raising(error: BaseException) -> Any:
    def work(*_: Any, **__: Any) -> None:
        raise error

    return work


@pytest.mark.parametrize(("error", "code"), [*((one, 2) for one in WRONG), *((one, 1) for one in FAULTS)])
@pytest.mark.parametrize("text", ["", "secret 4711\nsecond line"])
def test_every_error_is_one_line(
    error: type[Exception], code: int, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mechanisms, "advise", _raising(error(text) if text else error()))
    assert main(ADVISE) == code
    seen = capsys.readouterr().err
    assert len(seen.splitlines()) == 1
    assert "Traceback" not in seen
    assert len(seen) > len("shapedp: error: \n")
    if code == 1:
        assert "4711" not in seen, "an unforeseen error may quote a record"
        assert "SHAPEDP_DEBUG=1" in seen
        assert "SECURITY.md" in seen


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SHAPEDP_DEBUG", "1")
    monkeypatch.setattr(mechanisms, "advise", _raising(KeyError("x")))
    assert main(ADVISE) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(mechanisms, "advise", _raising(KeyboardInterrupt()))
    assert main(ADVISE) == 130
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("samples", ["inf", "nan", "1e400", "x"])
def test_an_option_that_is_no_number(samples: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["audit", "classic-gaussian", "--samples", samples])
    except SystemExit as left:
        code = int(left.code or 0)
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'", b"PK\x03\x04" + b"0" * 30]
)
def test_a_broken_array_file(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.npy").write_bytes(content)
    command = ["calibrate", "gaussian", "--box", str(tmp_path / "b.npy"), "--epsilon", "1", "--delta", "1e-5"]
    assert main(command) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def _run(command: str) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -m shapedp"
    return subprocess.run(
        ["bash", "-c", command.replace("SHAPEDP", program)], capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX systems")
def test_a_closed_pipe_keeps_the_exit_code_and_the_file(tmp_path: Path) -> None:
    refused = "certify classic-gaussian --dim 3 --epsilon 10 --delta 1e-5"
    done = _run(f"set -o pipefail; (sleep 0.2; SHAPEDP {refused}; echo $? > {tmp_path}/code) | true")
    assert done.stderr == ""
    assert (tmp_path / "code").read_text() == "3\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output(tmp_path: Path) -> None:
    done = _run("SHAPEDP certify analytic-gaussian --dim 3 --epsilon 1 --delta 1e-5 > /dev/full")
    assert done.returncode == 4
    assert len(done.stderr.splitlines()) == 1
