"""Every page: what it says is what is computed, nothing private is in it, nothing foreign gets through."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special
from tests.report.subjects import ANSWER, NASTY, estimator, ledger, mechanisms, model_file, plan

import shapedp as sdp
from shapedp import report
from shapedp.accounting import Plan, Step
from shapedp.cli import main
from shapedp.ledger import Ledger, LedgerCorruptedError
from shapedp.mechanisms import certify, mechanism_from_json
from shapedp.papers.register import CLAIMS, check
from shapedp.privacy import Bracket, Certificate, GaussianLoss
from shapedp.report import estimators, pages
from shapedp.report.figures import interval, number
from shapedp.report.guarantee import Guarantee

_VOID = {"meta", "link", "br", "hr"}
_ALLOWED = {"verify", "audit", "report", "account", "ledger", "claims"}


class Reader(HTMLParser):
    """Counts what a page holds and insists on closed elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.named: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        assert not {"style", "src", "srcset", "onload", "onclick"} & given.keys()
        self.ids += [given["id"] or ""] if "id" in given else []
        self.named += (given.get("aria-labelledby") or "").split()
        self.links += [given["href"] or ""] if "href" in given else []
        if tag == "svg" and "aria-hidden" not in given:
            assert given["role"] == "img"
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    @property
    def words(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.text))


def read(page: report.Page) -> Reader:
    """The page, after what must hold of every page."""
    found = Reader(page.html)
    assert len(page.html.encode()) < 2_000_000
    assert "script" not in found.tags
    assert "http:" not in page.html.replace("http-equiv", "")
    assert "https:" not in page.html
    assert len(set(found.ids)) == len(found.ids)
    assert set(found.named) <= set(found.ids)
    assert all(link == "data:," or (link.startswith("#") and link[1:] in found.ids) for link in found.links)
    assert found.tags.count("h1") == 1
    assert found.tags.count("caption") == found.tags.count("table")
    assert '<html lang="en">' in page.html
    assert f"shapedp {sdp.__version__}" in found.words
    assert "nan" not in found.words.lower().split()
    assert set(re.findall(r"^shapedp (\w+)", page.html, re.MULTILINE)) <= _ALLOWED
    return found


@cache
def page_of(name: str) -> report.Page:
    return report.of(mechanisms()[name], file=f"{name}.json")


@pytest.mark.parametrize("name", sorted(mechanisms()))
def test_a_mechanisms_page_says_what_is_computed(name: str) -> None:
    mechanism = mechanisms()[name]
    page = page_of(name)
    words = read(page).words
    certificate = mechanism.certificate
    assert page.verdict == certificate.verdict
    assert interval(certificate.bracket) in words
    assert f"shapedp verify {name}.json" in words
    assert repr(certificate.bracket.upper) in words
    if certificate.verdict == "refuted":
        assert "The claimed privacy is not given" in words
        assert "certified. " not in words.split("The bracket")[0]
    else:
        assert f"ε = {number(certificate.epsilon)} bounds the ratio" in words
    for phrase in ("Neighbours.", "What is not promised", "blind guess", "How to recheck"):
        assert phrase in words


def test_pages_of_every_kind_differ_in_the_noise() -> None:
    shown = {name: read(page_of(name)).words for name in mechanisms()}
    assert "Noise of each coordinate" in shown["gaussian"]
    assert "what one person can change" in shown["gaussian"]
    assert "Noise of one coordinate" in shown["gaussian-one"]
    assert "1 coordinate that nobody can change" in shown["zeros"]
    assert "Noise of each block" in shown["blocks"]
    assert "The largest of each of 80 groups" in shown["long"]
    assert "Noise along mode 2" in shown["tensor"]
    assert "Length of the noise vector" in shown["radial"]
    assert "Less noise where the data are rich" in shown["adaptive"]
    assert "A sketch has no error bars" in shown["mixing"]
    assert "the published recipe product-noise" in shown["refuted"]


def test_the_same_file_gives_the_same_page() -> None:
    for name in ("gaussian", "mixing"):
        again = mechanism_from_json(json.loads(json.dumps(mechanisms()[name].to_json())))
        assert report.of(again, file=f"{name}.json").html == page_of(name).html


def test_the_attackers_curve_is_below_the_exact_one_and_near_it() -> None:
    loss = GaussianLoss(0.8)
    found = Guarantee(certify(loss, epsilon=2.0, delta=1e-4), loss)
    alarms = np.array([1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.9])
    exact = special.ndtr(special.ndtri(1 - alarms) - 0.8)
    shown = np.array(found.misses(alarms.tolist()))
    assert (shown <= exact).all()
    np.testing.assert_allclose(shown, exact, atol=2e-4)


def test_a_large_epsilon_is_not_called_little() -> None:
    made = sdp.calibrate("gaussian", sdp.L2(1.0, dim=2), epsilon=9.0, delta=1e-5)
    words = read(report.of(made)).words
    assert "by a factor of at most 8,104, but for" in words
    assert "almost" not in words


def test_error_bars_are_the_laws() -> None:
    mechanism = mechanisms()["gaussian"]
    words = read(report.of(mechanism)).words
    half = mechanism.law.half_widths(0.95)
    assert f"{number(half.min(), 4, 'up')} to {number(half.max(), 4, 'up')}" in words
    for width in half:
        assert number(float(width), 4, "up") in words


def test_certificates_are_recomputed() -> None:
    certificate = mechanisms()["gaussian"].certificate.with_randomness(True)
    data = json.loads(json.dumps(certificate.to_json()))
    words = read(report.of_json(data, file="a b.json")).words
    assert "shapedp verify 'a b.json'" in words
    assert "secure: from the system's generator" in words
    data["bracket"] = {"lower": 1e-9, "upper": 2e-9}
    with pytest.raises(ValueError, match="contradicts"):
        report.of_json(data)
    seeded = certificate.with_randomness(False)
    assert "can subtract the noise" in read(report.of(seeded)).words


def test_a_certificate_without_its_mechanism_is_shown_as_stated() -> None:
    bare = Certificate(1.0, 1e-5, "replace", Bracket(8e-6, 9e-6), "GaussianLoss")
    words = read(report.of(bare)).words
    assert "shown as it was stated" in words
    assert "was computed from the noise" not in words
    undecided = replace(bare, bracket=Bracket(8e-6, 2e-5))
    assert "neither proven nor refuted" in read(report.of(undecided)).words


def test_a_plan_is_broken_down() -> None:
    subject = plan()
    with pytest.raises(ValueError, match="states no claim"):
        report.of(subject)
    page = report.of(subject, delta=1e-5, file="plan.json")
    words = read(page).words
    assert page.verdict == "certified"
    assert "each person with probability 2%" in words
    assert "everybody" in words
    alone = number(GaussianLoss(1.0).epsilon(1e-5).upper, 4, "up")
    assert alone in words
    assert "The budget as the plan runs" in words
    assert "shapedp account --plan plan.json --delta 1e-05" in words


def test_claims_about_plans() -> None:
    small = Plan((Step(GaussianLoss(0.5), 1.0, 2),))
    assert report.of(small, epsilon=0.01, delta=1e-5).verdict == "refuted"
    assert report.of(certify(small, epsilon=4.0, delta=1e-5)).verdict == "certified"
    assert report.of(small, epsilon=1.0).verdict == "certified"
    with pytest.raises(ValueError, match="no epsilon meets"):
        report.of(small, delta=0.0)


def test_a_plan_of_mechanisms_shows_their_noise() -> None:
    mechanism = mechanisms()["gaussian"]
    words = read(report.of(Plan((Step(mechanism, 1.0, 3),)), delta=1e-5)).words
    assert "gaussian noise on 5 coordinates" in words
    assert "Noise of each coordinate" in words


def test_a_ledgers_page_shows_names_and_charges_only(tmp_path: Path) -> None:
    made = ledger(tmp_path / "budget.db", NASTY.replace("\x07", ""))
    page = report.of(made)
    words = read(page).words
    assert "<script>alert(1)</script> &" in words
    status = made.status(NASTY.replace("\x07", ""))
    assert number(100 * status.spent, 4, "up") + "%" in words
    assert "3 released, 1 abandoned" in words
    assert "Nothing was spent yet" in words
    assert "shapedp ledger status budget.db --check" in words
    assert str(tmp_path) not in page.html
    assert str(ANSWER)[:5] not in page.html
    for entry in made.history(status.dataset):
        assert entry.mechanism["text"] not in words
    one = read(report.of(made, dataset="empty")).words
    assert "alert" not in one


def test_a_long_ledger_is_drawn_in_groups(tmp_path: Path) -> None:
    made = Ledger.create(tmp_path / "b.db", dataset="d", epsilon=5.0, delta=1e-6, adjacency="replace")
    tiny = sdp.calibrate("gaussian", sdp.Box([1.0], adjacency="replace"), epsilon=0.01, delta=1e-9)
    for _ in range(85):
        with made.spend("d", tiny):
            pass
    words = read(report.of(made)).words
    assert "2 entries to a bar" in words
    assert "The latest 85 of 85 entries" in words


def test_a_changed_ledger_has_no_page(tmp_path: Path) -> None:
    import sqlite3

    made = ledger(tmp_path / "budget.db")
    with sqlite3.connect(tmp_path / "budget.db") as database:
        database.execute("UPDATE shapedp_entry SET count = 7 WHERE sequence = 2")
    database.close()
    with pytest.raises(LedgerCorruptedError):
        report.of(made)


def test_an_estimators_page_holds_what_was_released() -> None:
    model = estimator(["age", "rooms", NASTY])
    page = report.of(model)
    words = read(page).words
    assert page.verdict == "certified"
    for value in (*model.coef_, model.intercept_, *model.coef_standard_error_):
        assert any(number(float(value), digits) in words for digits in (3, 4))
    assert "rooms" in words
    assert "<script>alert(1)</script> &" in words
    assert "\u202e" not in page.html
    assert "json.dumps(model.privacy_.to_json())" in words
    assert str(ANSWER)[:5] not in page.html
    assert "random_state" not in words


def test_a_model_file_is_shown_like_the_model() -> None:
    model = estimator(["age", "rooms", "year"])
    data, certificate = model_file(model), model.privacy_.to_json()
    fitted = report.Fitted.from_json(data, certificate)
    assert fitted.weights == report.Fitted.of(model).weights
    words = read(report.of(fitted, file="it's.json", certificate="it's.certificate.json")).words
    assert number(float(model.coef_[1])) in words
    assert "rooms" in words
    assert shlex.quote("it's.certificate.json") in words
    for wrong in (
        {"coefficients": ["a"]},
        {"features": ["age"]},
        {"standard_errors": [1.0, 2.0]},
        {"kind": "other"},
        {"epsilon": 2.0},
        {"adjacency": "replace"},
    ):
        with pytest.raises(ValueError, match="not"):
            report.Fitted.from_json({**data, **wrong}, certificate)


def test_what_a_page_says_to_write_down_can_be_checked(tmp_path: Path) -> None:
    model = estimator()
    code = re.findall(r"import json, pathlib; .*?to_json\(\)\)\)", read(report.of(model)).words)[0]
    exec(code.replace('"certificate.json"', repr(str(tmp_path / "certificate.json"))), {"model": model})
    assert main(["verify", str(tmp_path / "certificate.json")]) == 0


def test_weights_of_several_classes_and_without_errors() -> None:
    class Model:
        privacy_ = mechanisms()["gaussian"].certificate
        coef_ = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        intercept_ = np.array([0.5, 0.6, 0.7])
        classes_ = np.array(["a", "b", "c"])

    fitted = estimators.Fitted.of(Model())
    assert [w.name for w in fitted.weights[:3]] == ["intercept (a)", "feature 1 (a)", "feature 2 (a)"]
    assert fitted.weights[-1].value == 6.0
    words = read(report.of(Model())).words
    assert "Standard errors do not follow" in words
    with pytest.raises(TypeError, match="privacy_"):
        report.of(object())


def _audit(**changes: Any) -> dict[str, Any]:
    witness = {"epsilon": 0.5, "delta_lower": 1e-4, "claimed": 1e-3, "reverse": False, "against": "claim"}
    result = {
        "kind": "audit", "verdict": "no violation found", "epsilon": 1.0, "delta": 1e-6, "confidence": 0.99,
        "delta_lower": 0.0, "epsilon_lower": 0.4, "samples": 1000, "stopped_early": False, "method": "likelihood ratio",
        "seed": 1,
    }  # fmt: skip
    return {**result, "witness": {**witness, **changes.pop("witness", {})}, **changes}


def test_audits_are_judged_anew() -> None:
    mechanism = mechanisms()["gaussian"]
    page = report.of(mechanism, audits=[_audit(method=NASTY)])
    words = read(page).words
    assert page.verdict == "certified"
    assert "no violation found" in words
    assert "at least 0.4" in words
    broken = report.of(mechanism, audits=[_audit(witness={"delta_lower": 0.5})])
    assert broken.verdict == "violation"
    assert "An audit contradicts what is claimed" in read(broken).words


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (_audit(epsilon=2.0), "is of the claim"),
        (_audit(samples="many"), "samples"),
        (_audit(method=3), "method must be text"),
        ({"kind": "audit"}, "Witness"),
        ({"kind": "other"}, "not an audit"),
        (
            {"kind": "distribution-audit", "law": "x", "samples": 1, "values": 1, "false_alarm": 0.1, "checks": []},
            "checks",
        ),
    ],
)
def test_audits_of_something_else_are_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        report.of(mechanisms()["gaussian"], audits=[data])


def test_a_real_distribution_audit_is_shown() -> None:
    mechanism = mechanisms()["gaussian-one"]
    fit = sdp.audit.distribution(mechanism, samples=20_000, seed=3)
    words = read(report.of(mechanism, audits=[json.loads(json.dumps(fit.to_json()))])).words
    assert "the noise fits its law" in words
    assert fit.checks[0].name in words


def test_the_claims_page_holds_every_statement() -> None:
    page = report.claims_page()
    words = read(page).words
    for claim in CLAIMS.values():
        assert claim.id in words
        assert re.sub(r"\s+", " ", claim.statement) in words
        assert claim.command in words
    assert page.verdict is None


def test_a_claim_that_disagrees_is_shown_as_such() -> None:
    claim = CLAIMS["baselines/laplace"]
    wrong = replace(claim, found={**claim.found, "exact": 0.5})
    page = report.claims_page(findings=[check(wrong)])
    assert page.verdict == "refuted"
    assert "The register disagrees" in read(page).words
    assert report.claims_page(findings=[check(claim)]).verdict is None


def test_a_page_that_is_too_large_is_refused() -> None:
    page = report.Page("t", pages.words.not_promised(mechanisms()["gaussian"].certificate), ())
    assert page.html
    heavy = report.Page("t", type(page.header)("x" * 2_000_001), ())
    with pytest.raises(ValueError, match="larger than"):
        _ = heavy.html


def test_saving_is_whole_or_not_at_all(tmp_path: Path) -> None:
    page = report.of(mechanisms()["gaussian-one"])
    target = page.save(tmp_path / "page.html")
    assert target.read_text(encoding="utf-8") == page.html
    for bad, error in ((tmp_path / "page.txt", ValueError), (tmp_path / "no" / "page.html", FileNotFoundError)):
        with pytest.raises(error):
            page.save(bad)
    (tmp_path / "dir.html").mkdir()
    with pytest.raises(IsADirectoryError):
        page.save(tmp_path / "dir.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dir.html", "page.html"]


def test_the_base_install_makes_pages() -> None:
    """With everything but numpy and scipy out of reach."""
    code = """
import sys
for name in ("matplotlib", "sklearn", "pandas", "sqlalchemy", "torch", "pyarrow", "dask", "cryptography"):
    sys.modules[name] = None
import shapedp as sdp
from shapedp import report
mechanism = sdp.calibrate("gaussian", sdp.Box([1.0, 0.1]), epsilon=1.0, delta=1e-6)
print(len(report.of(mechanism).html), len(report.claims_page().html))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(int(size) > 10_000 for size in done.stdout.split())
