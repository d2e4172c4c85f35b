"""A mechanism JSON of 8 MB that announced size 3 took 8.5 GB in verify; deep nesting and NaN reached the parser.

Sizes are checked before anything is unpacked: the peak of memory is measured.
"""

from __future__ import annotations

import base64
import json
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest

import shapedp as sdp
from shapedp.boundary import documents
from shapedp.boundary.documents import decode, encode
from shapedp.cli import main


def _bomb(zeros: int, announced: object) -> dict[str, object]:
    return {"float64": base64.b64encode(zlib.compress(bytes(zeros), 9)).decode(), "size": announced}


@pytest.mark.parametrize("announced", [3, 2**60, 10**30, -1, 0, True, None, "3", 3.0])
def test_an_announced_size_bounds_what_is_unpacked(announced: object) -> None:
    bomb = _bomb(1 << 26, announced)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"not an encoded array|announced"):
        decode("profile", bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


def test_verify_refuses_a_bomb_in_little_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = sdp.calibrate("gaussian", sdp.Box(np.ones(300)), epsilon=1.0, delta=1e-6).to_json()
    data["sensitivity"]["profile"] = _bomb(1 << 27, 3)
    (tmp_path / "m.json").write_text(json.dumps(data))
    tracemalloc.start()
    assert main(["verify", str(tmp_path / "m.json")]) == 2
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24
    assert "3 values that were announced" in capsys.readouterr().err


@pytest.mark.parametrize("size", [1, 256, 257, 5000])
def test_arrays_come_back(size: int) -> None:
    array = np.random.default_rng(0).normal(size=size)
    assert np.array_equal(decode("x", json.loads(json.dumps(encode(array)))), array)


def test_bytes_behind_an_array_are_refused() -> None:
    value = encode(np.ones(300))
    raw = base64.b64decode(value["float64"])
    for bad in (raw + b"more", raw[:-1], zlib.compress(zlib.decompress(raw) + b"12345678")):
        with pytest.raises(ValueError, match=r"announced|encoded"):
            decode("x", value | {"float64": base64.b64encode(bad).decode()})


DEEP = documents.DEPTH + 1
TEXTS: dict[str, str | bytes] = {
    "deep list": "[" * DEEP + "]" * DEEP,
    "deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
    "very deep": "[" * 10**6,
    "nan": '{"a": NaN}',
    "infinity": '{"a": -Infinity}',
    "overflow": '{"a": 1e999}',
    "long integer": '{"a": ' + "9" * (documents.DIGITS + 1) + "}",
    "twice": '{"a": 1, "a": 2}',
    "not json": "{",
    "not text": b"\xff\xfe{}",
    "many": "[" + "0," * documents.VALUES + "0]",
    "empty": "",
}


@pytest.mark.parametrize("name", TEXTS)
def test_limits_come_first(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TEXTS[name]
    raw = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ValueError, match=r"not read|not JSON|twice"):
        documents.parse(raw)
    (tmp_path / "x.json").write_bytes(raw)
    assert main(["verify", str(tmp_path / "x.json")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_brackets_and_digits_inside_words_do_not_count() -> None:
    text = json.dumps({"a": "[" * 1000 + '\\"' + "9" * 1000, "b": ["]", '"[']})
    assert documents.parse(text) == json.loads(text)


def test_a_file_above_the_limit_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BYTES", 1000)
    (tmp_path / "x.json").write_text(" " * 5000 + "{}")
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        documents.read(tmp_path / "x.json")


def test_many_arrays_are_counted_together() -> None:
    """Twenty packed arrays in a plan of 10 MB took 5 GB: each was within the limit of one."""
    many = [{"float64": "", "size": documents.ENTRIES // 8} for _ in range(8)]
    assert len(documents.parse(json.dumps(many))) == 8
    with pytest.raises(ValueError, match="in all"):
        documents.parse(json.dumps([*many, {"float64": "", "size": 1}]))
    for odd in (-(2**40), "9", None, True, 1.5):  # refused where they are unpacked; they lend nothing to others
        with pytest.raises(ValueError, match="in all"):
            documents.parse(json.dumps([{"float64": "", "size": odd}, *many, {"float64": "", "size": 1}]))
    assert documents.parse(json.dumps([{"size": 2**40}, {"size": 2**40}]))


def test_a_message_does_not_repeat_a_long_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "long.json").write_text(json.dumps({"kind": "a" * 10**6}))
    assert main(["verify", str(tmp_path / "long.json")]) == 2
    assert len(capsys.readouterr().err) < 10_000
