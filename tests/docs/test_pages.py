"""Pages that are made by a command hold what the command makes, and every page has a place in the menu."""

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_made_parts_are_up_to_date():
    pytest.importorskip("torch")
    pytest.importorskip("sqlalchemy")
    old = [path.name for path, text in load("pages").rendered().items() if path.read_text("utf-8") != text]
    assert old == [], "run python docs/pages.py"


def test_a_page_without_its_marks_is_refused():
    with pytest.raises(ValueError, match="end of packages"):
        load("pages").filled("nothing", "packages", "text")


def test_every_page_is_in_the_menu_once(tmp_path):
    hooks = load("hooks")
    assert hooks.on_config(SimpleNamespace(docs_dir=DOCS)).nav
    (tmp_path / "stray.md").touch()
    with pytest.raises(ValueError, match=r"stray\.md"):
        hooks.on_config(SimpleNamespace(docs_dir=tmp_path))


def test_no_page_is_empty():
    for page in DOCS.rglob("*.md"):
        assert len(page.read_text("utf-8").splitlines()) > 15, f"{page.name} says next to nothing"


@pytest.mark.parametrize("page", sorted((DOCS / "papers").glob("*.md")), ids=lambda page: page.stem)
def test_the_page_of_a_paper_has_one_short_script_and_leads_on(page):
    text = page.read_text("utf-8")
    (script,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)  # run by test_examples
    own = [line for line in script.splitlines() if line and not line.startswith(("import ", "from "))]
    assert len(own) <= 12, page.name
    for part in ("## What it says", "## What holds", "## What does not", f"../claims.md#{page.stem}"):
        assert part in text, part
