"""Readers of the official formats: round trips of files written here, and what they refuse."""

import bz2
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from tests.papers.datasets.helpers import IDX_CODES, idx_bytes, npz_bytes, svmlight_bytes

from shapedp.papers.datasets import kddcup99
from shapedp.papers.datasets.base import DataFormatError
from shapedp.papers.datasets.files import unpacked
from shapedp.papers.datasets.formats import (
    encode,
    numbers,
    read_cifar_binary,
    read_columns,
    read_idx,
    read_npz,
    read_ratings,
    read_rows,
    read_svmlight,
    set_one_hot,
)


@pytest.mark.parametrize("kind", sorted(IDX_CODES))
@pytest.mark.parametrize("shape", [(7,), (3, 4, 5), (2, 0)])
def test_idx_round_trip(kind: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(-100, 100, shape).astype(kind)
    again = read_idx(idx_bytes(array))
    assert again.dtype == array.dtype
    np.testing.assert_array_equal(again, array)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b[:-1], "must have"),
        (lambda b: b + b"\0", "must have"),
        (lambda b: b[:6], "header"),
        (lambda b: b"", "not an IDX file"),
        (lambda b: b"\1" + b[1:], "not an IDX file"),
        (lambda b: b[:2] + b"\x07" + b[3:], "not an IDX file"),
        (lambda b: b[:4] + b"\xff" * 8 + b[12:], "must have"),
    ],
)
def test_idx_refuses_what_is_malformed(change, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataFormatError, match=message):
        read_idx(change(idx_bytes(np.arange(6, dtype="u1").reshape(2, 3))))


def test_npz_round_trip_and_refusals() -> None:
    a, b = np.arange(5, dtype=np.uint16), np.ones((2, 3), dtype=np.float32)
    arrays = read_npz(npz_bytes(a=a, b=b), ("a", "b"))
    np.testing.assert_array_equal(arrays["a"], a)
    assert arrays["b"].dtype == np.float32
    with pytest.raises(DataFormatError, match="lacks c"):
        read_npz(npz_bytes(a=a), ("a", "c"))
    for broken in (b"", b"no archive at all", npz_bytes(a=a)[:-40]):
        with pytest.raises(DataFormatError, match="npz"):
            read_npz(broken, ("a",))


def test_pickled_arrays_are_refused_and_never_run() -> None:
    ran: list[int] = []

    class Harmful:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return ran.append, (1,)

    content = npz_bytes(a=np.array([Harmful(), None], dtype=object))
    with pytest.raises(DataFormatError, match="pickle is refused"):
        read_npz(content, ("a",))
    assert ran == []


def test_svmlight_round_trip() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((40, 30)) * (rng.random((40, 30)) < 0.2)
    x[[0, 7, 39]] = 0  # rows without entries, at both ends too
    x[5, [0, 29]] = 1e-300, -2.5e17
    y = rng.choice([-1, 1], 40)
    sparse, labels = read_svmlight(svmlight_bytes(x, y), 30)
    np.testing.assert_array_equal(sparse.toarray(), x)
    np.testing.assert_array_equal(labels, y)


def test_svmlight_agrees_with_scikit_learn() -> None:
    sklearn_datasets = pytest.importorskip("sklearn.datasets")
    text = b"# head\n+1 1:0.5 3:-2e-3  # note\r\n\n-1\t2:7 \n+1\n-1 4:1.25\n\n"
    x, y = read_svmlight(text, 4)
    other, labels = sklearn_datasets.load_svmlight_file(io.BytesIO(text), n_features=4, zero_based=False)
    np.testing.assert_array_equal(x.toarray(), other.toarray())
    np.testing.assert_array_equal(y, labels)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n\n",
        b"1 0:3\n",
        b"1 5:3\n",
        b"1 2:3 2:4\n",
        b"1 3:1 2:1\n",
        b"1 2\n",
        b"1 2:3:4 5\n",
        b"2:3\n",
        b"1 1:\n",
        b"1 1.5:2\n",
        b"1 1:nan\n",
        b"1 1:x\n",
        b"1 1:--2\n",
        b"1 qid:3 1:2\n",
        b"1 1:2e\n",
    ],
)
def test_svmlight_refuses_what_is_malformed(text: bytes) -> None:
    with pytest.raises(DataFormatError):
        read_svmlight(text, 4)


def test_ratings_round_trip() -> None:
    table = np.array([[1, 1193, 5, 978300760], [6040, 3952, 1, 956704746]])
    text = "".join("::".join(map(str, row)) + "\n" for row in table).encode("latin-1")
    for variant in (text, text.replace(b"\n", b"\r\n"), text.rstrip()):
        np.testing.assert_array_equal(read_ratings(variant), table)


@pytest.mark.parametrize("text", [b"", b"1::2::3\n", b"1:2:3:4\n", b"1::2::x::4\n", b"1::2::::4\n", b"1::2::3::4::5\n"])
def test_ratings_refuse_what_is_malformed(text: bytes) -> None:
    with pytest.raises(DataFormatError, match="ratings"):
        read_ratings(text)


def test_cifar_binary_round_trip() -> None:
    rng = np.random.default_rng(2)
    images, labels = rng.integers(256, size=(3, 32, 32, 3), dtype=np.uint8), np.array([0, 9, 4], dtype=np.uint8)
    content = b"".join(bytes([k]) + image.transpose(2, 0, 1).tobytes() for k, image in zip(labels, images, strict=True))
    x, y = read_cifar_binary(content)
    np.testing.assert_array_equal(x, images)
    np.testing.assert_array_equal(y, labels)
    for broken, message in ((content[:-1], "whole records"), (b"", "whole records"), (b"\x0a" + content[1:], "0..9")):
        with pytest.raises(DataFormatError, match=message):
            read_cifar_binary(broken)


def test_delimited_text() -> None:
    columns = read_columns(b'"a b";"c"\n1;x\n2.5; y \n', delimiter=";")
    assert columns == {"a b": ["1", "2.5"], "c": ["x", "y"]}
    np.testing.assert_array_equal(numbers(columns, ("a b",)), [[1.0], [2.5]])
    with pytest.raises(DataFormatError, match="not a number"):
        numbers(columns, ("c",))
    with pytest.raises(DataFormatError, match="lacks the columns z"):
        numbers(columns, ("z",))
    assert read_rows(b"|comment\n1, ?\n\n2, b\n", 2) == [["1", "?"], ["2", "b"]]
    with pytest.raises(DataFormatError, match="record 2 has 1 fields"):
        read_rows(b"1,2\n3\n", 2)
    with pytest.raises(DataFormatError, match="twice"):
        read_columns(b"a,a\n1,2\n")


def test_categories_are_fixed_lists() -> None:
    codes = encode(["b", "?", "a"], ("a", "b", "never"), missing="?")
    out = np.zeros((3, 3))
    set_one_hot(out, codes)
    np.testing.assert_array_equal(out, [[0, 1, 0], [0, 0, 0], [1, 0, 0]])
    with pytest.raises(DataFormatError, match="documented categories"):
        encode(["c"], ("a", "b"))


def test_packed_data_cut_short_damaged_or_too_large() -> None:
    content = bytes(range(256)) * 64
    packed, path = gzip.compress(content), Path("file.gz")
    assert unpacked(packed, path) == unpacked(packed, path, len(content)) == content
    half = len(content) // 2
    assert unpacked(gzip.compress(content[:half]) + gzip.compress(content[half:]), path, len(content)) == content
    wrong_sum = packed[:-8] + bytes(4) + packed[-4:]
    for broken in (packed[:-1], packed[:-9], packed[:20], b"plain text", wrong_sum):
        with pytest.raises(DataFormatError, match="cut short or damaged"):
            unpacked(broken, path, len(content))
    with pytest.raises(DataFormatError, match="more than the expected"):
        unpacked(packed, path, len(content) - 1)
    for broken in (b"BZh9 not really", bz2.compress(content)[:-3]):
        with pytest.raises(DataFormatError, match="cut short or damaged"):
            unpacked(broken, Path("file.bz2"))
    assert unpacked(packed, Path("file.npz")) == packed


KDD_LINE = (
    b"0,tcp,http,SF,181,5450,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,8,8,0.00,0.00,0.00,0.00,1.00,0.00,0.00,9,9,1.00,0.00,"
    b"0.11,0.00,0.00,0.00,0.00,0.00,normal.\n"
)
KDD_OTHER = (
    b"58329,icmp,ecr_i,SF,693375640,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,511,511,0.07,0.00,0.00,0.00,1.00,0.00,0.29,255,"
    b"255,1.00,0.00,1.00,0.00,0.57,0.00,0.00,0.58,smurf.\n"
)


def test_connections_are_parsed() -> None:
    values, codes, labels = kddcup99.parse((KDD_LINE + KDD_OTHER) * 5 + KDD_LINE.rstrip())
    assert values.shape == (11, 38)
    for k, line in ((0, KDD_LINE), (9, KDD_OTHER), (10, KDD_LINE)):
        fields = line.decode().rstrip(".\n").split(",")
        np.testing.assert_array_equal(values[k], [float(fields[c]) for c in kddcup99.NUMERIC])
        assert fields[41] == kddcup99.LABELS[labels[k]]
        for column, code, names in zip(kddcup99.SYMBOLIC, codes[k], kddcup99.CATEGORIES.values(), strict=True):
            assert names[code] == fields[column]


def test_every_decimal_rate_is_read_exactly() -> None:
    lines = b"".join(KDD_LINE.replace(b"0.11", f"{k / 100:.2f}".encode()) for k in range(101))
    values, _, _ = kddcup99.parse(lines)
    column = kddcup99.NUMERIC.index(kddcup99.COLUMNS.index("dst_host_same_src_port_rate"))
    np.testing.assert_array_equal(values[:, column], [float(f"{k / 100:.2f}") for k in range(101)])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"tcp", b"sctp", "documented values"),
        (b"http", b"a_service_with_a_name_that_is_cut", "documented values"),
        (b"normal.", b"normal", "documented values"),
        (b"181,", b"", "42 fields"),
        (b"181", b"", "42 fields"),
        (b"181", b"1x3", "42 fields"),
        (b"0.11", b"0.1.1", "42 fields"),
        (b"0.11", b"0,11", "42 fields"),
    ],
)
def test_connections_refuse_what_is_malformed(old: bytes, new: bytes, message: str) -> None:
    with pytest.raises(DataFormatError, match=message):
        kddcup99.parse(KDD_OTHER + KDD_LINE.replace(old, new, 1) + KDD_OTHER)


def test_fixed_lists_are_sorted_for_the_lookup() -> None:
    for names in (*kddcup99.CATEGORIES.values(), kddcup99.LABELS):
        assert [name.encode() for name in names] == sorted(name.encode() for name in names)
    assert [len(names) for names in kddcup99.CATEGORIES.values()] == [3, 70, 11]
    assert len(kddcup99.COLUMNS) == 41
    assert len(kddcup99.LABELS) == 23
