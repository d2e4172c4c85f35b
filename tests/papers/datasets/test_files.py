"""Finding and checking files: what is missing, wrong or packed anew, and loaders on small files written here."""

import bz2
import gzip
import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.papers.datasets.helpers import idx_bytes, svmlight_bytes

from shapedp import datasets as ds
from shapedp.papers.datasets import base, files, images, texts
from shapedp.papers.datasets.cards import CARDS
from shapedp.papers.datasets.files import read

LOADERS = sorted(name for name in ds.__all__ if name.startswith("load_"))
CARD = CARDS["mnist"]
NAME = "mnist/train-labels-idx1-ubyte.gz"
CONTENT = idx_bytes(np.arange(9, dtype="u1"))


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHAPEDP_DATA", raising=False)


def expect(monkeypatch: pytest.MonkeyPatch, name: str, content: bytes) -> None:
    """Make the table of checksums expect this content."""
    packed = gzip.compress(content, mtime=0) if name.endswith(".gz") else content
    sums = [hashlib.sha256(data).hexdigest() for data in (packed, content)]
    monkeypatch.setitem(files.FILES, name, files.Stored(sums[0], len(content), sums[1]))


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("loader", LOADERS)
def test_a_missing_file_names_what_is_needed(loader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = CARDS[loader.removeprefix("load_")]
    load = getattr(ds, loader)
    with pytest.raises(ds.MissingDataError, match="SHAPEDP_DATA is not set"):
        load()
    monkeypatch.setenv("SHAPEDP_DATA", str(tmp_path))
    for arguments in ((), (tmp_path,), (str(tmp_path),)):
        with pytest.raises(FileNotFoundError) as caught:
            load(*arguments)
        assert isinstance(caught.value, ds.MissingDataError)
        message = str(caught.value)
        for part in ("SHAPEDP_DATA", str(tmp_path), "does not exist", card.source, card.licence, card.title):
            assert part in message


def test_a_wrong_folder_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ds.MissingDataError, match="is not a folder"):
        ds.load_mnist(tmp_path / "nowhere")
    path = put(tmp_path, "mnist/train-images-idx3-ubyte.gz", b"")
    with pytest.raises(ds.MissingDataError, match="is not a folder"):
        ds.load_mnist(path)
    with pytest.raises(ds.MissingDataError, match="give the folder above it"):
        ds.load_mnist(path.parent)


def test_checksums_come_before_parsing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expect(monkeypatch, NAME, CONTENT)
    packed = gzip.compress(CONTENT, mtime=0)
    put(tmp_path, NAME, packed)
    assert read(NAME, tmp_path) == CONTENT
    put(tmp_path, NAME, gzip.compress(CONTENT, compresslevel=1, mtime=12345))  # packed anew: same content
    assert read(NAME, tmp_path) == CONTENT
    changed = CONTENT[:-1] + b"\xff"
    for wrong in (gzip.compress(changed), packed[:-3], packed[:15], b"", b"<html>not found</html>"):
        put(tmp_path, NAME, wrong)
        with pytest.raises(ds.ChecksumError, match="sha256") as caught:
            read(NAME, tmp_path)
        assert hashlib.sha256(wrong).hexdigest() in str(caught.value)
        assert CARD.source in str(caught.value)
    put(tmp_path, NAME, gzip.compress(CONTENT + b"\0" * 1000))
    with pytest.raises(ds.ChecksumError, match="more than the expected"):
        read(NAME, tmp_path)


def test_unpacked_files_are_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expect(monkeypatch, NAME, CONTENT)
    plain = NAME.removesuffix(".gz")
    put(tmp_path, plain, CONTENT)
    assert read(NAME, tmp_path) == CONTENT
    put(tmp_path, plain, CONTENT + b"\0")
    with pytest.raises(ds.ChecksumError, match="its content differs too"):
        read(NAME, tmp_path)


def test_mnist_from_small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(256, size=(8, 28, 28), dtype=np.uint8), rng.integers(10, size=8, dtype=np.uint8)
    for part, rows in (("train", slice(0, 5)), ("t10k", slice(5, 8))):
        for kind, array in (("images-idx3", x[rows]), ("labels-idx1", y[rows])):
            name = f"mnist/{part}-{kind}-ubyte.gz"
            expect(monkeypatch, name, idx_bytes(array))
            put(tmp_path, name, gzip.compress(idx_bytes(array)))
    data = ds.load_mnist(tmp_path)
    np.testing.assert_array_equal(data.x, x)
    np.testing.assert_array_equal(data.target, y)
    np.testing.assert_array_equal(data.split("test")[0], x[5:])
    assert data.data is data.x
    with pytest.raises(KeyError, match="'train', 'test'"):
        data.split("validation")


def test_pickled_npz_is_refused_by_the_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "cifar100/cifar100_classes_3_8.npz"
    path = put(tmp_path, name, b"")
    np.savez(path, x=np.array([{}], dtype=object), y=np.zeros(1))
    expect(monkeypatch, name, path.read_bytes())
    with pytest.raises(ds.DataFormatError, match="pickle is refused"):
        ds.load_cifar100(tmp_path)


RATINGS = "1::1193::5::978300760\n1::661::3::978302109\n".encode("latin-1")


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("place", ["movielens_1m/ratings.dat", "ml-1m/ratings.dat", "ml-1m.zip"])
def test_movielens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    content = RATINGS
    if place.endswith(".zip"):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("ml-1m/ratings.dat", RATINGS)
        content = packed.getvalue()
    put(tmp_path, place, content)
    with pytest.raises(ds.ChecksumError, match=r"md5 .* expected .*grouplens"):
        ds.load_movielens_1m(tmp_path)
    monkeypatch.setitem(texts.MOVIELENS_MD5, Path(place).name, md5(content))
    monkeypatch.setitem(texts.MOVIELENS_MD5, "ratings.dat", md5(RATINGS))
    data = ds.load_movielens_1m(tmp_path)
    np.testing.assert_array_equal(data.x, [[1, 1193], [1, 661]])
    np.testing.assert_array_equal(data.y, [5, 3])
    np.testing.assert_array_equal(data.extra["time"], [978300760, 978302109])


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
@pytest.mark.parametrize(
    ("loader", "place", "features", "constant"),
    [
        ("load_real_sim", "real_sim/real-sim", 20958, "REAL_SIM_ROWS"),
        ("load_rcv1_train", "rcv1/rcv1_train.binary", 47236, "RCV1_ROWS"),
    ],
)
def test_libsvm_files(tmp_path, monkeypatch, suffix, pack, loader, place, features, constant) -> None:  # type: ignore[no-untyped-def]
    x, y = np.zeros((3, features)), np.array([1, -1, 1])
    x[0, 0], x[2, -1] = 0.25, 0.75
    put(tmp_path, place + suffix, pack(svmlight_bytes(x, y)))
    load = getattr(ds, loader)
    with pytest.raises(ds.DataFormatError, match="rows, got 3"):
        load(tmp_path)
    monkeypatch.setattr(texts, constant, 3)
    data = load(tmp_path)
    assert data.x.shape == (3, features)
    assert data.x[2, features - 1] == 0.75
    np.testing.assert_array_equal(data.y, y)
    if suffix:
        put(tmp_path, place + suffix, pack(svmlight_bytes(x, y))[:-5])
        with pytest.raises(ds.DataFormatError, match="cut short or damaged"):
            load(tmp_path)


def test_full_cifar10(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(10, size=12, dtype=np.uint8)
    planes = rng.integers(256, size=(12, 3072), dtype=np.uint8)
    names = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]
    for k, name in enumerate(names):
        rows = slice(2 * k, 2 * k + 2)
        put(tmp_path, f"cifar10/{name}", np.column_stack([labels[rows], planes[rows]]).tobytes())
    with pytest.raises(ds.DataFormatError, match="must hold 10000 images, got 2"):
        ds.load_cifar10_full(tmp_path)
    monkeypatch.setattr(images, "CIFAR_BATCH", 2)
    data = ds.load_cifar10_full(tmp_path)
    np.testing.assert_array_equal(data.x[:, :, :, 1].reshape(12, -1), planes[:, 1024:2048])
    np.testing.assert_array_equal(data.split("test")[1], labels[10:])


def test_padding_of_reviews() -> None:
    tokens, offsets = np.arange(1, 8, dtype=np.uint16), np.array([0, 3, 3, 7])
    np.testing.assert_array_equal(texts.pad(tokens, offsets, 2), [[1, 2], [0, 0], [4, 5]])
    np.testing.assert_array_equal(texts.pad(tokens, offsets, 5), [[1, 2, 3, 0, 0], [0] * 5, [4, 5, 6, 7, 0]])


def test_dataset_is_frozen_and_checked() -> None:
    data = base.Dataset("toy", np.zeros((3, 2)), np.zeros(3), feature_names=("a", "b"), splits={"all": slice(0, 3)})
    with pytest.raises(AttributeError):
        data.x = np.ones((3, 2))  # type: ignore[misc]
    with pytest.raises(TypeError):
        data.splits["more"] = slice(0, 1)  # type: ignore[index]
    assert "toy" in repr(data)
    assert "(3, 2)" in repr(data)
    with pytest.raises(ValueError, match="one target per row"):
        base.Dataset("toy", np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(ValueError, match="feature_names"):
        base.Dataset("toy", np.zeros((3, 2)), np.zeros(3), feature_names=("a",))
    lower, upper = base.limits([0, -np.inf], [1, np.inf])
    assert not lower.flags.writeable
    assert not upper.flags.writeable
    for bad in (([1], [0]), ([np.nan], [1])):
        with pytest.raises(ValueError, match="lower bounds"):
            base.limits(*bad)


def test_options_are_checked(tmp_path: Path) -> None:
    for load, options in (
        (ds.load_adult, {"missing": "impute"}),
        (ds.load_bike_sharing, {"every": "week"}),
        (ds.load_kddcup99, {"target": "normal"}),
        (ds.load_imdb, {"length": 0}),
    ):
        with pytest.raises(ValueError, match=next(iter(options))):
            load(tmp_path, **options)


def test_import_needs_numpy_and_scipy_only() -> None:
    code = (
        "import sys; [sys.modules.__setitem__(name, None) for name in ('pandas', 'sklearn', 'torch', 'pyarrow')]; "
        "import shapedp.papers.datasets; print(len(shapedp.papers.datasets.__all__))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
