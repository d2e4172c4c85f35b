"""Numbers that wrap, arrays that others can write to, lists that change later: none of them moves what is certified."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.pool import stock

import shapedp as sdp
from shapedp.accounting import Step
from shapedp.boundary.values import plainest
from shapedp.ledger import Ledger, schema
from shapedp.ledger.errors import BudgetExceededError, SpendRefusedError
from shapedp.ledger.filters import make_filter
from shapedp.ledger.fixed import Charge
from shapedp.mechanisms import Additive
from shapedp.workloads.answers import AnswerMechanism
from shapedp.workloads.mechanism import WorkloadMechanism

CLAIM: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
NARROW = (np.int8, np.uint8, np.int64, np.float32)
BESIDE = ("get_params",)  # an estimator keeps what it is given and reads it in `fit`


def test_bounds_of_a_workload_do_not_wrap() -> None:
    """16 rows and 17 groups of 8 bits were 272 cells modulo 256: noise of scale 16 for 272."""
    for kind in NARROW[:3]:
        asked = sdp.Workload({"a": 1000}, max_rows=kind(16), max_groups=kind(17)).marginal("a")
        assert asked.most == 272
        assert asked.calibrate(epsilon=1.0, delta=0.0, noise="laplace").noise[0].scale >= 272


@pytest.mark.parametrize("one", stock(), ids=lambda one: type(one).__name__)
def test_every_record_keeps_plain_numbers(one: Any) -> None:
    """Found by inspection: whatever class of integer or float a field is given, Python's own is kept."""
    if not dataclasses.is_dataclass(one) or any(hasattr(one, name) for name in BESIDE):
        pytest.skip("no dataclass, or an estimator")
    for field in dataclasses.fields(one):
        value = getattr(one, field.name)
        if not field.init or type(value) not in (int, float):
            continue
        for kind in NARROW:
            with contextlib.suppress(TypeError, ValueError, OverflowError):  # a value it does not take or hold
                made = dataclasses.replace(one, **{field.name: kind(value)})
                assert type(getattr(made, field.name)) in (int, float), (field.name, kind)


class Changing(int):
    """Three, or whatever it is asked for next."""

    def __float__(self) -> float:
        return 1e-9

    def __mul__(self, other: Any) -> Any:
        return 0

    __rmul__ = __mul__


class Relation(enum.StrEnum):
    replace = "replace"


class Word(str):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def test_plainest() -> None:
    assert [type(plainest(x)) for x in (np.uint8(3), np.float32(2), np.bool_(True), Changing(3))] == [
        int,
        float,
        bool,
        int,
    ]
    assert type(plainest(Word("a"))) is str
    assert plainest((np.int8(3), 1)) == (3, 1)
    assert plainest(kept := (1, 2)) is kept
    assert plainest(other := object()) is other


def test_a_word_that_equals_everything_is_no_relation() -> None:
    with pytest.raises(ValueError, match="adjacency"):
        sdp.L2(1.0, 3, adjacency=Word("no relation"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="adjacency"):  # it may answer every comparison as it likes
        sdp.L2(1.0, dim=2).clip(np.ones((2, 2)), adjacency=Word("replace"))  # type: ignore[arg-type]
    for usual in (Relation.replace, np.str_("replace")):
        assert type(sdp.L2(1.0, 3, adjacency=usual).adjacency) is str  # type: ignore[arg-type]


@pytest.mark.parametrize("made", [sdp.Gaussian, sdp.Laplace])
def test_scales_cannot_be_changed_behind_a_certificate(made: Any) -> None:
    scales = np.full(3, 100.0)
    view = scales[:]
    scales.setflags(write=False)
    m = Additive(made(scales), sdp.L2(1.0, dim=3, adjacency="replace"), epsilon=1.0, delta=1e-6)
    assert m.certificate.verdict == "certified"
    view[:] = 1e-9
    assert (m.law.scales == 100.0).all()
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        m.law.scales.setflags(write=True)


def test_sets_and_workloads_cannot_be_changed_either() -> None:
    radii, vertices, rows = np.ones(2), np.eye(2), np.ones((1, 3))
    views = [one[:] for one in (radii, vertices, rows)]
    for one in (radii, vertices, rows):
        one.setflags(write=False)
    blocks, hull = sdp.Blocks(radii, [2, 1]), sdp.Hull(vertices)
    asked = sdp.Workload({"a": 3}).rows(rows, "a")
    before = blocks.to_json(), hull.to_json(), asked.to_json()
    for view in views:
        view[:] = 7.0
    assert before == (blocks.to_json(), hull.to_json(), asked.to_json())


def test_a_list_of_families_is_kept_as_it_was() -> None:
    asked = sdp.Workload({"a": 3}).marginals(1)
    m = asked.calibrate(**CLAIM)
    families = list(m.families)
    again = WorkloadMechanism(asked, families, 1.0, 1e-6, "add-remove")  # type: ignore[arg-type]
    families[:] = [dataclasses.replace(one, sigma=one.sigma * 1e-6) for one in families]
    assert [one.sigma.tolist() for one in again.families] == [one.sigma.tolist() for one in m.families]
    assert WorkloadMechanism(asked, iter(m.families), 1.0, 1e-6, "add-remove").certificate.verdict == "certified"  # type: ignore[arg-type]
    whole = asked.calibrate(epsilon=1.0, delta=0.0, noise="discrete")
    noise = list(whole.noise)
    kept = AnswerMechanism(asked, noise, whole.cells, 1.0, 0.0, "add-remove", whole.records)  # type: ignore[arg-type]
    noise.clear()
    assert kept.noise == whole.noise


def small() -> Additive:
    return sdp.calibrate("laplace", sdp.L1(1.0, dim=1, adjacency="add-remove"), epsilon=0.1, delta=0.0)


def test_an_edited_spend_is_charged_what_it_says(tmp_path: Path) -> None:
    cap: dict[str, Any] = {"epsilon": 1.0, "delta": 0.0, "adjacency": "add-remove"}
    ledger = Ledger.create(tmp_path / "budget.db", dataset="d", **cap)
    spend = ledger.spend("d", small())
    wide = dataclasses.replace(spend.terms, filter=make_filter(epsilon=1000.0, delta=0.0))
    for edit in ({"count": 1000}, {"count": 1000, "charge": Charge((0,))}, {"count": 1000, "terms": wide}):
        with pytest.raises(BudgetExceededError), dataclasses.replace(spend, **edit):  # type: ignore[arg-type]
            pass
    large = sdp.calibrate("laplace", sdp.L1(1.0, dim=1, adjacency="add-remove"), epsilon=5.0, delta=0.0)
    with pytest.raises(BudgetExceededError), dataclasses.replace(spend, mechanism=large):
        pass
    with dataclasses.replace(spend, charge=Charge((0,))) as open_:
        open_.release([1.0])
    assert ledger.affords("d", small()) == 9
    with ledger.spend("d", small()) as edited:
        edited.mechanism = large
        edited.certificate = schema.to_text(dataclasses.replace(large.certificate, secure=None).to_json())
        with pytest.raises(SpendRefusedError, match="edited"):
            edited.release([1.0])
        with pytest.raises(SpendRefusedError):
            edited.record(large.release([1.0]))
    job = ledger.spend("d", sdp.Plan((Step(small()),))).mechanism
    loud = dataclasses.replace(job, described=small(), certificate=large.certificate)  # type: ignore[type-var]
    with dataclasses.replace(spend, mechanism=loud) as again, pytest.raises(SpendRefusedError):
        again.record(large.release([1.0]))


class Cheap(Additive):
    """A user's class that states what it likes."""

    @property
    def certificate(self) -> sdp.Certificate:  # type: ignore[override]
        return dataclasses.replace(small().certificate, epsilon=1e-9)


def test_a_class_that_states_its_own_certificate_is_computed(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db", dataset="d", epsilon=1.0, delta=0.0, adjacency="add-remove")
    m = small()
    with pytest.raises(SpendRefusedError):
        ledger.spend("d", Cheap(m.law, m.sensitivity, m.epsilon, m.delta))


def test_rates_of_selections_go_to_two_to_the_62() -> None:
    """An end of 2^53 for all counts refused them: quantiles of persons with many rows, small epsilons."""
    made = sdp.Selection.calibrate(100, epsilon=0.1, delta=1e-6, sensitivity=100, monotone=True, times=3)
    assert made.rate[1] > 2**53
    assert sdp.Selection.from_json(made.to_json()).to_json() == made.to_json()
    answer = sdp.quantiles(
        [900, 50, 50], [1, 2, 3], [0.5], method="recursion", records=100, epsilon=0.1, delta=0.0, adjacency="add-remove"
    )
    assert answer.certificate.verdict == "certified"


def test_numpy_sizes_give_what_plain_ones_give() -> None:
    near: dict[str, Any] = {**CLAIM, "adjacency": "add-remove"}
    for kind in (np.int64, np.uint8):
        keys = (sdp.KeySelection.calibrate(keys=one, **near).to_json() for one in (kind(200), 200))
        assert next(keys) == next(keys)
        sizes: dict[str, Any] = {"rows": 100, "records": 100, "dim": 100}
        narrow = {name: kind(one) for name, one in sizes.items()}
        made = (sdp.Mixing.calibrate(**one, row_bound=1.0, **CLAIM) for one in (sizes, narrow))
        assert len({one.gamma for one in made}) == 1


def test_a_certificate_keeps_plain_values() -> None:
    one = sdp.Certificate(np.float32(1.0), 0.1, None, sdp.Bracket(0.0, 0.1), "x")  # type: ignore[arg-type]
    assert type(one.epsilon) is float
    for premises in ("abc", ""):
        with pytest.raises(TypeError, match="assumptions"):
            sdp.Certificate(1.0, 0.1, None, sdp.Bracket(0.0, 0.1), "x", assumptions=premises)  # type: ignore[arg-type]
