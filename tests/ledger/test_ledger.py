"""What a ledger promises its user, on both databases."""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.ledger.helpers import ADJACENCY, CAP, X, fill, gaussian

import shapedp as sdp
from shapedp.ledger import BudgetExceededError, Ledger, LedgerError, SpendRefusedError


def test_a_spend_is_counted_before_and_marked_after(where: str) -> None:
    ledger = Ledger.create(where, dataset="d", **CAP)
    with ledger.spend("d", gaussian(4)) as spend:
        inside = Ledger.open(where).status("d")
        assert inside.states == {"reserved": 1, "released": 0, "abandoned": 0}
        assert inside.totals == spend.charge
        release = spend.release(X)
    (entry,) = ledger.history("d")
    assert entry.state == "released"
    assert entry.certificate == json.loads(json.dumps(release.certificate.to_json()))
    assert entry.certificate["secure"] is True
    assert entry.mechanism["type"].endswith("Additive")
    assert entry.cost == spend.charge
    assert sdp.verify(sdp.Certificate.from_json(entry.certificate)).verdict == "certified"


def test_a_plain_release_in_the_block(where: str) -> None:
    ledger, mechanism = Ledger.create(where, dataset="d", **CAP), gaussian(4)
    with ledger.spend("d", mechanism):
        mechanism.release(X)
    assert [entry.state for entry in ledger.history("d")] == ["released"]


def test_over_the_cap_nothing_is_reserved(where: str) -> None:
    ledger, mechanism = Ledger.create(where, dataset="d", **CAP), gaussian(3)
    assert ledger.affords("d", mechanism) == 3
    with ledger.spend("d", mechanism, count=2):
        pass
    with pytest.raises(BudgetExceededError, match="nothing was reserved"), ledger.spend("d", mechanism, count=2):
        raise AssertionError("the block ran")
    assert ledger.affords("d", mechanism) == 1
    with ledger.spend("d", mechanism):
        pass
    assert ledger.affords("d", mechanism) == 0
    assert ledger.check("d").entries == 2
    assert ledger.check("d").spent <= 1


def test_an_exception_keeps_the_cost(where: str) -> None:
    """A refund that depended on what happened in the block would void the filter."""
    ledger = Ledger.create(where, dataset="d", **CAP)

    def work() -> None:
        with ledger.spend("d", gaussian(3)):
            raise KeyError("in the block")

    with pytest.raises(KeyError, match="in the block"):
        work()
    assert ledger.affords("d", gaussian(3)) == 2
    assert [entry.state for entry in ledger.history("d")] == ["abandoned"]


def test_a_batch_counts_as_many(where: str) -> None:
    ledger, mechanism = Ledger.create(where, dataset="d", **CAP), gaussian(5)
    with ledger.spend("d", mechanism, count=3) as spend:
        spend.release([X, X], batch=2)
        assert spend.remaining == 1
        with pytest.raises(SpendRefusedError, match="1 of the 3"):
            spend.release([X, X], batch=2)
        spend.record(mechanism.release(X))
        with pytest.raises(SpendRefusedError, match="0 of the 3"):
            spend.release(X)
    assert ledger.affords("d", mechanism) == 2


def refuted() -> sdp.Additive:
    return replace(gaussian(4), law=sdp.Gaussian(0.1, 1))


def undecided() -> sdp.Additive:
    exact = gaussian(4)
    upper = exact.loss.delta(1.0)
    return replace(exact, delta=(upper.lower + upper.upper) / 2)


@pytest.mark.parametrize(
    ("mechanism", "reason"),
    [
        (refuted(), "refuted"),
        (undecided(), "undecided"),
        (replace(gaussian(4), sensitivity=sdp.L2(1.0, 1, adjacency="add-remove")), "add-remove"),
        (replace(gaussian(4), sensitivity=sdp.L2(1.0, 1)), "adjacency"),
    ],
    ids=["refuted", "undecided", "other adjacency", "no adjacency"],
)
def test_mechanisms_a_ledger_refuses(tmp_path: Path, mechanism: sdp.Additive, reason: str) -> None:
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    with pytest.raises(SpendRefusedError, match=reason):
        ledger.spend("d", mechanism)
    with pytest.raises(SpendRefusedError, match=reason):
        ledger.affords("d", mechanism)
    assert ledger.status("d").entries == 0


def test_unsafe_and_seeded_releases_are_refused(where: str) -> None:
    ledger, mechanism = Ledger.create(where, dataset="d", **CAP), gaussian(4)
    with ledger.spend("d", mechanism) as spend:
        with pytest.raises(SpendRefusedError, match="unsafe=True"):
            spend.release(X, unsafe=True)
        with pytest.raises(SpendRefusedError, match="rng="):
            spend.release(X, rng=np.random.default_rng(0))
        with pytest.raises(SpendRefusedError, match="unsafe release"):
            spend.record(refuted().release(X, unsafe=True))
        with pytest.raises(SpendRefusedError, match="rng="):
            spend.record(mechanism.release(X, rng=np.random.default_rng(0)))
        with pytest.raises(SpendRefusedError, match="another mechanism"):
            spend.record(gaussian(7).release(X))
        with pytest.raises(TypeError, match="records releases"):
            spend.record(np.zeros(1))
        assert spend.remaining == 1
        spend.release(X)


def test_a_spend_is_used_once_and_only_inside_its_block(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    spend = ledger.spend("d", gaussian(4))
    with pytest.raises(LedgerError, match="not open"):
        spend.release(X)
    with spend:
        pass
    with pytest.raises(LedgerError, match="not open"):
        spend.release(X)
    with pytest.raises(LedgerError, match="used once"):
        spend.__enter__()


def test_rules_per_dataset(where: str) -> None:
    """Laplace and Gaussian noise under each rule; each cap holds on its own."""
    ledger = Ledger.create(where, dataset="gaussian", **CAP)
    for rule in ("either", "renyi", "basic"):
        ledger.add(rule, **{**CAP, "rule": rule})
    ledger.add("pure", epsilon=1.0, delta=0.0, adjacency=ADJACENCY)
    laplace = sdp.calibrate("laplace", sdp.L1(1.0, 1, adjacency=ADJACENCY), epsilon=0.1, delta=0.0)
    assert {name: ledger.affords(name, laplace) for name in ledger.datasets()} == {
        "gaussian": 3,
        "either": 10,
        "renyi": 9,
        "basic": 10,
        "pure": 10,
    }
    for name in ledger.datasets():
        with ledger.spend(name, laplace) as spend:
            spend.release(X)
        ledger.check(name)
    with pytest.raises(SpendRefusedError, match="pure"):
        ledger.spend("pure", gaussian(4))


def test_history_pages_and_last(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    fill(ledger, gaussian(10**6), 2500)
    assert [entry.sequence for entry in ledger.history("d")] == list(range(1, 2501))
    assert [entry.sequence for entry in ledger.history("d", last=3)] == [2498, 2499, 2500]
    assert ledger.check("d").entries == 2500


def test_a_ledger_travels_to_another_process(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    assert pickle.loads(pickle.dumps(ledger)).status("d").entries == 0


def test_cost_of_a_spend_does_not_grow_with_the_history(tmp_path: Path) -> None:
    """A spend at 100,000 entries against one at 1,000: medians of 40 each, alternating, ratio at most 3."""
    mechanism, ledgers, times = gaussian(10**7), {}, {1_000: [], 100_000: []}
    for size in times:
        ledgers[size] = Ledger.create(tmp_path / f"{size}.db", dataset="d", **CAP)
        fill(ledgers[size], mechanism, size)
    for _ in range(40):
        for size, ledger in ledgers.items():
            started = time.perf_counter()
            with ledger.spend("d", mechanism):
                pass
            times[size].append(time.perf_counter() - started)
    small, large = (float(np.median(times[size])) for size in times)
    assert large <= 3 * small, (small, large)


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        ({"dataset": ""}, ValueError, "dataset"),
        ({"dataset": "  "}, ValueError, "dataset"),
        ({"dataset": None}, ValueError, "dataset"),
        ({"dataset": "x" * 201}, ValueError, "dataset"),
        ({"adjacency": "unknown"}, ValueError, "adjacency"),
        ({"adjacency": None}, ValueError, "adjacency"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"delta": 2.0}, ValueError, "delta"),
        ({"timeout": 0.0}, ValueError, "timeout"),
        ({"timeout": float("nan")}, ValueError, "timeout"),
        ({"rule": "pld"}, ValueError, "rule"),
    ],
)
def test_bad_input_touches_no_file(
    tmp_path: Path, change: dict[str, object], error: type[Exception], word: str
) -> None:
    with pytest.raises(error, match=word):
        Ledger.create(tmp_path / "l.db", **{"dataset": "d", **CAP, **change})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("where", "error"),
    [
        (":memory:", ValueError),
        ("sqlite://", ValueError),
        ("mysql://u@h/d", ValueError),
        ("://", ValueError),
        ("", TypeError),
        (7, TypeError),
        (b"l.db", TypeError),
    ],
)
def test_bad_places(where: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        Ledger.create(where, dataset="d", **CAP)


@pytest.mark.parametrize("count", [0, -1, 1.0, "1", None, True, 10**13])
def test_bad_counts_reserve_nothing(tmp_path: Path, count: object) -> None:
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    with pytest.raises((TypeError, ValueError), match="count"):
        ledger.spend("d", gaussian(4), count=count)
    with ledger.spend("d", gaussian(4)) as spend, pytest.raises((TypeError, ValueError)):
        spend.release(X, batch=0)
    assert ledger.status("d").entries == 1


@pytest.mark.parametrize("thing", [None, 3, "gaussian", sdp.GaussianLoss(0.1)])
def test_only_mechanisms_are_spent(tmp_path: Path, thing: object) -> None:
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    with pytest.raises(TypeError, match="spends mechanisms"):
        ledger.spend("d", thing)


def test_names_that_are_taken_or_unknown(where: str) -> None:
    ledger = Ledger.create(where, dataset="d", **CAP)
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(where, dataset="d", **CAP)
    with pytest.raises(LedgerError, match="no dataset 'e'"):
        ledger.spend("e", gaussian(4))
    with pytest.raises(LedgerError, match="no dataset"):
        ledger.status("e")
    with pytest.raises(ValueError, match="last"):
        ledger.history("d", last=0)
    Ledger.create(where, dataset="e", **CAP)
    assert ledger.datasets() == ("d", "e")
