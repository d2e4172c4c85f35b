"""What one person contributes when a person owns several rows: brute force over persons, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sensitivity.helpers import ADJACENCIES, DIM, FORMS, SETS, dense, exact, holds, minus, total

from shapedp.sensitivity import Box

IDS = {
    "integers": [7, 7, -3, 7, 2**62, -3, 7, 5, 5, 5],
    "unsigned": np.array([7, 7, 3, 7, 9, 3, 7, 5, 5, 5], dtype=np.uint8),
    "strings": ["ann", "ann", "bob", "ann", "", "bob", "ann", "eve", "eve", "eve"],
    "bytes": np.array([b"a", b"a", b"b", b"a", b"z", b"b", b"a", b"e", b"e", b"e"]),
    "objects": np.array(["ann", "ann", "bob", "ann", "a", "bob", "ann", "a\0", "a\0", "a\0"], dtype=object),
}


def rows_for(seed: int) -> np.ndarray:
    """Rows all alike in sign, so that a person's rows add up."""
    return np.abs(np.random.default_rng(seed).normal(size=(10, DIM))) * 5 + 1


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("max_rows", [1, 2, 5])
def test_first_rows_of_each_person_are_kept(ids, max_rows):
    clipped, _ = SETS["l2"].clip(rows_for(1), adjacency="add-remove", owner=IDS[ids], max_rows=max_rows)
    seen: dict[object, int] = {}
    for one, row in zip(list(IDS[ids]), clipped, strict=True):
        seen[one] = seen.get(one, 0) + 1
        assert row.any() == (seen[one] <= max_rows)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_person_moves_the_sum_by_no_more_than_declared(name, adjacency, max_rows, form):
    base, rows, ids = SETS[name], rows_for(2), np.array(IDS["strings"])
    make = FORMS[form]
    clipped, declared = base.clip(make(rows), adjacency=adjacency, owner=ids, max_rows=max_rows)
    whole = total(exact(clipped), DIM)
    reached = False
    for person in np.unique(ids):
        theirs = ids == person
        neighbour, owner = rows.copy(), ids
        if adjacency == "add-remove":
            neighbour, owner = rows[~theirs], ids[~theirs]
        elif adjacency == "zero-out":
            neighbour[theirs] = 0
        else:
            neighbour[theirs] *= -1
        again, _ = base.clip(make(neighbour), adjacency=adjacency, owner=owner, max_rows=max_rows)
        difference = minus(whole, total(exact(again), DIM))
        assert holds(declared, difference)
        reached |= not holds(declared.scaled(0.5 if name in ("l2", "ellipsoid", "blocks") else 0.9, None), difference)
    assert reached
    assert not holds(declared.scaled(0.999 / max_rows, None), whole)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_set_grows_by_what_a_person_owns(adjacency):
    factor = 2 if adjacency == "replace" else 1
    _, alone = Box([0.5, 3.0]).clip(np.ones((2, 2)), adjacency=adjacency)
    _, three = Box([0.5, 3.0]).clip(np.ones((2, 2)), adjacency=adjacency, owner=[1, 1], max_rows=3)
    assert alone.profile.tolist() == [0.5 * factor, 3.0 * factor]
    assert three.profile.tolist() == [1.5 * factor, 9.0 * factor]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(1, 4), st.sampled_from(ADJACENCIES), st.data())
def test_persons_in_any_order(ids, max_rows, adjacency, data):
    """A random person is removed, silenced or exchanged; everybody else's kept rows stay the same."""
    rows = np.array(
        data.draw(st.lists(st.lists(st.floats(-9, 9), min_size=2, max_size=2), min_size=len(ids), max_size=len(ids)))
    )
    base, owner = Box([0.1, 1.0]), np.array(ids)
    clipped, declared = base.clip(rows, adjacency=adjacency, owner=owner, max_rows=max_rows)
    theirs = owner == data.draw(st.sampled_from(ids))
    if adjacency == "add-remove":
        neighbour, left = rows[~theirs], owner[~theirs]
    else:
        neighbour, left = rows.copy(), owner
        neighbour[theirs] = 0 if adjacency == "zero-out" else -neighbour[theirs]
    again, _ = base.clip(neighbour, adjacency=adjacency, owner=left, max_rows=max_rows)
    others = dense(again) if adjacency == "add-remove" else dense(again)[~theirs]
    assert np.array_equal(others, clipped[~theirs])
    assert holds(declared, minus(total(exact(clipped), 2), total(exact(again), 2)))


@pytest.mark.parametrize(
    ("given", "error", "word"),
    [
        ({"owner": [1, 2]}, ValueError, "owner and max_rows"),
        ({"max_rows": 2}, ValueError, "owner and max_rows"),
        ({"owner": [1], "max_rows": 2}, ValueError, "owner"),
        ({"owner": np.array([[1], [2]]), "max_rows": 2}, ValueError, "owner"),
        ({"owner": np.array([True, False]), "max_rows": 2}, TypeError, "owner"),
        ({"owner": np.array([1, 2], dtype="M8[s]"), "max_rows": 2}, TypeError, "owner"),
        ({"owner": [1, 2], "max_rows": 0}, ValueError, "max_rows"),
        ({"owner": [1, 2], "max_rows": 1.0}, TypeError, "max_rows"),
        ({"owner": [1, 2], "max_rows": True}, TypeError, "max_rows"),
    ],
)
def test_bad_owners(given, error, word):
    with pytest.raises(error, match=word):
        SETS["l1"].clip(np.ones((2, DIM)), adjacency="add-remove", **given)
