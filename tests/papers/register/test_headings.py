"""Every numbered heading of the papers is answered by the register, and nothing of the register is left over."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from shapedp.papers.register import CLAIMS
from shapedp.papers.register.harness import experiments_folder, published

ROOT = Path(__file__).parents[3]
DATA = os.environ.get("SHAPEDP_DATA")
PAPERS = (Path(DATA).parent if DATA else ROOT.parent / "shared") / "papers"
HEADINGS = tomllib.loads((experiments_folder(ROOT) / "headings.toml").read_text(encoding="utf-8"))
FILES = {"tensor-noise": "tensor-gaussian-supplement"}
KINDS = "Theorem|Thm|Lemma|Proposition|Corollary|Definition|Remark|Observation|Example|Algorithm|Table|Figure|Fig"
CAPTION = re.compile(
    rf"(?:^[#*\s]*|\*\*|Proof of )(?i:({KINDS}))\.? ([A-D]\.\d+|\d+|[IV]+)(?=[.:*\s]*(?:$|[(\[*.:]| [A-Z\u2113]))", re.M
)
ROMAN = {"I": "1", "II": "2", "III": "3", "IV": "4", "V": "5"}
NAMES = {"Thm": "Theorem", "Fig": "Figure"}


def headings(text: str) -> set[str]:
    """The numbered headings of a paper's text: captions, not mentions within a sentence."""
    found = {(kind.title(), number) for kind, number in CAPTION.findall(text)}
    return {f"{NAMES.get(kind, kind)} {ROMAN.get(number, number)}" for kind, number in found}


def missing(claims: set[str], entries: set[tuple[str, str]]) -> set[str]:
    """What the list of headings names and the register lacks, and what the register holds and no heading names."""
    named = {
        f"{paper}/{name}"
        if "/" not in name and not name.startswith("published ")
        else name.replace(" ", f" {paper}/", 1)
        for paper, answers in HEADINGS.items()
        for answer in answers.values()
        for name in (answer if isinstance(answer, list) else ())
    }
    return named ^ (claims | {f"published {paper}/{name}" for paper, name in entries})


ENTRIES = {(entry.paper, entry.name) for entry in published(experiments_folder(ROOT))}


def test_every_heading_is_answered_and_every_entry_has_a_heading():
    assert missing(set(CLAIMS), ENTRIES) == set()


@pytest.mark.parametrize("kind", ["claim", "entry"])
def test_one_entry_less_is_noticed(kind):
    for one in CLAIMS if kind == "claim" else ENTRIES:
        left = (set(CLAIMS) - {one}, ENTRIES) if kind == "claim" else (set(CLAIMS), ENTRIES - {one})
        assert missing(*left), one


@pytest.mark.parametrize("paper", HEADINGS)
def test_the_list_is_that_of_the_paper(paper):
    path = PAPERS / f"{FILES.get(paper, paper)}.txt"
    if not path.is_file():
        pytest.skip("the papers are not at hand")
    assert headings(path.read_text(encoding="utf-8")) == set(HEADINGS[paper]) - {"cited"}


def test_a_mention_is_not_a_heading():
    said = "Figure 2 in Appendix B shows it.\nAlgorithm 2 summarizes it"
    assert headings(f"Theorem 1. A.\n{said}\n**Lemma 3** Given\nTABLE IV Test") == {"Theorem 1", "Lemma 3", "Table 4"}
