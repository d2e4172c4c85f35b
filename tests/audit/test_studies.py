"""What the studies stored: nothing certified was caught, and the documentation shows it as it is stored."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from tests.audit.helpers import GROUPS

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("audit_certified", ROOT / "experiments" / "audit" / "certified.py")
certified = importlib.util.module_from_spec(_spec)
sys.modules["audit_certified"] = certified
_spec.loader.exec_module(certified)
ROWS = certified.stored()


def test_no_certified_mechanism_was_caught():
    assert {row["group"] for row in ROWS} <= set(GROUPS)
    assert ROWS
    for row in ROWS:
        assert row["violation"] is False, row
        assert row["fits"] in (True, None), row
        assert row["outputs"] >= (1_000_000 if row["dim"] <= 100 else 100_000), row


def test_the_documentation_shows_what_is_stored():
    page = ROOT / "docs" / "audit.md"
    if not page.exists():
        pytest.skip("this copy has no documentation")
    assert certified.table(ROWS) in page.read_text(encoding="utf-8")
