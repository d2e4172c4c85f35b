"""Ways of drawing batches: what is drawn is what is certified, and a pass is paid for as a whole."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.accounting import Plan, Step
from shapedp.privacy.losses.shuffle import ShuffledLoss
from shapedp.sampling import Source, source
from shapedp.sensitivity import ADJACENCIES
from shapedp.torch import BudgetError, Flat, Layout, TrainingPlan, attach, make_private
from shapedp.torch.batches import AllocatedBatches, FixedBatches, ShuffledBatches, uniform_order
from shapedp.torch.training import Part

WAYS = {"poisson": "add-remove", "allocation": "add-remove", "shuffle": "zero-out", "fixed": "replace"}


def simulated(seed: int) -> Source:
    return source(np.random.default_rng(seed))


def room(expected: float, draws: int) -> float:
    """Six deviations of a count: false alarms below 1e-8."""
    return 6 * math.sqrt(draws * expected * (1 - expected)) / draws


def trained(sampling: str, records: int = 20, batch: int = 6, **options: Any) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    data = TensorDataset(torch.arange(2.0 * records).reshape(records, 2), torch.zeros(records, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    loader = DataLoader(data, batch_size=batch)
    given = {"noise_multiplier": 1.0, "delta": 1e-5} | options
    return make_private(model, optimizer, loader, clip=1.0, sampling=sampling, **given)


def steps(model: Any, optimizer: Any, loader: Any, most: int | None = None) -> list[list[int]]:
    """One iteration; the records of every piece."""
    seen = []
    for x, y in itertools.islice(loader, most):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
        seen.append((x[:, 0] / 2).int().tolist())
    return seen


def test_every_record_is_placed_once_and_each_place_is_as_likely() -> None:
    draws, records, turns, rng = 5, 4, 4000, simulated(1)
    counted, together = Counter[tuple[int, int]](), Counter[int]()
    for _ in range(turns):
        found = list(AllocatedBatches(range(records), draws, rng, None, lambda part: None))
        assert len(found) == draws
        assert sorted(itertools.chain(*found)) == list(range(records))
        places = {index: place for place, drawn in enumerate(found) for index in drawn}
        counted.update(places.items())
        together[len(set(places.values()))] += 1
    for pair in itertools.product(range(records), range(draws)):
        assert abs(counted[pair] / turns - 1 / draws) < room(1 / draws, turns)
    apart = 4 / 5 * 3 / 5 * 2 / 5  # four records in four different draws: they are placed independently
    assert abs(together[4] / turns - apart) < room(apart, turns)


def test_words_beyond_the_last_multiple_are_drawn_again() -> None:
    """Three draws: 2^64 - 1 would belong to the first one too often."""

    class Few:
        secure = False

        def __init__(self) -> None:
            self.given = [np.array([2**64 - 1, 5, 7], dtype=np.uint64), np.array([4], dtype=np.uint64)]

        def words(self, size: int) -> Any:
            found = self.given.pop(0)
            assert found.size == size
            return found

    batches = AllocatedBatches(range(3), 3, Few(), None, lambda part: None)  # type: ignore[arg-type]
    assert list(batches) == [[], [0, 2], [1]]


def test_orders_are_uniform_and_ties_are_drawn_again() -> None:
    turns, rng = 6000, simulated(2)
    counted = Counter(tuple(uniform_order(3, rng).tolist()) for _ in range(turns))
    assert len(counted) == 6
    assert all(abs(n / turns - 1 / 6) < room(1 / 6, turns) for n in counted.values())

    class Tied:
        def __init__(self) -> None:
            self.turn = 0

        def words(self, size: int) -> Any:
            self.turn += 1
            return np.array([9, 9, 1] if self.turn == 1 else [9, 8, 1], dtype=np.uint64)

    assert uniform_order(3, Tied()).tolist() == [2, 1, 0]  # type: ignore[arg-type]


def test_a_shuffle_has_batches_of_one_size() -> None:
    found = list(ShuffledBatches(range(17), 5, simulated(3), None, lambda part: None))
    assert [len(one) for one in found] == [5, 5, 5, 2]
    assert sorted(itertools.chain(*found)) == list(range(17))


def test_fixed_draws_are_uniform_sets_drawn_anew() -> None:
    turns = 6000
    batches = FixedBatches(range(5), 2, turns, simulated(4), None, lambda part: None)
    found = [tuple(one) for one in batches]
    assert all(len(set(one)) == 2 for one in found)
    counted, pairs = Counter(found), Counter(itertools.pairwise(found))
    assert len(counted) == 10
    assert all(abs(n / turns - 0.1) < room(0.1, turns) for n in counted.values())
    again = sum(n for (one, two), n in pairs.items() if one == two) / (turns - 1)
    assert abs(again - 0.1) < room(0.1, turns)  # a draw says nothing about the next one


@pytest.mark.parametrize("most", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", [AllocatedBatches, ShuffledBatches, FixedBatches])
def test_pieces_of_a_draw(kind: Any, most: int) -> None:
    parts: list[Part] = []
    size = {AllocatedBatches: (4,), ShuffledBatches: (5,), FixedBatches: (5, 4)}[kind]
    batches = kind(range(20), *size, simulated(5), most, parts.append)
    pieces = list(batches)
    assert [part.records for part in parts] == [len(piece) for piece in pieces]
    assert all(len(piece) <= most or part.last for piece, part in zip(pieces, parts, strict=True))
    assert sum(part.last for part in parts) == sum(part.first for part in parts) == 4
    assert len(pieces) == 4 * batches.pieces


@pytest.mark.parametrize("sampling", WAYS)
def test_a_training_draws_what_it_certifies(sampling: str) -> None:
    model, optimizer, loader = trained(sampling, rng=np.random.default_rng(0))  # 1.3% of draws are empty
    seen = steps(model, optimizer, loader)
    assert len(seen) == len(loader) == 4
    if sampling in ("allocation", "shuffle"):
        assert sorted(itertools.chain(*seen)) == list(range(20))
    if sampling == "shuffle":
        assert [len(one) for one in seen] == [6, 6, 6, 2]
    if sampling == "fixed":
        assert all(len(set(one)) == 6 for one in seen)
    training = optimizer.privacy_
    assert training.steps == 4
    step = {
        "poisson": Step(sdp.GaussianLoss(1.0), 0.3, 4),
        "allocation": Step(sdp.GaussianLoss(1.0), scheme="allocation", batches=4),
        "shuffle": Step(sdp.GaussianLoss(1.0), scheme="shuffle", batches=4),
        "fixed": Step(sdp.GaussianLoss(2.0), 0.3, 4, "without-replacement"),
    }[sampling]
    assert training.epsilon().upper == pytest.approx(Plan((step,)).epsilon(1e-5).upper, rel=1e-3)
    assert training.certificate.adjacency == WAYS[sampling]
    assert training.certificate.verdict == "certified"
    assert sdp.verify(training.certificate).verdict == "certified"


@pytest.mark.parametrize("sampling", ["allocation", "shuffle"])
def test_a_pass_is_paid_for_whole_and_once(sampling: str) -> None:
    model, optimizer, loader = trained(sampling)
    training = optimizer.privacy_
    steps(model, optimizer, loader, 1)
    one = training.epsilon()
    assert (training.steps, training.account.taken) == (1, 1)
    steps(model, optimizer, loader)
    assert (training.steps, training.account.taken) == (8, 2)  # the pass that was left counts 4 steps
    two = training.epsilon()
    assert two.upper > one.upper


def test_passes_that_take_turns_are_paid_for_each_time() -> None:
    model, optimizer, loader = trained("allocation")
    first, second = iter(loader), iter(loader)
    for turn in (first, second, first, first):
        x, y = next(turn)
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    assert optimizer.privacy_.account.taken == 3


def test_the_budget_is_that_of_whole_passes() -> None:
    model, optimizer, loader = trained("allocation", noise_multiplier=None, epsilon=3.0, delta=1e-5, steps=5)
    training = optimizer.privacy_
    assert training.account.limit == 2  # five steps of passes of four
    assert training.planned.certificate.verdict == "certified"
    for _ in range(2):
        steps(model, optimizer, loader)
    with pytest.raises(BudgetError):
        steps(model, optimizer, loader)
    assert training.certificate.verdict == "certified"


@pytest.mark.parametrize("sampling", ["shuffle", "fixed"])
def test_the_least_noise_meets_the_claim(sampling: str) -> None:
    plan = TrainingPlan(
        Layout.single(10), records=600, batch_size=30, clip=Flat(1.0), epsilon=2.0, delta=1e-5, steps=40,
        sampling=sampling,
    )  # fmt: skip
    assert plan.certificate.verdict == "certified"
    less = TrainingPlan(
        Layout.single(10), records=600, batch_size=30, clip=Flat(1.0), epsilon=2.0, delta=1e-5, steps=40,
        sampling=sampling, scale=plan.scale * 0.99,
    )  # fmt: skip
    assert less.certificate.verdict != "certified"
    assert TrainingPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@pytest.mark.parametrize("sampling", ["allocation", "fixed"])
def test_a_checkpoint_in_the_middle_of_a_pass(sampling: str) -> None:
    model, optimizer, loader = trained(sampling)
    steps(model, optimizer, loader, 2)
    state = optimizer.privacy_.state_dict()
    again, optimizer, loader = trained(sampling)
    optimizer.privacy_.load_state_dict(state)
    before = optimizer.privacy_.steps
    assert before == (4 if sampling == "allocation" else 2)
    steps(again, optimizer, loader)
    assert optimizer.privacy_.steps == before + 4
    assert optimizer.privacy_.account.taken == (2 if sampling == "allocation" else 6)
    _, optimizer, _ = trained("poisson")
    if sampling == "allocation":
        optimizer.privacy_.load_state_dict(state)
        assert optimizer.privacy_.epsilon().upper > 0
    else:
        with pytest.raises(ValueError, match="cannot mix neighbour relations"):
            optimizer.privacy_.load_state_dict(state)


@pytest.mark.parametrize("sampling", ["allocation", "fixed", "shuffle"])
def test_pieces_change_nothing_of_what_is_drawn(sampling: str) -> None:
    model, optimizer, loader = trained(sampling, physical_batch_size=4)
    seen = steps(model, optimizer, loader)
    assert optimizer.privacy_.steps == 4
    held = [index for piece in seen for index in piece if len(piece) > 1 or index]
    assert len(held) >= (24 if sampling == "fixed" else 19) - 4


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="sampling must be"):
        trained("balls")
    with pytest.raises(ValueError, match="certified for single records"):
        trained("fixed", owner=list(range(20)), per_owner=1)
    assert trained("poisson")[1].privacy_.planned.sampling == "poisson"
    assert set(WAYS.values()) == set(ADJACENCIES)


def test_persons_are_placed_whole() -> None:
    ids = [index // 2 for index in range(20)]
    model, optimizer, loader = trained(
        "allocation", batch=5, owner=ids, per_owner=2, rng=np.random.default_rng(0)
    )  # nobody in a draw: 0.2% of all
    seen = steps(model, optimizer, loader)
    assert len(seen) == 2
    for drawn in seen:
        assert Counter(index // 2 for index in drawn if drawn != [0]) == {index // 2: 2 for index in drawn}
    assert sorted(itertools.chain(*seen)) == list(range(20))


def test_a_plan_attaches() -> None:
    model = torch.nn.Linear(3, 1)
    plan = TrainingPlan(
        Layout.of(model), records=50, batch_size=10, clip=Flat(1.0), scale=1.0, delta=1e-5, sampling="allocation"
    )
    data = DataLoader(TensorDataset(torch.zeros(50, 3), torch.zeros(50, 1)), batch_size=10, drop_last=True)
    _, optimizer, loader = attach(plan, model, torch.optim.SGD(model.parameters(), lr=0.1), data)
    assert (len(loader), optimizer.privacy_.planned.batches) == (5, 5)
    assert "drawn record by record" in str(plan)


def test_no_pair_of_batches_is_worse_than_what_is_certified_of_a_shuffle() -> None:
    """Two batches, the record in one and another record in the other, gradients by step at will: a grid of outputs."""
    grid = np.linspace(-7, 7, 141)
    cell = (grid[1] - grid[0]) ** 2 / (2 * math.pi)
    rng, mu = np.random.default_rng(0), 1.0

    def law(one: float, other: float) -> Any:
        return np.exp(-((grid[:, None] - one) ** 2 + (grid[None, :] - other) ** 2) / 2) * cell

    loss = ShuffledLoss(sdp.GaussianLoss(mu), 2)
    worst = dict.fromkeys((0.1, 0.5, 1.0), 0.0)
    for turn in range(60):
        own = rng.choice([-1.0, 0.5, 1.0], 2) * mu
        other = rng.uniform(-mu, mu, 2) if turn else -own
        own = np.full(2, mu) if not turn else own
        other = np.full(2, -mu) if not turn else other
        present = (law(own[0], other[1]) + law(other[0], own[1])) / 2
        blank = (law(0.0, other[1]) + law(other[0], 0.0)) / 2
        for e in worst:
            seen = max(np.maximum(a - math.exp(e) * b, 0).sum() for a, b in ((present, blank), (blank, present)))
            worst[e] = max(worst[e], float(seen))
    for e, seen in worst.items():
        found = loss.delta(e)
        assert found.lower * (1 - 1e-3) <= seen <= found.upper * (1 + 1e-3)


def test_the_table_of_the_page() -> None:
    """The quick rows are computed again, all are as in the stored block."""
    root = Path(__file__).parents[2]
    sys.path.insert(0, str(root / "experiments" / "trust"))
    import passes

    page = (root / "docs" / "deep-learning.md").read_text("utf-8")
    block = page.partition("<!-- passes -->\n")[2].partition("\n<!-- end of passes -->")[0].splitlines()
    assert len(block) == 2 + len(passes.ROWS)
    for row in (0, 1):
        sigma, batches, times = passes.ROWS[row]
        shown = [part.strip() for part in block[2 + row].strip("|").split("|")]
        assert shown == [f"{sigma:g}", f"{batches:,}", str(times), *passes.ways(sigma, batches, times)]
