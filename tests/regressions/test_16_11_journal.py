"""A training journal shared by processes counted too few steps: 1,960 of 2,000. The count and the byte that follows it
were two steps without a lock."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from tests.ledger.helpers import fork, gaussian

pytest.importorskip("torch")

from shapedp.accounting import Step
from shapedp.torch.accountant import Account, BudgetError
from shapedp.torch.journal import Journal

STEP = Step(gaussian(10**6), 1.0, 1)


def account(where: Path, limit: int | None = None) -> Account:
    return Account(STEP, 1.0 if limit else None, 1e-6 if limit else None, limit, journal=where)


def test_processes_that_share_a_journal_are_all_counted(tmp_path: Path) -> None:
    where = tmp_path / "journal"

    def child() -> None:
        own = account(where)
        for _ in range(100):
            own.charge()

    assert [os.waitpid(pid, 0)[1] for pid in [fork(child) for _ in range(6)]] == [0] * 6
    assert account(where).taken == 600


def test_threads_and_an_inherited_account(tmp_path: Path) -> None:
    where = tmp_path / "journal"
    shared = account(where)

    def charges() -> None:
        for _ in range(50):
            shared.charge()

    threads = [threading.Thread(target=charges) for _ in range(3)]
    for thread in threads:
        thread.start()
    pids = [fork(charges) for _ in range(2)]
    for thread in threads:
        thread.join()
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
    assert account(where).taken == 250


def test_the_claim_holds_for_all_of_them(tmp_path: Path) -> None:
    where = tmp_path / "journal"

    def child() -> None:
        own = account(where, limit=40)
        try:
            for _ in range(40):
                own.charge()
        except BudgetError:
            pass

    assert [os.waitpid(pid, 0)[1] for pid in [fork(child) for _ in range(4)]] == [0] * 4
    assert account(where, limit=40).taken == 40


def test_a_journal_is_made_once(tmp_path: Path) -> None:
    """Of two processes that found no file one replaced the other's, and the steps in it were lost."""
    where = tmp_path / "journal"

    def child() -> None:
        Journal(where, "a" * 32).start(0, lambda _: None)

    assert [os.waitpid(pid, 0)[1] for pid in [fork(child) for _ in range(8)]] == [0] * 8
    assert Journal(where, "a" * 32).steps == 8
