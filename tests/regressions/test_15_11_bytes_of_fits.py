"""A search by bytes over everything a fit leaves, whether it succeeds or stops anywhere on its way.

Every estimator with every solver: pickles, copies, what can be reached from the estimator and from the library's
own modules, certificates, reports, ledgers, the files of the command line, warnings, logs and errors. What is looked
for is every value of every record: its eight bytes, its neighbours in float32, and its digits.
"""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import io
import json
import logging
import pickle
import re
import sys
import traceback
import types
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse

from shapedp import learn
from shapedp.boundary.documents import decode, encode
from shapedp.cli.main import main
from shapedp.ledger import Ledger
from shapedp.privacy import Certificate

RECORDS, WIDTH = 60, 3
CLAIM: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5}
STOPS = 8  # of each estimator
NAMES = [f"column{i}" for i in range(WIDTH)]


def data() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Records inside all bounds, so that nothing clips them beyond recognition, and a target."""
    rng = np.random.default_rng(15)
    return rng.uniform(0.2, 0.5, (RECORDS, WIDTH)), rng.uniform(0.2, 0.9, RECORDS)


ROWS, TARGET = data()
LABELS = (np.median(TARGET) < TARGET).astype(np.int64)
_CELLS = np.concatenate([ROWS.ravel(), TARGET])
_SHORT = [ROWS.astype(np.float32), ROWS.T.astype(np.float32), TARGET[None].astype(np.float32)]
NEEDLES = {cell.tobytes() for cell in _CELLS}
PAIRS = {line[k : k + 2].tobytes() for table in _SHORT for line in table for k in range(len(line) - 1)}
DIGITS = {f"{cell:.9f}"[2:9].encode() for cell in _CELLS}


_WORDS = np.sort(np.frombuffer(b"".join(sorted(NEEDLES | PAIRS)), dtype="<u8"))


def _holds_word(raw: bytes) -> bool:
    """Whether one of the words of eight bytes stands anywhere."""
    for k in range(min(8, len(raw) - 7)):
        words = np.frombuffer(raw, dtype="<u8", offset=k, count=(len(raw) - k) // 8)
        at = np.minimum(np.searchsorted(_WORDS, words), _WORDS.size - 1)
        if (_WORDS[at] == words).any():
            return True
    return False


@pytest.mark.parametrize("k", range(9))
def test_a_word_is_found_wherever_it_stands(k: int) -> None:
    for word in sorted(NEEDLES)[:20]:
        assert _holds_word(b"a" * k + word + b"bc")
        assert not _holds_word(b"a" * k + word[:7] + b"bc")


def found_in(raw: bytes) -> bool:
    """Whether a value of a record is among the bytes."""
    return _holds_word(raw) or bool(DIGITS & set(_digits(raw)))


def found_among(pieces: Iterable[bytes]) -> bool:
    """Whether a value of a record is in one of the pieces, searched in one go."""
    return found_in(b"\n".join(pieces))


def _digits(raw: bytes) -> Iterator[bytes]:
    for run in re.findall(rb"0\.([0-9]{7,})", raw):
        yield run[:7]


def unpacked(document: Any) -> Iterator[bytes]:
    """A JSON document as text, and the arrays packed in it as bytes."""
    yield json.dumps(document).encode()
    if isinstance(document, dict) and "float64" in document:
        yield decode("array", document).tobytes()
    for one in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        if isinstance(one, dict | list):
            yield from unpacked(one)


_STOP = (type, types.FrameType, types.CodeType, types.BuiltinFunctionType)


def _passed(one: Any) -> bool:
    """Whether the search goes on through an object: not through other libraries."""
    if isinstance(one, types.ModuleType):
        return one.__name__.startswith("shapedp")
    if isinstance(one, dict):
        return str(one.get("__name__", "shapedp")).partition(".")[0] == "shapedp"
    return not isinstance(one, _STOP)


def reached(*start: Any) -> Iterator[Any]:
    """All arrays and words that can be reached, the caches of functions included; not through other libraries."""
    seen, wave = {id(one) for one in start}, list(start)
    while wave:
        yield from (one for one in wave if isinstance(one, np.ndarray | str | bytes | float))
        others = gc.get_referents(*wave) + [one.base for one in wave if isinstance(one, np.ndarray)]
        new = {id(one): one for one in others if id(one) not in seen}
        seen.update(new)
        wave = [one for one in new.values() if _passed(one)]


def held(one: Any) -> bytes:
    if isinstance(one, np.ndarray):
        return one.tobytes() if one.dtype.kind in "fiu" else b""
    if isinstance(one, str):
        return one.encode("utf-8", "replace")
    return one if isinstance(one, bytes) else np.float64(one).tobytes()


def library() -> list[Any]:
    return [vars(module) for name, module in list(sys.modules.items()) if name.partition(".")[0] == "shapedp"]


def left_by(estimator: Any) -> Iterator[tuple[str, bytes]]:
    for protocol in (2, 5):
        yield f"pickle {protocol}", pickle.dumps(estimator, protocol=protocol)
    yield "deepcopy", pickle.dumps(copy.deepcopy(estimator))
    buffer = io.BytesIO()
    joblib.dump(estimator, buffer)
    yield "joblib", buffer.getvalue()
    yield "repr", (repr(estimator) + repr(vars(estimator)) + estimator._repr_html_()).encode()
    yield "reached", b"\n".join(map(held, reached(estimator)))


CLASSIFIER: dict[str, Any] = {**CLAIM, "feature_bound": 1.0, "classes": [0, 1], "noise": "gaussian"}
REGRESSION: dict[str, Any] = {**CLAIM, "feature_bound": 1.0, "target_bound": 1.0}
BY_COLUMN: dict[str, Any] = {**CLAIM, "feature_bounds": 1.0, "target_bound": 1.0, "passes": 2}
OUTPUT = learn.LogisticRegression(**CLASSIFIER, solver="output")


def estimators() -> dict[str, Any]:
    linear = ("mixing", "mixing-paper", "adassp", "adassp-joint", "suffstats", "sheffet", "sheffet-rdp", "auto")
    linear += ("refined", "hessian-mixing", "hessian-mixing-paper", "boosted", "descent")
    found: dict[str, Any] = {f"linear {s}": learn.LinearRegression(**REGRESSION, solver=s, unsafe=True) for s in linear}
    for solver in learn.LogisticRegression.solvers:
        found[f"logistic {solver}"] = learn.LogisticRegression(**CLASSIFIER, solver=solver, unsafe=True)
    for solver in learn.HuberSVC.solvers:
        found[f"svc {solver}"] = learn.HuberSVC(**CLASSIFIER, solver=solver)
    found |= {"lasso": learn.Lasso(**BY_COLUMN), "ridge": learn.Ridge(**BY_COLUMN)}
    found["elastic"] = learn.ElasticNet(**REGRESSION)
    found["counts"] = learn.PoissonRegressor(**REGRESSION)
    found["amounts"] = learn.GammaRegressor(**REGRESSION)
    found["bayes"] = learn.GaussianNB(**CLAIM, low=0.0, high=1.0, classes=[0, 1])
    found["means"] = learn.KMeans(2, **CLAIM, low=0.0, high=1.0)
    found["pca"] = learn.PCA(2, **CLAIM, feature_bound=1.0)
    found["scaler"] = learn.PrivateScaler(**CLAIM, low=0.0, high=1.0)
    found["imputer"] = learn.PrivateImputer(**CLAIM, low=0.0, high=1.0)
    found["pipeline"] = learn.make_pipeline(found["scaler"], learn.LinearRegression(**REGRESSION))
    found["search"] = learn.PrivateSearch(OUTPUT, {"regularization": [0.1, 1.0]}, **CLAIM, repeats=2.0)
    return found


def target_of(estimator: Any) -> Any:
    kind = getattr(estimator, "_estimator_type", None) or estimator.__sklearn_tags__().estimator_type
    return LABELS if kind == "classifier" else TARGET


def containers(y: Any) -> dict[str, tuple[Any, Any]]:
    frame = pd.DataFrame(ROWS, columns=NAMES)
    return {
        "array": (ROWS.copy(), y.copy()),
        "float32": (ROWS.astype(np.float32), y.copy()),
        "frame": (frame, pd.Series(y)),
        "sparse": (sparse.csr_array(ROWS), y.copy()),
    }


def taken(estimator: Any, y: Any) -> dict[str, tuple[Any, Any]]:
    """The containers that an estimator reads."""
    dense = type(estimator).__name__ in ("PrivateScaler", "PrivateImputer", "PrivatePipeline", "GaussianNB", "KMeans")
    return {name: given for name, given in containers(y).items() if name != "sparse" or not dense}


def test_every_estimator_is_here() -> None:
    public = {name for name in learn.__all__ if hasattr(getattr(learn, name), "fit")}
    stateless = {"PublicScaler", "PublicOneHot"}  # they release nothing
    assert {type(one).__name__ for one in estimators().values()} == public - stateless
    for one in (learn.PublicScaler(0, 1).fit(ROWS), learn.PublicOneHot([[0.5]] * WIDTH).fit(ROWS)):
        assert {name for name in vars(one) if name.endswith("_")} == {"n_features_in_"}


def test_the_search_finds_what_is_there() -> None:
    for raw in (ROWS.tobytes(), ROWS.T.tobytes(), ROWS[5].astype(np.float32).tobytes(), repr(ROWS[7:8]).encode()):
        assert found_in(raw)
    assert found_in(repr(float(TARGET[3])).encode())
    assert not found_in(np.random.default_rng(0).uniform(0.2, 0.9, 3000).tobytes())
    model = learn.Ridge(**BY_COLUMN)
    model.kept_ = {"deep": [lambda rows=ROWS[4:9]: rows]}
    assert found_among(map(held, reached(model)))
    packed = encode(np.resize(ROWS, 600))
    assert not found_in(json.dumps(packed).encode())
    assert any(found_in(raw) for raw in unpacked([{"a": packed}]))
    cached = functools.cache(lambda size: ROWS[:size])
    cached(9)
    assert found_among(map(held, reached({"__name__": "shapedp.some", "cached": cached})))


@pytest.mark.parametrize("name", estimators())
def test_a_fit_leaves_no_record(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for given, (x, y) in taken(estimators()[name], target_of(estimators()[name])).items():
        estimator = estimators()[name]
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            estimator.fit(x, y)
        del x, y
        for what, raw in left_by(estimator):
            assert not found_in(raw), (given, what)
        assert not found_in("".join(f"{one.message!r} {one}" for one in raised).encode()), given
        certificate = estimator.privacy_
        for raw in (*unpacked(certificate.to_json()), certificate.explain().encode(), repr(certificate).encode()):
            assert not found_in(raw), given
    assert not found_in(caplog.text.encode())
    assert not list(tmp_path.iterdir())
    assert not found_among(map(held, reached(*library())))


class Stop(Exception):
    """What a fit is stopped with."""


class Stopping:
    """Raises `Stop` as the library is about to make its call of that number within `shapedp.learn` and below."""

    def __init__(self, number: int | None) -> None:
        self.number, self.calls = number, 0

    def __call__(self, frame: types.FrameType, event: str, argument: Any) -> None:
        generator = frame.f_code.co_flags & inspect.CO_GENERATOR  # called again to be closed, where nobody can catch
        if event == "call" and "/shapedp/" in frame.f_code.co_filename and not generator:
            self.calls += 1
            if self.calls == self.number:
                raise Stop

    def __enter__(self) -> Stopping:
        sys.settrace(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)


def _said(error: BaseException | None) -> Iterator[bytes]:
    while error is not None:
        yield "".join(traceback.format_exception(error)).encode()
        yield repr((error.args, vars(error))).encode()
        error = error.__cause__ or error.__context__


def _stopped(estimator: Any, number: int, x: Any, y: Any) -> tuple[Any, list[bytes]]:
    """An estimator whose fit was stopped at that call, or earlier where a random number of runs ended before it."""
    while number:
        stopped = copy.deepcopy(estimator)
        try:
            with Stopping(number):
                stopped.fit(x, y)
        except Stop as error:
            return stopped, list(_said(error))
        number //= 2
    raise AssertionError("the first call of a fit was not stopped")


@pytest.mark.parametrize("name", estimators())
def test_a_fit_that_stops_leaves_no_record(name: str) -> None:
    """Stopped at calls spread over the whole fit, also where it was fitted before; the certificate goes with it."""
    x, y = containers(target_of(estimators()[name]))["frame"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimators()[name].fit(x, y)  # what is computed once and kept
        with Stopping(None) as watch:
            estimators()[name].fit(x, y)
        for number in sorted({1 + round(share * (watch.calls - 1)) for share in np.linspace(0, 1, STOPS)}):
            estimator, said = _stopped(estimators()[name], number, x, y)
            assert not any(map(found_in, said)), number
            for what, raw in left_by(estimator):
                assert not found_in(raw), (number, what)
    del x, y
    assert not found_among(map(held, reached(*library())))


def test_reports_ledgers_and_files_of_a_fit_hold_no_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    out.mkdir()
    monkeypatch.setenv("TMPDIR", str(out))
    monkeypatch.chdir(out)
    people = [f"Nadia Quill {k:03d}" for k in range(RECORDS)]  # a column that no fit was told to read
    table = pd.DataFrame(ROWS, columns=NAMES).assign(target=TARGET, label=LABELS, person=people)
    table.to_csv(data / "people.csv", index=False)
    table.to_parquet(data / "people.parquet")
    ledger = Ledger.create(
        out / "budget.db", dataset="people", epsilon=99.0, delta=1e-3, adjacency="zero-out", rule="basic"
    )
    claim = ["--epsilon", "3", "--delta", "1e-5", "--feature-bound", "1", "--features", ",".join(NAMES)]
    linear, logistic = ["--target", "target", "--target-bound", "1"], ["--target", "label", "--classes", "0,1"]
    for k, file in enumerate(("people.csv", "people.parquet")):
        for model, rest in (("linear", linear), ("logistic", logistic)):
            types = ["--types", "number"] if file.endswith("csv") else []
            words = ["fit", model, str(data / file), *rest, *types, *claim, "-o", f"{model}{k}.json"]
            assert main(words) == 0
            assert main(["report", f"{model}{k}.json", "-o", f"{model}{k}.html"]) == 0
            assert main(["verify", f"{model}{k}.certificate.json"]) == 0
            assert main([*words[:-1], "no/folder.json"]) == 2  # and one that fails
            assert main([*words, "--solver", "none"]) == 2
            with ledger.spend(
                "people", Certificate.from_json(json.loads(Path(f"{model}{k}.certificate.json").read_text()))
            ):
                pass
    assert main(["ledger", "export", "budget.db", "-o", "export.json"]) == 0
    shown = capsys.readouterr()
    assert not found_in((shown.out + shown.err).encode())
    assert "Quill" not in shown.out + shown.err
    kinds = {file.suffix for file in out.iterdir()}
    assert kinds == {".db", ".db-journal", ".json", ".html"}
    for written in out.iterdir():
        raw = written.read_bytes()
        assert not found_in(raw), written.name
        assert b"Quill" not in raw, written.name
