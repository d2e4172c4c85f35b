"""The command line destroyed its own files: an output that was an input, two outputs under one name.

Every command that writes is tried with every output on every input: under its own name, by a symbolic link, by a hard
link and by another spelling. A watch compares inode and content of every input before and after.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import pytest

from shapedp.boundary.files import guard
from shapedp.cli import main
from shapedp.ledger import Ledger

CLAIM = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.csv").write_text("1\n2\n3\n")
    (tmp_path / "in.csv").write_text("value\n1.5\n2.5\n3.5\n")
    (tmp_path / "data.csv").write_text("x,y\n" + "0.5,0.25\n" * 40)
    box = ["calibrate", "gaussian", "--box", "b.csv", *CLAIM, "--adjacency", "replace", "-o", "m.json"]
    assert main(box) == 0
    dataset = ["--dataset", "d", "--epsilon", "9", "--delta", "1e-5", "--adjacency", "replace"]
    assert main(["ledger", "init", "b.db", *dataset]) == 0
    assert main(["ledger", "init", "budget", *dataset]) == 0
    capsys.readouterr()
    return tmp_path


SPEND = ["ledger", "spend", "b.db", "m.json", "in.csv", "--dataset", "d"]
FIT = ["fit", "linear", "data.csv", "--target", "y", "--features", "x", "--types", "number"]
FIT += ["--feature-bound", "1", "--target-bound", "1"]
WRITERS = {
    "calibrate": (["calibrate", "gaussian", "--box", "b.csv", *CLAIM], "-o", ("b.csv",)),
    "calibrate weights": (
        ["calibrate", "gaussian", "--box", "1,2,3", "--weights", "b.csv", *CLAIM],
        "-o",
        ("b.csv",),
    ),
    "advise": (["advise", "--box", "b.csv", *CLAIM], "--plot", ("b.csv",)),
    "release": (["release", "m.json", "in.csv"], "-o", ("m.json", "in.csv")),
    "release certificate": (["release", "m.json", "in.csv", "-o", "n.csv"], "--certificate", ("m.json", "in.csv")),
    "ledger export": (["ledger", "export", "b.db"], "-o", ("b.db", "b.db-journal", "b.db-wal")),
    "ledger export, no ending": (["ledger", "export", "budget"], "-o", ("budget", "budget-journal")),
    "ledger export, url": (["ledger", "export", "sqlite:///b.db"], "-o", ("b.db", "b.db-journal")),
    "ledger spend": (SPEND, "-o", ("b.db", "m.json", "in.csv")),
    "fit": ([*FIT, *CLAIM], "-o", ("data.csv",)),
    "fit certificate": ([*FIT, *CLAIM, "-o", "model.json"], "--certificate", ("data.csv",)),
    "report": (["report", "m.json"], "-o", ("m.json",)),
    "report ledger": (["report", "b.db"], "-o", ("b.db", "b.db-journal")),
}
CASES = [(name, used) for name, (_, _, inputs) in WRITERS.items() for used in inputs]


def _watch(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.lstat().st_ino, path.read_bytes()) for path in sorted(folder.iterdir()) if path.is_file()}


def _named(used: str, way: str, ending: str) -> str:
    """Another name for an input; the endings that a command insists on are given to links."""
    if way == "itself":
        return used
    if way == "spelling":
        return f"./nothing/../{used}" if Path("nothing").is_dir() else f"./{used}"
    name = f"other{ending}"
    Path(used).touch()
    (os.symlink if way == "symlink" else os.link)(used, name)
    return name


@pytest.mark.parametrize("way", ["itself", "spelling", "symlink", "hardlink"])
@pytest.mark.parametrize(("name", "used"), CASES, ids=lambda text: text)
def test_no_output_is_an_input(name: str, used: str, way: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, option, _ = WRITERS[name]
    ending = {"release": ".csv", "ledger spend": ".csv", "report": ".html", "report ledger": ".html"}.get(name, ".json")
    output = _named(used, way, ending)
    before = _watch(here)
    assert main([*command, option, output]) == 2
    assert _watch(here) == before
    assert capsys.readouterr().err.startswith("shapedp: error:")


def test_the_certificate_beside_an_output_is_an_output(here: Path) -> None:
    (here / "m.json").rename(here / "n.certificate.json")
    before = _watch(here)
    assert main(["release", "n.certificate.json", "in.csv", "-o", "n.csv"]) == 2
    assert main(["ledger", "spend", "b.db", "n.certificate.json", "in.csv", "-o", "n.csv", "--dataset", "d"]) == 2
    assert _watch(here) == before


def test_nothing_is_spent_before_the_guard(here: Path) -> None:
    assert main([*SPEND, "-o", "in.csv"]) == 2
    with sqlite3.connect(here / "b.db") as connection:
        tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
        counts = {name: connection.execute(f"select count(*) from {name}").fetchone()[0] for name in tables}
    assert all(count == 0 for name, count in counts.items() if "entr" in name)


@pytest.mark.parametrize("second", ["X.csv", "./X.csv", "link.csv"])
def test_two_outputs_are_two_files(second: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if second == "link.csv":
        (here / "X.csv").write_text("old\n")
        os.symlink("X.csv", "link.csv")
    before = _watch(here)
    assert main(["release", "m.json", "in.csv", "-o", "X.csv", "--certificate", second]) == 2
    assert "two outputs" in capsys.readouterr().err
    assert _watch(here) == before


def test_outputs_do_not_go_into_a_folder_of_inputs(tmp_path: Path) -> None:
    (tmp_path / "data" / "part").mkdir(parents=True)
    with pytest.raises(ValueError, match="input"):
        guard([tmp_path / "data"], [tmp_path / "data" / "part" / "model.json"])


@pytest.mark.parametrize("link", ["file", "folder", "back"])
def test_outputs_are_not_what_a_folder_leads_to(link: str, tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    data.mkdir()
    other.mkdir()
    (other / "people.parquet").write_bytes(b"rows")
    (data / "more").symlink_to(other / "people.parquet" if link == "file" else other)
    if link == "back":
        (other / "again").symlink_to(data)
    with pytest.raises(ValueError, match="input"):
        guard([data], [other / "people.parquet"])
    guard([data], [tmp_path / "model.json"])


def test_standard_output_is_an_output(tmp_path: Path) -> None:
    target = tmp_path / "page.json"
    code = (
        "import sys; from shapedp.cli import main; "
        f"sys.exit(main(['calibrate', 'gaussian', '--l2', '1', '--dim', '2', '--epsilon', '1', '--delta', '1e-6', "
        f"'-o', {str(target)!r}]))"
    )
    assert os.system(f'{sys.executable} -c "{code}" > {target} 2> {tmp_path}/err') >> 8 == 2
    assert "standard" in (tmp_path / "err").read_text()


def test_every_command_that_takes_an_output_declares_it() -> None:
    """A new option that names what is written must be declared, or the guard would take it for an input."""
    import argparse

    from shapedp.cli.main import parser

    def leaves(one: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
        below = [
            sub for act in one._actions if isinstance(act, argparse._SubParsersAction) for sub in act.choices.values()
        ]
        return [leaf for sub in below for leaf in leaves(sub)] if below else [one]

    for command in leaves(parser()):
        written = {act.dest for act in command._actions if {"-o", "--plot", "--page"} & set(act.option_strings)}
        declared = set(command._defaults["command"].writes)
        assert written - {"out"} <= declared, command.prog


@pytest.mark.parametrize("where", ["sqlite://localhost/b.db", "sqlite://me@/b.db", "sqlite+pysqlite://h:9/b.db"])
def test_the_address_of_a_ledger_names_no_host(tmp_path, monkeypatch, where):
    """The database ignored the host, the guard of files did not: `ledger export` overwrote its ledger."""
    monkeypatch.chdir(tmp_path)
    claim = ["--epsilon", "1", "--delta", "0", "--adjacency", "add-remove"]
    assert main(["ledger", "init", "b.db", "--dataset", "d", *claim]) == 0
    before = Path("b.db").read_bytes()
    assert main(["ledger", "export", where, "-o", "b.db"]) == 2
    assert Path("b.db").read_bytes() == before
    with pytest.raises(ValueError, match="no host and no user"):
        Ledger.open(where)
