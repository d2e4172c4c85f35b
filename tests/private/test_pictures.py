"""Answers in a notebook: tables and pictures that are text, well formed, and escaped."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import shapedp as sdp
from shapedp.private.pictures import picture_html

EVIL = "<script>alert(1)</script>\"'&"
SVG = "{http://www.w3.org/2000/svg}"


def svg(text):
    return ElementTree.fromstring(text[: text.index("</svg>") + 6])


def test_a_release_shows_its_values_with_intervals():
    frame = pd.DataFrame({"sex": ["F", "M"] * 50, "hours": [40.0, 30.0] * 50})
    t = sdp.table(frame, person=None, bounds={"hours": (0, 80)}, domains={"sex": ["F", "M"]})
    answers = t.ask(
        t.group_by("sex").agg(n=sdp.count(), m=sdp.mean("hours"), q=sdp.median("hours")),
        t.top_k("sex", 1),
        epsilon=1.0,
        delta=1e-6,
    )
    page = answers._repr_html_()
    assert page.count("<svg") == 3  # what has no interval has no picture
    assert page.count("<table>") == 2
    assert "script" not in page
    found = svg(page[page.index("<svg") :])
    assert found.find(SVG + "title").text.startswith("n with intervals of 0.95")
    assert [one.find(SVG + "title").text.split(":")[0] for one in found.findall(SVG + "g")] == ["F", "M"]
    assert found.get("role") == "img"
    assert found.get("aria-label") == found.find(SVG + "title").text


def test_names_are_escaped_everywhere():
    columns = {EVIL: [EVIL, "b"], "n": [1, 2], "n_low": [0.0, 1.0], "n_high": [2.0, 3.0]}
    text = picture_html(columns, [EVIL], "n", 0.95)
    assert "<script" not in text
    assert svg(text).find(SVG + "g").find(SVG + "title").text == f"{EVIL}: 1, from 0 to 2"
    named = {EVIL: [1], EVIL + "_low": [0.0], EVIL + "_high": [2.0]}
    assert svg(picture_html(named, [], EVIL, 0.95)).get("aria-label").startswith(EVIL)
    frame = pd.DataFrame({EVIL: ["<b>", "M"]})
    t = sdp.table(frame, person=None, domains={EVIL: ["<b>", "M"]})
    page = t.group_by(EVIL).count().release(epsilon=1.0, delta=1e-6)._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page


def test_marks_are_where_the_numbers_are():
    columns = {"x": [0.0, 10.0], "x_low": [0.0, 5.0], "x_high": [5.0, 10.0]}
    one, other = svg(picture_html(columns, [], "x", 0.95)).findall(SVG + "g")
    ends = [float(one.find(SVG + "line").get("x1")), float(other.find(SVG + "line").get("x2"))]
    middle = float(one.find(SVG + "line").get("x2"))
    assert middle == float(other.find(SVG + "line").get("x1")) == sum(ends) / 2
    assert float(one.find(SVG + "circle").get("cx")) == ends[0]


def test_many_groups_and_numbers_that_are_none():
    size = 60
    columns = {"g": [str(k) * 20 for k in range(size)], "x": [1.0] * size}
    columns |= {"x_low": [-math.inf] * size, "x_high": [math.nan] * size}
    text = picture_html(columns, ["g"], "x", 0.95)
    assert "The first 40 groups are drawn" in text
    assert len(svg(text).findall(SVG + "g")) == 40
    assert not svg(text).findall(f".//{SVG}line")
    assert picture_html({"x": [], "x_low": [], "x_high": []}, [], "x", 0.95) == ""
    assert picture_html({"x": [1]}, [], "x", 0.95) == ""
