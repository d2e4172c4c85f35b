"""The pages in a real browser: no request, no message, nothing that overflows or overlaps, readable in every light."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.report import browser
from tests.report.subjects import NASTY, answers, estimator, ledger, mechanisms, plan

from shapedp import report

PROGRAM = browser.find()
pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason=f"no browser found (looked for {', '.join(browser.NAMES)}): apt-get install chromium"
)
NAMES = ("mechanism", "refuted", "radial", "estimator", "plan", "ledger", "claims", "answers")

# Pairs of labels in one drawing whose boxes meet, and labels that leave the screen.
_LABELS = """
[...document.querySelectorAll('svg.chart')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  const bad = boxes.filter(([t, b]) => b.left < 0 || b.right > innerWidth).map(([t]) => 'outside: ' + t);
  boxes.forEach(([t, a], i) => boxes.slice(i + 1).forEach(([u, b]) => {
    if (a.left < b.right && b.left < a.right && a.top < b.bottom - 1 && b.top < a.bottom - 1) bad.push(t + ' / ' + u);
  }));
  return bad;
})
"""

# Tables that turn into lists on a narrow screen, and hide a part of themselves all the same.
_CUT = "[...document.querySelectorAll('.wide')].filter(t => t.scrollWidth > t.parentElement.clientWidth).length"

# The least contrast of any text with what is behind it (WCAG 2), and the text.
_CONTRAST = """
(() => {
  const rgb = c => {
    const m = c.match(/[\\d.]+/g).map(Number);
    return m.length > 3 && m[3] === 0 ? null : m.slice(0, 3);
  };
  const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = c => {
    const [r, g, b] = c.map(v => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c) return c;
    }
    return [255, 255, 255];
  };
  let worst = [99, ''];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || !e.getClientRects().length || ['title', 'desc'].includes(e.tagName)) continue;
    const style = getComputedStyle(e), ink = rgb(e.namespaceURI.endsWith('svg') ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < worst[0]) worst = [ratio, e.textContent.trim().slice(0, 60)];
  }
  return worst;
})()
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {
        "mechanism": report.of(mechanisms()["gaussian"]),
        "refuted": report.of(mechanisms()["refuted"]),
        "radial": report.of(mechanisms()["radial"]),
        "estimator": report.of(estimator(["age", "x" * 120, NASTY])),
        "plan": report.of(plan(), delta=1e-5),
        "ledger": report.of(ledger(folder / "budget.db", "y" * 150)),
        "claims": report.claims_page(),
        "answers": answers().report(title="z" * 90, author=NASTY, purpose="table 4 of the yearbook"),
    }
    return {name: page.save(folder / f"{name}.html") for name, page in made.items()}


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    assert PROGRAM is not None
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        browser.started(PROGRAM, Path(folder)) as run,
    ):
        yield run


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("name", NAMES)
def test_a_page_opens(chromium: browser.Browser, pages: dict[str, Path], name: str, width: int, dark: bool) -> None:
    chromium.open(pages[name], width=width, dark=dark)
    assert chromium.said == []
    assert chromium.asked == [pages[name].as_uri()]
    assert chromium.value("document.documentElement.scrollWidth") <= width
    assert chromium.value("document.scripts.length") == 0
    assert chromium.value(_LABELS) == []
    assert width > 360 or chromium.value(_CUT) == 0
    assert chromium.value("document.querySelectorAll('main section').length") >= 4
    ratio, text = chromium.value(_CONTRAST)
    assert ratio >= 4.5, text
    paper = chromium.value("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") != dark


@pytest.mark.parametrize("name", ["mechanism", "ledger"])
def test_without_scripts_a_page_looks_the_same(chromium: browser.Browser, pages: dict[str, Path], name: str) -> None:
    chromium.open(pages[name], width=360, script=False)
    without = chromium.picture()
    assert chromium.said == []
    chromium.open(pages[name], width=360)
    assert chromium.picture() == without


def test_in_print_everything_is_open_and_on_white(chromium: browser.Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["mechanism"], width=1000, dark=True)
    rows = "document.querySelector('details table').getBoundingClientRect().height"
    hidden = "!document.querySelector('details table').checkVisibility({contentVisibilityAuto: true})"
    assert chromium.value(hidden)
    chromium.media(dark=True, paper=True)
    assert chromium.value(rows) > 50
    assert not chromium.value(hidden)
    assert chromium.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert chromium.pdf().startswith(b"%PDF")


def test_the_harness_sees_requests_messages_and_overlaps(chromium: browser.Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!DOCTYPE html><title>bad</title><img src='http://127.0.0.1:9/x.png'>"
        "<script>console.error('oh'); nothing()</script>"
        "<p style='color:#ccc'>faint</p><div style='width:2000px'>wide</div>"
        "<svg class='chart'><text y='20'>one</text><text y='22'>two</text></svg>"
    )
    chromium.open(bad, width=360)
    assert any("127.0.0.1" in url for url in chromium.asked)
    assert any("oh" in said for said in chromium.said)
    assert any(said.startswith("exception") for said in chromium.said)
    assert chromium.value(_LABELS)
    assert chromium.value(_CONTRAST)[0] < 4.5
    assert chromium.value("document.documentElement.scrollWidth") > 360
