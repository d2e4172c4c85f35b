"""Values that print otherwise than they are: members of enumerations, subclasses, long doubles of numpy."""

from __future__ import annotations

from enum import Enum, IntEnum, StrEnum

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import shapedp as sdp
from shapedp.boundary.cells import identity
from shapedp.boundary.values import plainest
from shapedp.workloads import Workload

CLAIM = {"epsilon": 1.0, "delta": 1e-6}


class Sex(str, Enum):  # noqa: UP042
    F = "female"
    M = "male"


class Word(StrEnum):
    F = "female"
    M = "male"


class Grade(IntEnum):
    LOW = 1
    HIGH = 2


class Rate(float, Enum):
    HALF = 0.5


class Quiet(str):
    """A text that shows none of itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'?'"

    __str__ = __repr__


class Loud(float):
    """A float that says that it is another."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "7.0"


FRAME = pd.DataFrame({"s": ["female", "male", "female"], "n": [1, 2, 2], "x": [0.5, 1.5, 7.0]})


def table(**more):
    return sdp.table(FRAME, person=None, bounds={"x": (0, 10)}, types={"s": "text"}, **more)


def exact(t, *questions):
    tables = t.plan(*questions, **CLAIM).exact_tables().tables
    return [found[..., 0].reshape(-1).tolist() for found in tables.values()]


@pytest.mark.parametrize("kind", [Sex, Word])
def test_members_of_enumerations_are_their_texts(kind):
    """They were compared as "Sex.F", and no row was equal."""
    t = table(domains={"s": list(kind)})
    assert t.attributes["s"].labels == ("female", "male")
    assert all(type(one) is str for one in t.attributes["s"].labels)
    assert exact(t, t.group_by("s").count()) == [[2, 1]]
    for condition in (sdp.col("s") == kind.F, sdp.col("s").isin([kind.F]), sdp.col("s") != kind.M):
        found = table().where(condition)
        assert exact(found, found.count()) == [[2]]
    assert repr(sdp.col("s") == kind.F) == "(s == 'female')"


def test_numbers_of_enumerations_are_numbers():
    t = table(domains={"n": list(Grade)})
    assert exact(t, t.group_by("n").count()) == [[1, 2]]
    for condition in (sdp.col("n") == Grade.HIGH, sdp.col("x") != Rate.HALF, sdp.col("x") > Loud(1.0)):
        found = table().where(condition)
        assert exact(found, found.count()) == [[2]]


def test_names_may_be_members():
    class C(str, Enum):  # noqa: UP042
        SEX = "s"
        X = "x"
        N = "n"

    t = sdp.table(FRAME, person=C.N, bounds={C.X: (0, 10)}, domains={C.SEX: ["female", "male"]}, types={C.SEX: "text"})
    assert exact(t, t.group_by(C.SEX).mean(C.X))[0] is not None
    assert "'n'" in t.sentence
    found = t.group_by(C.SEX).agg(sdp.mean(C.X)).release(epsilon=50.0, delta=1e-6)
    assert list(found.columns)[:2] == ["s", "mean_x"]
    assert t.where(sdp.col(C.X) > 1).top_k(C.SEX, 1).release(epsilon=50.0, delta=0.0).columns["s"]


def test_two_conditions_stay_two():
    """Those of equal `repr` became one: [1, 1] for [2, 1]."""
    t = table()
    one, other = (t.where(sdp.col("s") == Quiet(word)).count() for word in ("female", "male"))
    made = t.plan(one, other, **CLAIM)
    assert len(made.layout.features) == 2
    (sums,) = made.exact_tables().tables.values()
    steps = [round(1 / feature.measure.step) for feature in made.layout.features]
    assert [int(total) // step for total, step in zip(sums[1:], steps, strict=True)] == [2, 1]


def test_long_doubles_are_read_or_refused():
    found = table().where(sdp.col("x") > np.longdouble(1))
    assert exact(found, found.count()) == [[2]]
    between = np.longdouble(1) + np.finfo(np.longdouble).eps
    if float(between) == between:
        pytest.skip("long doubles are floats here")
    for refused in (lambda: sdp.col("x") > between, lambda: sdp.col("x").isin([1.0, between])):
        with pytest.raises(ValueError, match="no float holds"):
            refused()
    with pytest.raises(ValueError, match="no float holds"):
        sdp.table(FRAME, person=None, domains={"x": [0.5, between]})


@pytest.mark.parametrize("odd", [np.longdouble("inf"), np.longdouble("nan"), np.timedelta64(1, "s"), None, 1j])
def test_what_is_no_value_is_refused(odd):
    with pytest.raises((TypeError, ValueError), match=r"finite number|no float holds"):
        sdp.col("x") > odd  # noqa: B015


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (Sex.F, "female"), (Grade.LOW, 1), (Rate.HALF, 0.5), (Quiet("a"), "a"), (Loud(2.5), 2.5), (np.str_("a"), "a"),
        (np.float32(0.5), 0.5), (np.int8(3), 3), (np.bool_(True), True), (np.longdouble(2), 2.0),
    ],
)  # fmt: skip
def test_a_plain_value_is_of_python(given, want):
    assert plainest(given) == want
    assert type(plainest(given)) is type(want)


def test_cells_are_their_texts_too():
    """A pandas column may hold members; ids of persons as well: two texts were one person, or one text two."""
    frame = pd.DataFrame({"s": [Sex.F, Sex.M, "female"], "id": [Quiet("a"), Quiet("b"), "a"]}, dtype=object)
    assert [identity(one) for one in frame.id] == ["a", "b", "a"]
    t = sdp.table(frame, person=None, domains={"s": ["female", "male"]})
    assert exact(t, t.group_by("s").count()) == [[2, 1]]
    people = sdp.table(frame, person="id")
    assert exact(people, people.count()) == [[2]]
    assert Workload({"s": ["female", "male"]}).marginal("s").exact(frame).tolist() == [2, 1]
