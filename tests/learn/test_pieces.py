"""What guards the sums of a collection: each piece once, one version everywhere, no error that tells of a record."""

from __future__ import annotations

import pickle
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from shapedp._version import __version__
from shapedp.learn.moments import Bounds, Partial, merged, moments, summed
from shapedp.tables import InMemory
from shapedp.tables.pieces import Found, PieceError, joined, total_of, worked
from shapedp.tables.sources import CHUNK
from shapedp.tables.spark import summed_piece

BOUNDS = Bounds(1.5, 1.0, 0.5)
NAMES = ("a", "b")


def batches(rows, step=100):
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        yield pa.record_batch({name: pa.array(part[:, i]) for i, name in enumerate((*NAMES, "y"))})


def piece(number, rows, version=__version__):
    return summed_piece(partial(summed, 2, BOUNDS), NAMES, "y", None, version, number, batches(rows))


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).normal(size=(3 * CHUNK, 3))


@pytest.fixture(scope="module")
def three(rows):
    return [piece(i, rows[i * CHUNK : (i + 1) * CHUNK]) for i in range(3)]


def test_pieces_in_any_order_give_the_local_bits(rows, three):
    want = moments(InMemory(rows[:, :2], rows[:, 2]), BOUNDS).gram
    for order in ([0, 1, 2], [2, 0, 1]):
        sent = [pickle.loads(pickle.dumps(three[i])) for i in order]
        found = total_of(joined(merged, [joined(merged, sent[:2]), sent[2]]))
        np.testing.assert_array_equal(found.moments().gram, want)
        assert len(pickle.dumps(sent[0])) < CHUNK * 8  # less than one column


def test_a_piece_that_comes_twice_is_refused(three):
    for found in ([three[0], three[1], three[0]], [joined(merged, three[:2]), three[1]]):
        with pytest.raises(PieceError, match="came twice"):
            total_of(joined(merged, found))


def test_a_piece_that_is_missing_is_refused(three):
    with pytest.raises(PieceError, match="missing"):
        total_of(joined(merged, [three[0], three[2]]))


def test_another_version_on_the_workers_is_refused(rows):
    found = piece(0, rows[:10], version="0.0.1")
    with pytest.raises(PieceError, match=rf"run shapedp {__version__}, and this process 0.0.1"):
        total_of(joined(merged, [found]))
    with pytest.raises(PieceError, match="this process"):
        worked(len, list, "0.0.1")


def test_what_goes_wrong_in_a_piece_is_told_without_a_cell(rows):
    def broken():
        yield from batches(rows[:100])
        raise OSError("cell 'a secret' is odd")

    def odd(table):
        raise TypeError("of the reader")

    failed = summed_piece(partial(summed, 2, BOUNDS), NAMES, "y", None, __version__, 1, broken())
    assert failed == Found((1,), None, failed="OSError")
    with pytest.raises(ValueError, match=r"could not be computed \(OSError\)") as caught:
        total_of(joined(merged, [failed, piece(0, rows[:10])]))
    assert "secret" not in str(caught.value)
    refused = summed_piece(odd, NAMES, "y", None, __version__, 0, batches(rows[:10]))
    with pytest.raises(PieceError, match="of the reader"):
        total_of(joined(merged, [failed, refused]))  # the first in number, in whatever order they come


def test_an_empty_piece_adds_nothing(rows, three):
    found = total_of(joined(merged, [*three, piece(3, rows[:0])]))
    np.testing.assert_array_equal(found.moments().gram, moments(InMemory(rows[:, :2], rows[:, 2]), BOUNDS).gram)


def test_a_merge_leaves_what_it_was_given():
    parts = [Partial(2, BOUNDS), Partial(2, BOUNDS)]
    for part in parts:
        part.add(np.ones((10, 2)), np.ones(10))
    first, second = merged(parts), merged(parts)
    assert first.records == second.records == 20
    assert first.pieces == 2
    np.testing.assert_array_equal(first.total.value(), second.total.value())


def test_refusing_many_pieces_depends_on_their_number_and_not_on_their_sizes(rows):
    """Where a value decides in which partition a record lies, a neighbour moves one record to another."""

    def refused(sizes):
        ends = np.cumsum([0, *sizes])
        found = [piece(i, rows[a:b]) for i, (a, b) in enumerate(pairwise(ends))]
        try:
            total_of(joined(merged, found)).moments()
        except ValueError as error:
            return str(error)
        return None

    even, odd = [2] * 100, [101] + [1] * 99
    assert refused(even) == refused(odd) == refused([200] + [0] * 99) is not None
    assert refused([20] * 60) is refused([1141] + [0] * 58 + [59]) is None
