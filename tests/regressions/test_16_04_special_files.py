"""-o on a device, FIFO, directory or link replaced it: as root even the null device.

Devices are private copies made in a temporary folder, never those of the machine.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from shapedp.boundary.files import atomic, write_bytes
from shapedp.cli import main

CALIBRATE = ["calibrate", "gaussian", "--l2", "1", "--dim", "2", "--epsilon", "1", "--delta", "1e-6", "-o"]
posix = pytest.mark.skipif(os.name != "posix", reason="special files of POSIX systems")


def _device(path: Path, kind: int, major: int, minor: int) -> None:
    try:
        os.mknod(path, kind | 0o600, os.makedev(major, minor))
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        pytest.skip("devices cannot be made here")


@posix
def test_a_character_device_is_written_to_and_stays(tmp_path: Path) -> None:
    null = tmp_path / "null"
    _device(null, stat.S_IFCHR, 1, 3)
    before = os.lstat(null)
    assert main([*CALIBRATE, str(null)]) == 0
    assert os.lstat(null) == before or os.lstat(null).st_ino == before.st_ino
    assert stat.S_ISCHR(os.lstat(null).st_mode)
    assert os.listdir(tmp_path) == ["null"]


@posix
def test_a_full_device_is_an_error_and_stays(tmp_path: Path) -> None:
    full = tmp_path / "full"
    _device(full, stat.S_IFCHR, 1, 7)
    assert main([*CALIBRATE, str(full)]) == 2
    assert stat.S_ISCHR(os.lstat(full).st_mode)


@posix
def test_a_block_device_is_refused(tmp_path: Path) -> None:
    block = tmp_path / "disk"
    try:
        os.mknod(block, stat.S_IFBLK | 0o600, os.makedev(259, 99))  # of no driver
    except OSError:
        pytest.skip("devices cannot be made here")
    assert main([*CALIBRATE, str(block)]) == 2
    assert stat.S_ISBLK(os.lstat(block).st_mode)


@posix
def test_a_fifo_gets_the_bytes_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    while main([*CALIBRATE, str(pipe)]) != 0:  # until the reader has opened it
        pass
    reader.join(timeout=20)
    assert got
    assert b'"additive"' in got[0]
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)


@posix
def test_a_fifo_without_reader_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main([*CALIBRATE, str(pipe)]) == 2
    assert "does anything read it" in capsys.readouterr().err
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)


@posix
def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("s")
        assert main([*CALIBRATE, "s"]) == 2
    assert stat.S_ISSOCK(os.lstat("s").st_mode)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert main([*CALIBRATE, str(tmp_path / "folder")]) == 2
    assert (tmp_path / "folder").is_dir()


@posix
def test_a_link_to_ones_own_file_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to("target.json")
    assert main([*CALIBRATE, str(link)]) == 0
    assert link.is_symlink()
    assert "additive" in target.read_text()


@posix
@pytest.mark.parametrize("what", ["nothing", "folder", "fifo", "loop", "device"])
def test_a_link_to_anything_else_is_refused(what: str, tmp_path: Path) -> None:
    end, link = tmp_path / "end", tmp_path / "link.json"
    if what == "folder":
        end.mkdir()
    elif what == "fifo":
        os.mkfifo(end)
    elif what == "device":
        _device(end, stat.S_IFCHR, 1, 3)
    elif what == "loop":
        end.symlink_to("link.json")
    link.symlink_to("end")
    assert main([*CALIBRATE, str(link)]) == 2
    assert link.is_symlink()
    assert end.exists() is (what not in ("nothing", "loop"))


@posix
def test_a_link_to_the_file_of_another_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("theirs")
    link.symlink_to("target.json")
    monkeypatch.setattr(os, "geteuid", lambda: target.stat().st_uid + 1)
    with pytest.raises(ValueError, match="plain file of yours"):
        write_bytes(link, b"mine")
    assert target.read_text() == "theirs"


@posix
def test_a_file_with_two_names_is_replaced_under_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    os.link(tmp_path / "a", tmp_path / "b")
    write_bytes(tmp_path / "b", b"new")
    assert (tmp_path / "a").read_text() == "old"
    assert (tmp_path / "b").read_text() == "new"


@posix
def test_what_was_looked_at_is_what_is_written_to(tmp_path: Path) -> None:
    pipe, other = tmp_path / "pipe", tmp_path / "other"
    os.mkfifo(pipe)
    with pytest.raises(OSError), atomic(pipe) as stream:  # noqa: PT012
        stream.write(b"secret")
        pipe.unlink()
        other.write_text("plain")
        os.rename(other, pipe)
    assert pipe.read_text() == "plain"
