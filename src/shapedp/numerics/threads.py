"""Work on many blocks in as many threads as there are cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from threading import Event, Lock
from typing import TypeVar

Item = TypeVar("Item")


def cores() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        return os.cpu_count() or 1


def each(items: Iterable[Item], worker: Callable[[], Callable[[Item], object]], threads: int) -> None:
    """Hand every item to one of several workers, each made in its thread, with scratch of its own; one: in order.

    There are no more workers than cores. The first error stops the others and is raised.
    """
    left, lock, stop = iter(items), Lock(), Event()

    def drain() -> None:
        work = worker()
        while not stop.is_set():
            with lock:
                item = next(left, stop)
            if item is stop:
                return
            work(item)  # type: ignore[arg-type]

    if threads < 2 or (threads := min(cores(), threads)) < 2:
        return drain()
    with ThreadPoolExecutor(threads) as pool:
        tasks = [pool.submit(drain) for _ in range(threads)]
        try:
            wait(tasks, return_when=FIRST_EXCEPTION)
        finally:
            stop.set()
    for task in tasks:
        task.result()
