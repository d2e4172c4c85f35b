"""Permissions came from os.umask(0), which opens every file that another thread makes at that moment."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from shapedp.boundary.files import write_bytes

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX systems")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o027])
def test_a_new_file_has_the_mode_of_the_process(mask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = os.umask(mask)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda _: pytest.fail("umask is of the whole process"))
            write_bytes(tmp_path / "new", b"x")
    finally:
        os.umask(old)
    assert _mode(tmp_path / "new") == 0o666 & ~mask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_text("old")
    path.chmod(mode)
    write_bytes(path, b"new")
    assert _mode(path) == mode


def test_the_library_never_touches_the_umask() -> None:
    source = Path(__file__).parents[2] / "src"
    assert not [str(path) for path in source.rglob("*.py") if "os.umask(" in path.read_text(encoding="utf-8")]
