"""`ledger head --key FIFO` waited without end: what is read is a plain file, or refused before it is opened."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import shapedp as sdp
from shapedp.boundary.documents import write
from shapedp.boundary.files import read_array
from shapedp.cli import main
from shapedp.tables.csvfiles import csv_rows

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a FIFO of POSIX systems")
FIT = ["--target", "y", "--feature-bound", "1", "--target-bound", "1", "--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture(autouse=True)
def _no_wait() -> Iterator[None]:
    """A test that waits for a writer fails instead."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("waits for a FIFO"))
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo.csv"
    os.mkfifo(path)
    return path


def test_a_key_is_a_plain_file(tmp_path: Path, fifo: Path) -> None:
    pytest.importorskip("sqlalchemy")
    from shapedp.ledger import Ledger

    Ledger.create(tmp_path / "l.db", dataset="d", epsilon=1.0, delta=1e-6, adjacency="replace")
    assert main(["ledger", "head", str(tmp_path / "l.db"), "--key", str(fifo)]) == 2
    assert main(["ledger", "head", str(tmp_path / "l.db"), "--key", "/dev/zero"]) == 2


def test_a_table_is_a_plain_file(tmp_path: Path, fifo: Path) -> None:
    mechanism = sdp.calibrate("gaussian", sdp.L2(1.0, 3), epsilon=1.0, delta=1e-6)
    write(tmp_path / "m.json", mechanism.to_json())
    assert main(["release", str(tmp_path / "m.json"), str(fifo), "-o", str(tmp_path / "o.csv")]) == 2
    for name in ("fifo.npy", "fifo.parquet"):
        os.mkfifo(tmp_path / name)
        assert main(["release", str(tmp_path / "m.json"), str(tmp_path / name), "-o", str(tmp_path / "o.csv")]) == 2


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_what_is_learned_from_is_a_plain_file(ending: str, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("pyarrow")
    from shapedp.learn import LinearRegression

    path = tmp_path / f"x.{ending}"
    os.mkfifo(path)
    assert main(["fit", "linear", str(path), *FIT, "-o", str(tmp_path / "o.json")]) == 2
    model = LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=1.0)
    with pytest.raises(FileNotFoundError, match="not a plain file"):
        model.fit(path, "y")


def test_the_readers_refuse_by_themselves(fifo: Path) -> None:
    for reader in (read_array, csv_rows):
        with pytest.raises(FileNotFoundError, match="not a plain file"):
            reader(fifo)
