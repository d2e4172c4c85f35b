"""A save that failed left its temporary file behind; and code outside the boundary wrote files by itself."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shapedp.boundary import documents
from shapedp.boundary.files import atomic

SOURCE = Path(__file__).parents[2] / "src" / "shapedp"
EXAMPLES = re.compile(r"^ *(>>>|\.\.\.) .*$", re.MULTILINE)  # of docstrings: they are no code of the library
WRITES = re.compile(
    r"os\.replace|os\.rename\(|\.write_text\(|\.write_bytes\(|tempfile|open\([^)]*[\"'][wax]b?\+?[\"']|savefig\(path"
    r"|json\.load|json\.dump\(|torch\.save\(states, beside"
)
# A journal of single bytes, and the rows of a ledger's own database; a line of code printed in a report.
ELSEWHERE = {"boundary/files.py", "boundary/documents.py", "torch/journal.py", "ledger/records.py"}
ELSEWHERE |= {"audit/transcript.py", "report/pages.py", "torch/engine.py"}
ELSEWHERE |= {"ledger/place.py", "ledger/schema.py"}
ELSEWHERE |= {"cli/streams.py"}  # opens the null device where a standard stream is closed, and no file
ELSEWHERE |= {"private/sources.py"}  # a folder of its own for what the database cannot hold in memory
ELSEWHERE |= {"papers/register/harness.py"}  # in the example of its docstring


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_a_failed_save_leaves_nothing(error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")
    with pytest.raises(error), atomic(path) as stream:  # noqa: PT012
        stream.write(b"half")
        raise error
    assert os.listdir(tmp_path) == ["x.json"]
    assert path.read_text() == "old"


TOLD = """
import signal, sys
from shapedp import mechanisms
from shapedp.boundary.files import atomic
from shapedp.cli.main import main

def work(*_, **__):
    with atomic(sys.argv[2]) as stream:
        stream.write(b"half")
        signal.raise_signal(int(sys.argv[1]))
    raise AssertionError("the signal was not seen")

mechanisms.advise, before = work, signal.getsignal(signal.SIGTERM)
code = main(["advise", "--l2", "1", "--dim", "2", "--epsilon", "1", "--delta", "1e-6"])
assert signal.getsignal(signal.SIGTERM) is before
sys.exit(code)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_is_told_to_end_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    """SIGTERM ended a process at once: what it was writing stayed behind."""
    path = tmp_path / "x.json"
    path.write_text("old")
    call = [sys.executable, "-c", TOLD, str(int(number)), str(path)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (130, 1)
    assert os.listdir(tmp_path) == ["x.json"]
    assert path.read_text() == "old"


def test_what_cannot_be_json_leaves_nothing(tmp_path: Path) -> None:
    for bad in (float("nan"), object(), {1, 2}):
        with pytest.raises((TypeError, ValueError)):
            documents.write(tmp_path / "x.json", {"value": bad})
    assert os.listdir(tmp_path) == []


def test_a_failed_replacement_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError("no")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="no"):
        documents.write(tmp_path / "x.json", {})
    assert os.listdir(tmp_path) == []


def test_a_picture_of_an_unknown_format_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from shapedp.cli import main

    command = ["advise", "--l2", "1", "--dim", "2", "--epsilon", "1", "--delta", "1e-5", "--plot"]
    assert main([*command, str(tmp_path / "x.unknown")]) == 2
    assert os.listdir(tmp_path) == []


def test_a_checkpoint_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from shapedp.torch import PrivacyEngine

    model, engine = torch.nn.Linear(2, 1), PrivacyEngine()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(9, 2)), batch_size=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    engine.make_private(module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0)
    with pytest.raises(Exception, match=r"pickle|local"):
        engine.save_checkpoint(path=tmp_path / "x.pt", module=model, checkpoint_dict={"bad": lambda: None})
    assert os.listdir(tmp_path) == []
    engine.save_checkpoint(path=tmp_path / "x.pt", module=model, checkpoint_dict={"good": 1})
    assert torch.load(tmp_path / "x.pt", weights_only=True)["good"] == 1


def test_nothing_else_writes_or_parses() -> None:
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if WRITES.search(EXAMPLES.sub("", path.read_text(encoding="utf-8")))
    }
    assert found <= ELSEWHERE, found - ELSEWHERE
