"""What the papers provide is found by name, in a process that has loaded none of them."""

import subprocess
import sys
from pathlib import Path

import pytest

import shapedp
from shapedp._papers import PROVIDED, published
from shapedp.papers.recipes import RECIPES

READ = """
import sys
from pathlib import Path
from shapedp import verify
from shapedp.privacy import Certificate
assert not any(name.startswith("shapedp.papers") for name in sys.modules)
import json
print(verify(Certificate.from_json(json.loads(sys.stdin.read()))).verdict)
"""


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in PROVIDED.items() for name in names])
def test_every_name_leads_to_something(kind, name):
    if kind == "training noise":
        pytest.importorskip("torch")
    if kind == "solver":
        pytest.importorskip("sklearn")
    found = published(kind, name)
    if kind == "mechanism":
        assert found.kind == name if hasattr(found, "kind") else found.__name__.lower() == name
    if kind == "recipe":
        assert found is RECIPES[name]
    with pytest.raises(KeyError):
        published(kind, "no-such-name")


@pytest.mark.parametrize(
    "made",
    [
        "gaussian_mixing.recipes import modified_gauss_mix as make",
        "gaussian_mixing.sheffet import sheffet as make",
    ],
)
def test_a_certificate_of_a_published_mechanism_is_read_in_a_fresh_process(made):
    write = f"""
import json
from shapedp.papers.{made}
print(json.dumps(make(rows=50, row_bound=1.0, epsilon=1.0, delta=1e-5).certificate.to_json()))
"""
    text = subprocess.run([sys.executable, "-c", write], capture_output=True, text=True, check=True).stdout
    read = subprocess.run([sys.executable, "-c", READ], input=text, capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    assert read.stdout.strip() in ("certified", "undecided", "refuted")


def test_nothing_below_the_papers_names_their_modules():
    source = Path(shapedp.__file__).parent
    above = ("papers", "report", "cli", "__init__.py", "_moved.py", "_papers.py")
    below = [path for path in source.rglob("*.py") if path.relative_to(source).parts[0] not in above]
    assert len(below) > 100
    assert [path.name for path in below if "shapedp.papers" in path.read_text(encoding="utf-8")] == []
