"""Forks and database connections: a process is forked only between the ledger's transactions."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class ForkGate:
    """Many transactions, or one fork.

    A child that inherits a transaction of another thread inherits locks nobody will release (SQLite keeps its
    own table of file locks per process) and could even end that transaction.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """In a child: the other threads are gone."""
        self._condition = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._closing = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Forks wait until the block has ended."""
        me = threading.get_ident()
        with self._condition:
            while self._closing and not self._inside[me]:
                self._condition.wait()
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside[me] -= 1
                if not self._inside[me]:
                    del self._inside[me]
                    self._condition.notify_all()

    def close(self) -> None:
        """Waits for the transactions of other threads and keeps new ones out."""
        me = threading.get_ident()
        self._condition.acquire()
        self._closing += 1
        while any(number for thread, number in self._inside.items() if thread != me):
            self._condition.wait()

    def reopen(self) -> None:
        """Lets transactions in again."""
        self._closing -= 1
        self._condition.notify_all()
        self._condition.release()


gate = ForkGate()

os.register_at_fork(before=gate.close, after_in_parent=gate.reopen, after_in_child=gate.reset)
