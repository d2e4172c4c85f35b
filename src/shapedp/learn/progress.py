"""Progress bars, where one is asked for and tqdm is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(total: int | None, unit: str, shown: bool) -> Iterator[Callable[[int], object]]:
    """What advances the bar; without a bar it does nothing."""
    try:
        from tqdm import tqdm
    except ImportError:
        shown = False
    if not shown:
        yield lambda n: None
        return
    with tqdm(total=total, unit=unit) as drawn:
        yield drawn.update
