"""The texts of the pages are files of the package: each is used, each field is filled, values are escaped."""

from __future__ import annotations

import re
from importlib import resources

import pytest

import shapedp.report
from shapedp.report.markup import Markup, fragments, text

SOURCES = "\n".join(
    path.read_text(encoding="utf-8") for path in resources.files(shapedp.report).iterdir() if path.name.endswith(".py")
)


def test_every_fragment_is_used_and_every_name_is_known() -> None:
    named = set(re.findall(r'text\(\s*"([\w-]+)"', SOURCES)) | set(re.findall(r'text\("([\w-]+)" if', SOURCES))
    named |= set(re.findall(r'text\("[\w-]+" if .* else "([\w-]+)"\)', SOURCES))
    named |= {name for name in fragments() if name.startswith("neighbours-")}
    assert named == set(fragments())


def test_values_are_escaped_and_markup_is_kept() -> None:
    assert text("recheck-written", code="<script>&").count("&lt;script&gt;&amp;") == 1
    assert "<b>bold</b>" in text("no-exception") + text("exception", delta=Markup("<b>bold</b>"))


def test_a_missing_field_is_an_error() -> None:
    with pytest.raises(KeyError):
        text("exception")


def test_fragments_are_one_line_and_balanced() -> None:
    for name, body in fragments().items():
        assert "\n" not in body, name
        assert sorted(re.findall(r"<(\w+)", body)) == sorted(re.findall(r"</(\w+)>", body)), name
