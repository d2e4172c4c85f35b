"""The published schema against certificates of every kind: it holds for all, and forbids what it does not name."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "experiments" / "trust"))

from certificates import KINDS, NEWEST, PASSES, Skipped, certificate, kind_of  # noqa: E402

SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "docs" / "certificate.schema.json").read_text()))

NAMED = {("workload", name) for name in ("attributes", "measures", "terms")}


def made(kind):
    for number in (*range(NEWEST, NEWEST + 400), *range(PASSES, PASSES + 40)):
        if kind_of(number) == kind:
            try:
                return certificate(number)
            except Skipped:
                continue
    raise AssertionError(f"no certificate of kind {kind}")


def objects(value, path=()):
    """Paths of all objects; those below a workload's questions hold the user's own names."""
    if path[-2:] in NAMED:
        return
    if isinstance(value, dict):
        yield path
        for name, inner in value.items():
            yield from objects(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from objects(inner, (*path, place))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_described_and_no_object_takes_a_field_more(kind):
    good = made(kind)
    SCHEMA.validate(good)
    paths = list(objects(good))
    assert len(paths) >= 3
    for path in paths:
        bad = copy.deepcopy(good)
        inside = bad
        for name in path:
            inside = inside[name]
        inside["another"] = 1
        assert not SCHEMA.is_valid(bad), path
