"""Numbers of the register in the pages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shapedp.cli import main
from shapedp.papers.register import CLAIMS
from shapedp.papers.register.pages import PAGE, disagreements, documentation, page

ROOT = Path(__file__).parents[3]


def test_the_pages_print_what_the_register_holds() -> None:
    docs = documentation(ROOT)
    assert docs == ROOT / "docs"
    assert list(disagreements(docs)) == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("mixing.md", "why-product-noise-fails.md"):
        shutil.copy(ROOT / "docs" / name, docs)
    (docs / PAGE).write_text(page(), encoding="utf-8")
    (tmp_path / "experiments").mkdir()
    shutil.copy(ROOT / "experiments" / "published.toml", tmp_path / "experiments")
    (tmp_path / "README.md").write_text("plain", encoding="utf-8")
    assert list(disagreements(docs)) == []
    return docs


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("mixing.md", "-->36.54", "-->36.55", "printed as 36.55"),
        ("mixing.md", "-->36.54", "-->", "printed as nothing"),
        ("mixing.md", "lemma-1-100 exact-->", "lemma-1-100 exactly-->", "no gaussian-mixing/lemma-1-100 exactly"),
        ("why-product-noise-fails.md", "-->0.7310", "-->0.7309", "printed as 0.7309"),
        (PAGE, "0.730963", "0.730964", "not what the register says"),
    ],
)
def test_a_misprint_is_found(
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    old: str,
    new: str,
    said: str,
) -> None:
    path = checkout / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert any(said in line for line in disagreements(checkout))
    monkeypatch.chdir(checkout)
    assert main(["claims", "--verify", "baselines/laplace"]) == 3
    assert said in capsys.readouterr().err


def test_every_claim_stands_on_its_page_with_its_command() -> None:
    text = page()
    for claim in CLAIMS.values():
        assert f"`{claim.command}`" in text
        assert claim.standing in text
