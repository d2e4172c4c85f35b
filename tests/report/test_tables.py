"""The page of a private table's answers."""

import pytest

import shapedp as sdp
from shapedp.cli.main import main
from shapedp.ledger import Ledger

pd = pytest.importorskip("pandas")
pytest.importorskip("ibis")

SCRIPT = "<script>alert('x')</script>"


@pytest.fixture
def people():
    frame = pd.DataFrame({"id": range(60), "sex": ["F", "M"] * 30, "hours": [float(k % 40) for k in range(60)]})
    return sdp.table(frame, person="id", bounds={"hours": (0, 80)}, domains={"sex": ["F", SCRIPT]})


def test_the_page_names_the_release(people, tmp_path):
    cap = {"epsilon": 3.0, "delta": 1e-5, "adjacency": "add-remove", "person": "id"}
    ledger = Ledger.create(tmp_path / "l.db", dataset="people", **cap).stating(label="Hours", author=SCRIPT, note="Why")
    question = people.group_by("sex").agg(n=sdp.count(), hours=sdp.mean("hours"))
    answer = question.release(epsilon=1.0, delta=1e-6, ledger=ledger, dataset="people")
    page = answer.report()
    assert page.verdict == "certified"
    for part in ("<h1>Hours</h1>", "people", "Why", "hours: 0 to 80", "A person is a value of the column", "% of the",
                 "Before this release 0%", "stated beforehand", "mean(hours)", "95% interval"):  # fmt: skip
        assert part in page.html, part
    assert SCRIPT not in page.html
    assert page.html.count('class="interval"') == 4
    assert "<h1>Another</h1>" in answer.interval(0.9).report(title="Another").html
    assert "90% interval" in answer.interval(0.9).report().html
    assert answer.report().html == page.html
    assert "Hours" in sdp.report.of(ledger).html


def test_words_are_limited(people):
    answer = people.count().release(epsilon=1.0, delta=1e-6)
    assert "Answers of a private table" in answer.report().html
    with pytest.raises(ValueError, match="label must be text of at most 200"):
        answer.report(title="x" * 201)
    with pytest.raises(ValueError, match="audit belongs"):
        sdp.report.of(answer, audits=[{}])


def test_tabulate_writes_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("id,sex\n1,F\n2,M\n")
    start = ["tabulate", "people.csv", "--person", "id", "--query", "count by sex", "--domain", "sex=F,M"]
    claim = ["--epsilon", "1", "--delta", "1e-6", "--label", "By sex", "-o", "out.csv"]
    assert main([*start, *claim, "--report", "page.txt"]) == 2
    assert "name it .html" in capsys.readouterr().err
    assert main([*start, *claim, "--report", "page.html"]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "<h1>By sex</h1>" in page
    assert "shapedp verify out.certificate.json" in page
    assert "people.csv" in page


def test_a_page_without_a_file_of_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("id,sex\n1,F\n2,M\n")
    claim = ["--epsilon", "1", "--delta", "1e-6"]
    start = ["tabulate", "people.csv", "--person", "id", "--query", "count", *claim]
    assert main([*start, "--report", "people.csv"]) == 2
    assert main([*start, "--report", "page.html"]) == 0
    assert "<h1>Answers of a private table</h1>" in (tmp_path / "page.html").read_text()


def test_a_release_shows_its_parts_and_does_not_grow(people):
    """What stands beside a quantile is half its interval; all parts come at once, so no picture over runs."""
    page = people.agg(n=sdp.count(), middle=sdp.median("hours")).release(epsilon=1.0, delta=1e-6).report()
    headers = [part.split("<")[0] for part in page.html.split('<th class="number" scope="col">')[1:]]
    assert headers.index("standard error") == headers.index("n") + 1
    assert headers.index("half the interval") == headers.index("middle") + 1
    assert "How the budget is made up" in page.html
    assert "The budget as the plan runs" not in page.html
    made = people.plan(people.count(), people.median("hours"), epsilon=1.0, delta=1e-6)
    assert "The budget as the plan runs" in sdp.report.of(made.plan, delta=1e-6).html
