"""Progress bars, where they are asked for and tqdm is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

_MANY = 9999


@contextmanager
def bar(total: int | None, unit: str, shown: bool) -> Iterator[Callable[[int], object]]:
    """What advances a progress bar, where one is asked for and tqdm is there; otherwise it does nothing."""
    if not shown or find_spec("tqdm") is None:
        yield lambda n: None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=unit, unit_scale=(total or 0) > _MANY) as drawn:
        yield drawn.update
