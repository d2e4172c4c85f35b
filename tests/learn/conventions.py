"""scikit-learn's own checks of an estimator, those that cannot hold among them: they must fail."""

from collections.abc import Callable, Collection
from typing import Any
from unittest import SkipTest


def checked(estimator: Any, check: Callable[[Any], None], cannot_hold: Collection[str] = ()) -> None:
    """Run a check. One named in `cannot_hold` must fail, as under a strict xfail.

    A mark would have pytest format the traceback of each failure, which reads all of scikit-learn's checks again.
    """
    name = check.func.__name__  # type: ignore[attr-defined]
    try:
        check(estimator)
    except SkipTest:
        raise
    except Exception:
        if name not in cannot_hold:
            raise
        return
    assert name not in cannot_hold, f"{name} holds: take it off the list"
