"""The answer: verdicts, labels that are not trusted, files that are refused, sets whose worst difference is derived."""

import ast
import copy
import json
import math
import subprocess
import sys
from fractions import Fraction
from math import e, log
from pathlib import Path

import pytest
from flint import arb

import shapedp_check
from shapedp_check import canonical, check, digest
from shapedp_check.additive import Bounds, _steps_moved
from shapedp_check.balls import down, total, up
from shapedp_check.cli import main
from shapedp_check.files import NotDescribed
from shapedp_check.pairs import Response
from shapedp_check.sets import read_set
from shapedp_check.subjects import Case
from shapedp_check.verdict import bounds

PACKAGE = Path(shapedp_check.__file__).parent


def gaussian(**changes):
    """N(0, 4.2247^2) in three coordinates for an L2 ball of radius 1: delta(1) = 1e-6 to twelve digits."""
    made = {
        "schema": 1,
        "kind": "certificate",
        "verdict": "certified",
        "epsilon": 1.0,
        "delta": 1e-6,
        "adjacency": "add-remove",
        "bracket": {"lower": 0.9e-6, "upper": 1e-6},
        "method": "any",
        "secure": None,
        "version": "0",
        "reason": "",
        "subject": {
            "schema": 1,
            "kind": "additive",
            "law": {"law": "gaussian", "scale": 4.2246788894, "dim": 3, "sizes": None},
            "sensitivity": {"set": "l2", "radius": 1.0, "dim": 3, "scales": None, "adjacency": "add-remove"},
            "epsilon": 1.0,
            "delta": 1e-6,
            "recipe": None,
        },
    }
    for path, value in changes.items():
        place = made
        *parents, last = path.split("__")
        for key in parents:
            place = place[key]
        place[last] = value
    return made


def plan(*steps, epsilon=1.0, delta=1e-6, adjacency=None):
    subject = {"schema": 1, "kind": "plan", "steps": list(steps)}
    made = gaussian(epsilon=epsilon, delta=delta, adjacency=adjacency, subject=subject)
    made["bracket"] = {"lower": 0.0, "upper": 1.0}
    made["verdict"] = "undecided"
    return made


def step(loss, count=1, rate=1.0, **more):
    return {"subject": loss, "sampling_rate": rate, "count": count, **more}


def bare(epsilon, delta=0.0):
    return {"loss": "bare", "epsilon": epsilon, "delta": delta}


def test_a_true_claim_is_certified():
    answer = check(gaussian())
    assert answer.verdict == "certified"
    assert 0.99e-6 < answer.lower <= answer.upper <= 1e-6
    assert answer.formulas
    assert answer.digest == digest(gaussian())


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"delta": 0.99e-6}, "refuted"),
        ({"epsilon": 0.999}, "refuted"),
        ({"subject__law__scale": 4.22}, "refuted"),
        ({"subject__sensitivity__radius": 1.01}, "refuted"),
        ({"subject__sensitivity__set": "l1"}, "certified"),  # the L1 ball lies inside
        ({"bracket": {"lower": 0.0, "upper": 1e-7}}, "refuted"),
        ({"bracket": {"lower": 1e-5, "upper": 1e-4}, "verdict": "refuted"}, "refuted"),
        ({"verdict": "refuted"}, "refuted"),
        ({"adjacency": "replace"}, "not described"),
        ({"adjacency": None}, "not described"),
        ({"subject__sensitivity__adjacency": "replace"}, "not described"),
        ({"subject__law__dim": 4}, "not described"),
        ({"subject__sensitivity__dim": 4}, "not described"),
        ({"subject__law__law": "unheard of"}, "not described"),
        ({"subject__kind": "geodp"}, "not described"),
        ({"subject": None}, "not described"),
        ({"schema": 2}, "not described"),
        ({"kind": "plan"}, "not described"),
        ({"epsilon": -1.0}, "not described"),
        ({"epsilon": float("nan")}, "not described"),
        ({"delta": True}, "not described"),
        ({"delta": 10**400}, "not described"),
        ({"subject__law__scale": 0.0}, "refuted"),
        ({"method": "other", "secure": False, "version": "9", "reason": "x"}, "certified"),
    ],
)
def test_what_is_stated_is_not_trusted(changes, verdict):
    assert check(gaussian(**changes)).verdict == verdict


def test_failures_and_variations_are_added():
    clean = plan(step(bare(1.0)), delta=0.0)
    assert check(clean).upper == 0.0
    fails = check(plan(step(bare(1.0, 1e-3), count=2), epsilon=2.0))
    assert fails.lower == pytest.approx(1 - (1 - 1e-3) ** 2, rel=1e-9)
    case = Case(None, Bounds.tight((Response(Fraction(1)), 1)), Fraction(1, 1000), Fraction(1, 10000))
    assert up(bounds(case, 1.0, 1e-6)[1]) == pytest.approx(1e-3 + (1 + e) * 1e-4, rel=1e-6)


def test_counts_and_composition():
    """Three pure releases of epsilon 1 are not (1.5, 1e-8): a binomial sum gives 0.3035."""
    answer = check(plan(step(bare(1.0), count=3), epsilon=1.5, delta=1e-8))
    assert answer.verdict == "refuted"
    assert answer.lower == pytest.approx(0.3035322, rel=1e-4)
    assert check(plan(step(bare(1.0), count=3), epsilon=3.0, delta=0.0)).upper == 0.0


def test_gaussian_steps_add_in_squares():
    one = check(plan(step({"loss": "gaussian", "mu": 0.5}, count=4)))
    other = check(plan(step({"loss": "gaussian", "mu": 1.0})))
    assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), rel=1e-12)


def test_sampling():
    """One sampled step has the closed form in both directions; more steps enclose it."""
    item = step({"loss": "gaussian", "mu": 1.0}, rate=0.1)
    answer = check(plan(item, adjacency="add-remove"))
    assert answer.upper == pytest.approx(answer.lower, rel=1e-9)
    assert answer.upper == pytest.approx(
        0.1 * check(plan(step({"loss": "gaussian", "mu": 1.0}), epsilon=log(1 + 10 * (e - 1)))).upper, rel=1e-3
    )
    many = check(plan({**item, "count": 5}, adjacency="add-remove", delta=1e-4))
    assert answer.upper < many.lower


@pytest.mark.parametrize("name", ["scheme", "failure", "total_variation", "assumptions"])
def test_fields_that_nothing_writes_are_not_passed_over(name):
    assert check(plan(step(bare(1.0), **{name: 0}))).verdict == "not described"
    assert check(plan(step({**bare(1.0), name: 0}))).verdict == "not described"
    assert check(plan(step({"loss": "gaussian", "mu": 1.0, name: 0}))).verdict == "not described"
    made = plan(step(bare(1.0)))
    made["subject"][name] = 0
    assert check(made).verdict == "not described"


def test_a_guarantee_that_is_not_attained_is_not_refuted():
    known = check(plan(step({**bare(1.0), "attained": True}), epsilon=0.5, delta=0.1))
    assert known.verdict == "refuted"
    for count in (1, 3):
        open_ = check(plan(step({**bare(1.0), "attained": False}, count=count), epsilon=0.5, delta=0.1))
        assert (open_.verdict, open_.lower) == ("undecided", 0.0)
        assert open_.upper >= known.upper
    assert check(plan(step({**bare(1.0), "attained": 1}))).verdict == "not described"


def test_mu_may_be_known_between_two_numbers():
    loss = {"loss": "gaussian", "mu": 1.0, "least": 0.5, "adjacency": None}
    found, low, high = (check(plan(step(one))) for one in (loss, {**loss, "mu": 0.5}, {**loss, "least": None}))
    assert (found.lower, found.upper) == (low.lower, high.upper)
    assert check(plan(step({**loss, "least": 1.1}))).verdict == "not described"


def test_a_loss_carries_its_relation():
    for loss in (bare(1.0), {"loss": "gaussian", "mu": 1.0}):
        told = {**loss, "adjacency": "replace"}
        assert check(plan(step(told), adjacency="replace")).verdict != "not described"
        assert check(plan(step(told), adjacency=None)).verdict == "not described"
        assert check(plan(step(told, rate=0.1), adjacency="replace")).verdict == "not described"
        assert check(plan(step(told, rate=0.1), adjacency="add-remove")).verdict == "not described"
        assert check(plan(step(told), step({**loss, "adjacency": "zero-out"}))).verdict == "not described"


def test_premises_and_assumptions():
    made = gaussian(subject__premises=["sensitivity"], assumptions=["The sensitivity is vouched for."], scope="rows")
    answer = check(made)
    assert answer.verdict == "certified"
    assert sum("not checked" in note for note in answer.notes) == 2
    for change in ({"assumptions": []}, {"assumptions": "none"}, {"scope": 3}):
        assert check({**made, **change}).verdict == "not described"


def test_relations_that_do_not_fit():
    item = step({"mechanism": gaussian(subject__sensitivity__adjacency="replace")["subject"]}, rate=0.1)
    assert check(plan(item, adjacency="replace")).verdict == "not described"
    one, other = (
        step({"mechanism": gaussian(subject__sensitivity__adjacency=name)["subject"]})
        for name in ("replace", "zero-out")
    )
    assert check(plan(one, other, adjacency="replace")).verdict == "not described"
    assert check(plan(one, one, adjacency="replace", epsilon=2.0)).verdict != "not described"


@pytest.mark.parametrize(
    ("region", "l2", "l1"),
    [
        ({"set": "l2", "radius": 2.0, "dim": 4}, 4.0, 2 * (4 + 16 + 1 + 1) ** 0.5),
        ({"set": "l2", "radius": 2.0, "dim": 4, "scales": [1.0, 0.1, 3.0, 1.0]}, 6.0, 2 * (4 + 0.16 + 9 + 1) ** 0.5),
        ({"set": "l1", "radius": 2.0, "dim": 4}, 8.0, 8.0),
        ({"set": "box", "profile": [1.0, 0.5, 2.0, 0.0]}, (4 + 4 + 4) ** 0.5, 6.0),
        ({"set": "blocks", "radii": [1.0, 2.0], "sizes": [2, 2]}, (16 + 4) ** 0.5, 20**0.5 + 2 * 2**0.5),
        ({"set": "slices", "radii": [1.0, 2.0], "shape": [2, 2], "mode": 1}, (4 + 64) ** 0.5, 5**0.5 + 2 * 17**0.5),
    ],
)
def test_reach_of_sets(region, l2, l1):
    scales = [0.5, 0.25, 1.0, 1.0]
    if region.get("radius") == 2.0 and region["set"] == "l2" and "scales" not in region:
        l2 = 8.0
    if region["set"] == "l1":
        l2 = l1 = 8.0
    found = read_set(region)
    assert float(found.l2_reach(scales)) == pytest.approx(l2, rel=1e-12)
    assert float(found.l1_reach(scales)) == pytest.approx(l1, rel=1e-12)


@pytest.mark.parametrize(
    "region",
    [
        {"set": "l2", "radius": 0.0, "dim": 1},
        {"set": "l2", "radius": 1.0, "dim": 2, "shape": [3]},
        {"set": "box", "profile": [1.0], "dim": 2},
        {"set": "blocks", "radii": [1.0], "sizes": [1, 2]},
        {"set": "slices", "radii": [1.0], "shape": [2, 2], "mode": 0},
        {"set": "hull"},
        {"set": "l1", "radius": 1.0, "dim": 1, "adjacency": "swap"},
    ],
)
def test_sets_that_contradict_themselves(region):
    with pytest.raises(NotDescribed):
        read_set(region)


def test_rounding_moves_by_what_rint_can():
    """Against all pairs of a fine grid of inputs, rounded half to even."""
    for eighths in range(33):
        width = eighths / 8
        seen = max(round(i / 16 + width) - round(i / 16) for i in range(64))
        close = max(round((i + 0.5) / 16 + width) - round((i + 0.5) / 16) for i in range(64))
        assert max(seen, close) == _steps_moved(width, 1.0), width


def test_outward_rounding():
    third = arb(1) / 3
    assert Fraction(down(third)) <= Fraction(1, 3) <= Fraction(up(third))
    assert down(arb(-1)) == 0.0
    assert total([(0.0, 0.0), (3.0, 4.0)], 2).contains(arb(9) / 16)
    assert not total([(1.0, 0.0)], 1).is_finite()
    many = [(float(i), float(i + 1)) for i in range(1, 100)]
    slow = sum((arb(a) / arb(b) for a, b in many), arb(0))
    assert total(many, 1).overlaps(slow)


def test_canonical_bytes():
    assert canonical({"b": [1.0, 1e21, 1e-7, -0.0], "a": "é"}) == '{"a":"é","b":[1,1e+21,1e-7,0]}'.encode()
    assert canonical(333333333.33333329) == b"333333333.3333333"
    assert digest({"a": 1, "b": 2}) == digest({"b": 2.0, "a": 1.0})
    with pytest.raises(ValueError, match="no infinities"):
        canonical(float("inf"))


def test_command_line(tmp_path, capsys):
    good, bad, none = (tmp_path / name for name in ("good.json", "bad.json", "none.json"))
    good.write_text(json.dumps(gaussian()))
    bad.write_text(json.dumps(gaussian(delta=1e-9)))
    none.write_text('{"kind": "certificate", "kind": "plan"}')
    assert main([str(good)]) == 0
    assert main([str(good), str(bad)]) == 3
    assert main([str(none)]) == 2
    assert main(["--json", str(bad)]) == 3
    assert '"verdict": "refuted"' in capsys.readouterr().out


def test_it_imports_nothing_of_the_library():
    """By its source, and by what is loaded after a check."""
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name == "shapedp" or name.startswith(("shapedp.", "numpy", "scipy")) for name in names), path
    code = "import sys, shapedp_check; sys.exit(any(n == 'shapedp' or n.startswith('shapedp.') for n in sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": str(PACKAGE.parent)}).returncode
        == 0
    )


def test_schema_is_the_published_one_and_names_every_law_and_set():
    shipped = json.loads((PACKAGE / "certificate.schema.json").read_text())
    published = Path(__file__).parents[2] / "docs" / "certificate.schema.json"
    assert json.loads(published.read_text()) == shipped
    from shapedp_check.additive import READERS

    laws = {name for law in shipped["$defs"]["law"]["oneOf"] for name in _names(law["properties"]["law"])}
    assert laws == set(READERS)


def _names(field):
    return field.get("enum") or [field["const"]]


def test_a_certificate_is_not_changed_by_the_check():
    made = gaussian()
    before = copy.deepcopy(made)
    check(made)
    assert made == before


def normal(x):
    return math.erfc(-x / math.sqrt(2)) / 2


@pytest.mark.parametrize(("rate", "count"), [(0.2, 1), (0.2, 8), (1.0, 1)])
def test_samples_of_a_fixed_size(rate, count):
    """One run: q H(log(1 + (e^x - 1)/q)). Several runs are worse than one."""
    loss = {"loss": "gaussian", "mu": 1.0}
    inner = math.log1p(math.expm1(0.5) / rate)
    one = rate * (normal(0.5 - inner) - math.exp(inner) * normal(-0.5 - inner))
    fixed = step(loss, count, rate, scheme="without-replacement")
    answer = check(plan(fixed, epsilon=0.5, delta=one * 1.001, adjacency="replace"))
    if count == 1:
        assert answer.lower == pytest.approx(one, rel=1e-9)
        assert answer.upper == pytest.approx(one, rel=1e-9)
    else:
        assert answer.verdict == "refuted"
        assert 2 * one < answer.lower <= answer.upper < 1


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
def test_samples_of_a_fixed_size_are_of_replaced_neighbours(adjacency):
    loss = {"loss": "gaussian", "mu": 1.0, "adjacency": adjacency}
    fixed = step(loss, 1, 0.2, scheme="without-replacement")
    assert check(plan(fixed, adjacency=adjacency)).verdict == "not described"
    assert check(plan(step({"loss": "gaussian", "mu": 1.0}, 1, 0.2, scheme="fixed"))).verdict == "not described"
