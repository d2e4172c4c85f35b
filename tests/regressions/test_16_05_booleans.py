"""A word was consent: unsafe="false" released a refuted mechanism, exact_zeros="no" removed noise.

Every boolean of the public API is found by its annotation and refuses what is no boolean, before anything else.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from tests.boundary.booleans import Boolean, booleans

import shapedp as sdp
from shapedp.boundary.values import boolean

BAD = ("false", "no", "True", "", 1, 0, 1.0, None, [], np.array([True]), np.int64(1))
FOUND = booleans()


def test_the_inspection_finds_the_switches_that_matter() -> None:
    found = {str(one).rsplit(".", 2)[-1] if "release" not in str(one) else str(one) for one in FOUND}
    assert len(FOUND) >= 60
    for known in ("calibrate(exact_zeros)", "advise(exact_zeros)", "make_private(unsafe)", "compose(closed_forms)"):
        assert any(name.endswith(known) for name in found), known
    assert {one.name for one in FOUND} >= {"unsafe", "exact_zeros", "reverse", "secure", "fit_intercept", "vectorized"}


def _call(one: Boolean, value: Any) -> None:
    """Call with the value, and with nothing sensible for any other parameter: the boolean must be looked at first."""
    needed = {
        name: object()
        for name, parameter in inspect.signature(one.function).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and name != "self"
    }
    given = needed | {one.name: value}
    if one.owner is None:
        one.function(**given)
    elif one.function is one.owner:
        made = one.function(**given)
        if hasattr(made, "get_params"):  # estimators check in fit, as scikit-learn asks
            made.fit(None, None)
    elif isinstance(inspect.getattr_static(one.owner, one.function.__name__), classmethod):
        getattr(one.owner, one.function.__name__)(**{name: value for name, value in given.items() if name != "cls"})
    else:
        maker = type("Bare", (one.owner,), {})  # an instance without any state
        maker.__abstractmethods__ = frozenset()
        getattr(one.owner, one.function.__name__)(object.__new__(maker), **given)


@pytest.mark.parametrize("one", FOUND, ids=str)
def test_only_booleans_are_booleans(one: Boolean) -> None:
    for value in BAD:
        if value is None and "None" in one.annotation:
            continue
        with pytest.raises(TypeError, match=f"{one.name} must be True or False"):
            _call(one, value)


def test_a_refuted_mechanism_is_not_released_by_a_word() -> None:
    refuted = sdp.recipes.classic_gaussian(dim=3, sensitivity=1.0, epsilon=10.0, delta=1e-5)
    with pytest.raises(TypeError, match="unsafe"):
        refuted.release(np.zeros(3), unsafe="false")  # type: ignore[arg-type]
    with pytest.raises(sdp.RefutedError):
        refuted.release(np.zeros(3), unsafe=np.False_)  # type: ignore[arg-type]
    assert refuted.release(np.zeros(3), unsafe=np.True_).unsafe is True  # type: ignore[arg-type]


def test_zeros_are_not_released_by_a_word() -> None:
    with pytest.raises(TypeError, match="exact_zeros"):
        sdp.calibrate("gaussian", sdp.Box([1.0, 0.0]), epsilon=1.0, delta=1e-6, exact_zeros="no")  # type: ignore[arg-type]


def test_numpys_booleans_are_booleans() -> None:
    assert boolean("x", np.True_) is True
    assert boolean("x", np.False_) is False
