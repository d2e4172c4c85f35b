"""A PostgreSQL server of the tests' own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((f for f in folders if (f / "initdb").exists() and (f / "pg_ctl").exists()), None)


def _unprivileged() -> pwd.struct_passwd | None:
    """The server refuses to run as root: the user it runs as instead."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a fresh server on a socket in a temporary folder."""
    pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")
    binaries = _binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server on this machine (initdb not found; install postgresql)")
    user = _unprivileged() if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    if user is None:
        pytest.skip("running as root and no unprivileged user to run a PostgreSQL server as")
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    os.chown(folder, user.pw_uid, user.pw_gid)
    as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}

    def call(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(binaries / program), "-D", str(folder / "data"), *arguments],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False, **as_user,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout.decode()[-2000:]}")

    call("initdb", "-A", "trust", "-U", "ledger", "-E", "UTF8", "--no-sync")
    options = f"-k {folder} -c listen_addresses='' -c max_connections=60"
    call("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql://ledger@/postgres?host={folder}"
    finally:
        call("pg_ctl", "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(server: str) -> str:
    """The URL of an empty database."""
    import sqlalchemy as sa

    engine = sa.create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        name = f"t{connection.execute(sa.text('SELECT count(*) FROM pg_database')).scalar()}"
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a ledger, on each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return str(request.getfixturevalue("postgres"))
