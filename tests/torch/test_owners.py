"""Persons with several records: what is theirs is clipped together, persons are drawn, the certificate is theirs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from tests.torch.helpers import step
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.audit.membership import epsilon_bound
from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian
from shapedp.sampling import SimulatedSource
from shapedp.torch import (
    Adaptive,
    Auto,
    Clip,
    Flat,
    Layout,
    PerLayer,
    PerValue,
    PrivacyEngine,
    RecordError,
    TrainingPlan,
    attach,
    canary,
    make_private,
)  # fmt: skip
from shapedp.torch.gradients import Dense, Outer, Products, Scattered
from shapedp.torch.loader import Part, PoissonBatches
from shapedp.torch.owners import Owners
from shapedp.torch.people import People

ALARM = 1e-6
CAP = 3
SIZES = (2, 1, 3, 3, 1, 2)  # the records of the persons of a batch
ROWS = sum(SIZES)
CLIP = 0.3


class Sequences(nn.Module):
    """A wide layer on sequences, whose gradients stay products; an embedding; norms."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(11, 256), nn.LayerNorm(256)
        self.wide, self.head = nn.Linear(256, 256), nn.Linear(256, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(torch.tanh(self.wide(self.norm(self.embedding(x)))).mean(1))
        return out


def flat_model() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 300), nn.Tanh(), nn.Linear(300, 300), nn.Tanh(), nn.Linear(300, 2))


def conv_model() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.GroupNorm(3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(3 * 9, 2))


def images(n: int) -> torch.Tensor:
    return torch.randn(n, 1, 5, 5)


MODELS: dict[str, tuple[Any, Any]] = {
    "flat": (flat_model, lambda n: torch.randn(n, 6)),
    "conv": (conv_model, images),
    "sequences": (Sequences, lambda n: torch.randint(0, 11, (n, 5))),
}
CLIPS = [Flat(CLIP), Auto(CLIP), PerLayer(CLIP), PerValue(CLIP), Adaptive(CLIP)]


def private(name: str, clip: Clip, **options: Any) -> tuple[nn.Module, Any, Any]:
    torch.manual_seed(3)
    made, values = MODELS[name]
    model, data = made(), TensorDataset(values(40), torch.randint(0, 2, (40,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    settings: dict[str, Any] = {
        "noise_multiplier": 1.0, "rng": np.random.default_rng(0), "per_owner": CAP,
        "owner": [k // 2 for k in range(40)],
    }  # fmt: skip
    model, optimizer, loader = make_private(
        model, optimizer, DataLoader(data, batch_size=6), clip=clip, **(settings | options)
    )
    return model, optimizer, loader


def total(model: nn.Module, training: Any, x: torch.Tensor, y: torch.Tensor, sizes: tuple[int, ...]) -> torch.Tensor:
    """The sum that a step would add noise to."""
    training.receive(Part(len(x), True, people=People(sizes, CAP)))
    F.cross_entropy(model(x), y).backward()
    training.flush()
    found: torch.Tensor = training.total
    training._drop()
    return found


def naive(model: nn.Module, layout: Layout, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The mean gradient of some records, one by one, flat."""
    plain = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    losses = [
        F.cross_entropy(torch.func.functional_call(model.eval(), plain, (x[k : k + 1],)), y[k : k + 1])
        for k in range(len(x))
    ]
    found = torch.autograd.grad(torch.stack(losses).mean(), [plain[name] for name in layout.names])
    model.train()
    return torch.cat([one.reshape(-1) for one in found]).double()


@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: type(clip).__name__)
@pytest.mark.parametrize("name", MODELS)
def test_a_person_moves_the_sum_by_the_clip_at_most(name: str, clip: Clip) -> None:
    """The sum is that of the clipped means of each person, by a loop; leaving out any person stays in the set."""
    model, optimizer, _ = private(name, clip)
    training = optimizer.privacy_
    torch.manual_seed(8)
    x, y = MODELS[name][1](ROWS), torch.randint(0, 2, (ROWS,))
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(3.0)  # longer gradients than the clip
    whole = total(model, training, x, y, SIZES)
    ends = np.cumsum(SIZES)
    expected = torch.zeros_like(whole)
    longest = 0.0
    for person, (size, end) in enumerate(zip(SIZES, ends, strict=True)):
        own = slice(int(end) - size, int(end))
        mean = naive(model, training.layout, x[own], y[own])
        longest = max(longest, float(mean.norm()))
        expected += clip.rows(mean[None], training.layout)[0]
        rest = torch.ones(ROWS, dtype=torch.bool)
        rest[own] = False
        moved = whole - total(model, training, x[rest], y[rest], SIZES[:person] + SIZES[person + 1 :])
        assert within(training.mechanism.sensitivity, moved.numpy())
    assert torch.allclose(whole, expected, atol=2e-6 * float(expected.abs().max() + 1))
    assert longest > CLIP


def within(sensitivity: Any, moved: np.ndarray) -> bool:
    """Whether a difference lies in the set."""
    kind = type(sensitivity).__name__
    if kind == "L2":
        return bool(np.linalg.norm(moved) <= sensitivity.radius)
    if kind == "Box":
        return bool((np.abs(moved) <= sensitivity.profile).all())
    ends = np.cumsum([0, *sensitivity.sizes])
    return all(np.linalg.norm(moved[a:b]) <= r for a, b, r in zip(ends, ends[1:], sensitivity.radii, strict=False))


def test_clipping_records_alone_would_not_hold_for_persons() -> None:
    """The same sum without the grouping leaves the set: the test above can fail."""
    model, optimizer, _ = private("flat", Flat(CLIP))
    training = optimizer.privacy_
    x, y = torch.randn(1, 6).repeat(3, 1) * 9, torch.zeros(3, dtype=torch.long)
    assert total(model, training, x, y, (3,)).norm() <= CLIP * (1 + 1e-6)
    assert total(model, training, x, y, (1, 1, 1)).norm() > 2.9 * CLIP


def test_gradients_that_stay_products_and_tables_are_grouped_as_if_laid_out() -> None:
    torch.manual_seed(0)
    people, n = People(SIZES, CAP), ROWS
    pieces = {
        "outer": Outer(torch.randn(n, 300), torch.randn(n, 300)),
        "small outer": Outer(torch.randn(n, 3), torch.randn(n, 4)),
        "products": Products(torch.randn(n, 4, 300), torch.randn(n, 4, 300)),
        "table": Scattered(torch.randint(0, 7, (n, 4)), torch.randn(n, 4, 5), 7),
    }
    kinds = {"outer": Products, "small outer": Dense, "products": Products, "table": Scattered}
    for name, piece in pieces.items():
        made, laid = people.together({0: piece})[0], people.together({0: Dense(piece.dense())})[0]
        assert type(made) is kinds[name]
        assert torch.allclose(made.dense(), laid.dense(), atol=1e-5)
        by_hand = torch.stack([part.mean(0) for part in piece.dense().split(list(SIZES))])
        assert torch.allclose(laid.dense(), by_hand, atol=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_record_without_a_finite_gradient_drops_its_person_alone(bad: float) -> None:
    for k in range(ROWS):
        person = int(np.searchsorted(np.cumsum(SIZES), k, side="right"))
        values, table = torch.randn(ROWS, 3), torch.randn(ROWS, 2, 4)
        values[k], table[k] = bad, bad
        people = People(SIZES, CAP)
        left = torch.randn(ROWS, 300)
        left[k] = bad
        for piece in (
            Dense(values), Outer(left, torch.randn(ROWS, 300)), Scattered(torch.zeros(ROWS, 2).long(), table, 5),
        ):  # fmt: skip
            dense = people.together({0: piece})[0].dense()
            found = torch.isfinite(dense.reshape(len(SIZES), -1)).all(1)
            assert found.tolist() == [place != person for place in range(len(SIZES))]


def drawn(rate: float, draws: int, most: int | None) -> tuple[list[tuple[list[int], Part]], Owners]:
    ids = [f"person {k % 7}" if k % 3 else "one with many" for k in range(60)]
    owners = Owners.of(ids, 60, CAP)
    parts: list[Part] = []
    source = SimulatedSource(np.random.default_rng(1))
    batches = owners.drawn_by(
        lambda announce: PoissonBatches(range(len(owners)), rate, draws, source, None, announce), source, most
    )(parts.append)
    return [(rows, parts[-1]) for rows in batches], owners


@pytest.mark.parametrize("most", [None, 7])
def test_persons_are_drawn_and_at_most_so_many_of_their_records(most: int | None) -> None:
    draws, rate = 3000, 0.4
    handed, owners = drawn(rate, draws, most)
    whose = {int(row): person for person, rows in enumerate(owners.records) for row in rows}
    assert len(owners) == 8
    persons: Counter[int] = Counter()
    records: Counter[int] = Counter()
    for rows, part in handed:
        assert part.people is not None
        assert len(rows) == part.records == sum(part.people.sizes)
        assert len(set(rows)) == len(rows)
        assert max(part.people.sizes, default=0) <= CAP
        start = 0
        for size in part.people.sizes:
            (person,) = {whose[row] for row in rows[start : start + size]}
            assert size == min(CAP, len(owners.records[person]))
            persons[person] += 1
            start += size
        records.update(rows)
        if most is not None and not part.last:
            assert len(rows) <= most
    assert sum(part.last for _, part in handed) == draws
    spread = np.sqrt(draws * rate * (1 - rate)) * stats.norm.isf(ALARM / 16)
    for person, found in enumerate(owners.records):
        assert abs(persons[person] - draws * rate) < spread
        counts = [records[int(row)] for row in found]
        assert stats.chisquare(counts).pvalue > ALARM if len(found) > CAP else len(set(counts)) == 1
    assert stats.chisquare([records[int(r)] for r in owners.records[0][:5]] + [1]).pvalue < ALARM  # it can fail


def test_training_on_persons_spends_by_persons_and_says_so() -> None:
    model, optimizer, loader = private("flat", Flat(1.0), delta=1e-5, epsilon=2.0, noise_multiplier=None, epochs=2)
    training = optimizer.privacy_
    assert (training.planned.records, training.planned.batch_size, len(loader)) == (20, 6, 4)
    for _ in range(2):
        for x, y in loader:
            step(model, optimizer, x, y)
    certificate = training.certificate
    assert certificate.verdict == "certified"
    assert "per person" in certificate.explain()
    assert any("owner=" in sentence for sentence in certificate.assumptions)
    again = sdp.verify(sdp.Certificate.from_json(certificate.to_json()))
    assert again.scope == certificate.scope
    assert again.assumptions == certificate.assumptions
    plain = replace(training.planned, per_owner=None)
    assert training.planned.mechanism.loss.mu == plain.mechanism.loss.mu
    assert "20 persons, at most 3 records of each" in str(training.planned)


def test_persons_and_records_do_not_add_up() -> None:
    _, first, _ = private("flat", Flat(1.0), delta=1e-5)
    _, second, _ = private("flat", Flat(1.0), delta=1e-5, owner=None, per_owner=None, epsilon=None)
    first.privacy_.receive(Part(0, True))
    first.step()
    with pytest.raises(ValueError, match="does not add up"):
        second.privacy_.load_state_dict(first.privacy_.state_dict())
    third = private("flat", Flat(1.0), delta=1e-5)[1].privacy_
    third.load_state_dict(first.privacy_.state_dict())
    assert third.steps == 1
    engine, data = PrivacyEngine(), DataLoader(TensorDataset(torch.zeros(40, 6)), batch_size=4)
    for options in ({}, {"owner": list(range(40)), "per_owner": 1}):
        model = flat_model()
        call = {
            "module": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), "data_loader": data,
            "max_grad_norm": 1.0, "noise_multiplier": 1.0, **options,
        }  # fmt: skip
        if not options:
            _, optimizer, _ = engine.make_private(**call)
            optimizer.privacy_.receive(Part(0, True))
            optimizer.step()
            continue
        with pytest.raises(ValueError, match="does not add up"):
            engine.make_private(**call)


def test_a_plan_knows_its_unit() -> None:
    model = flat_model()
    plan = TrainingPlan(Layout.of(model), 20, 5, Flat(1.0), scale=1.0, delta=1e-5, per_owner=2)
    assert TrainingPlan.from_json(plan.to_json()) == plan
    older = {name: value for name, value in plan.to_json().items() if name != "per_owner"}
    assert TrainingPlan.from_json(older) == replace(plan, per_owner=None)
    loader = DataLoader(TensorDataset(torch.zeros(40, 6)), batch_size=5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="the plan protects persons, the call trains for records"):
        attach(plan, model, optimizer, loader)
    with pytest.raises(ValueError, match="the plan protects records, the call trains for persons"):
        attach(replace(plan, per_owner=None), model, optimizer, loader, owner=[k % 20 for k in range(40)])
    with pytest.raises(ValueError, match="other parameters, records or batches"):
        attach(plan, model, optimizer, loader, owner=[k % 19 for k in range(40)])
    attach(plan, model, optimizer, loader, owner=np.arange(40) % 20)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"owner": ["a"] * 39}, "39 entries for 40 records"),
        ({"owner": "secret name"}, "must be a sequence"),
        ({"owner": [None] + ["b"] * 39}, "every record needs an owner"),
        ({"owner": [float("nan")] + [1] * 39}, "every record needs an owner"),
        ({"owner": [["secret name"]] * 40}, "cannot be hashed"),
        ({"owner": None}, "go together"),
        ({"per_owner": None}, "go together"),
        ({"per_owner": 0}, "per_owner"),
        ({"owner": ["secret name"] * 40}, "between|exceed the 1 persons"),
        ({"physical_batch_size": 2}, "hold no person"),
    ],
)
def test_owners_that_are_none_are_refused_and_never_quoted(options: Any, text: str) -> None:
    settings = {"owner": [k // 2 for k in range(40)], "per_owner": CAP} | options
    torch.manual_seed(0)
    model = flat_model()
    loader = DataLoader(TensorDataset(torch.zeros(40, 6)), batch_size=6)
    with pytest.raises((ValueError, TypeError), match=text) as refused:
        make_private(
            model, torch.optim.SGD(model.parameters(), lr=0.1), loader, clip=1.0, noise_multiplier=1.0, **settings
        )
    assert "secret" not in str(refused.value)


def test_persons_split_between_passes_are_refused() -> None:
    model, optimizer, loader = private("flat", Flat(1.0), check_records=False)
    x, y = next(iter(loader))
    half = len(x) // 2
    F.cross_entropy(model(x[:half]), y[:half]).backward()
    with pytest.raises(RecordError, match="clipped together"):
        optimizer.step()
    assert optimizer.privacy_.steps == 0


def halve(training: Any) -> None:
    """Draw half of the noise that is accounted for."""
    m = training.mechanism
    less = Gaussian(np.broadcast_to(m.law.scales, (m.law.dim,)) / 2)
    training.mechanism = Additive(less, m.sensitivity, m.epsilon, m.delta)


@pytest.mark.parametrize("half", [False, True])
def test_a_canary_person_stays_below_the_certificate_and_catches_half_the_noise(half: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2))
    data = TensorDataset(torch.randn(60, 6), torch.randint(0, 2, (60,)))
    model, optimizer, loader = make_private(
        model, torch.optim.SGD(model.parameters(), lr=0.0), DataLoader(data, batch_size=20), clip=0.5,
        noise_multiplier=1.0, owner=[k // 3 for k in range(60)], per_owner=3, rng=np.random.default_rng(0),
    )  # fmt: skip
    training = optimizer.privacy_
    if half:
        halve(training)

    def loop() -> None:
        while training.steps < 1200:
            for x, y in loader:
                step(model, optimizer, x, y)

    found = canary(training, loop, delta=0.1, confidence=0.99, rng=np.random.default_rng(1))
    assert found.violation is half, found.explain()  # fails with probability at most 0.01
    assert found.epsilon_lower > 0


def audited(grouped: bool, steps: int = 400) -> tuple[float, float]:
    """A person of five loud records, in and out of the data of real steps: the bound on epsilon, and what is certified.

    Without `grouped` each of the five is an owner of its own, as when records were the unit.
    """
    x = torch.zeros(25, 2)
    x[:5] = 50.0
    scores: dict[bool, list[float]] = {}
    for present in (True, False):
        torch.manual_seed(0)
        rows = slice(0 if present else 5, None)
        ids = [0 if grouped and k < 5 else k for k in range(25)][rows]
        model = nn.Linear(2, 1)
        loader = DataLoader(TensorDataset(x[rows]), batch_size=len(set(ids)))
        model, optimizer, loader = make_private(
            model, torch.optim.SGD(model.parameters(), lr=0.0), loader, clip=1.0, noise_multiplier=1.0, owner=ids,
            per_owner=5, rng=np.random.default_rng(present),
        )  # fmt: skip
        found: list[float] = []
        while len(found) < steps:
            for (batch,) in loader:
                optimizer.zero_grad()
                model(batch).mean().backward()
                optimizer.step()
                assert model.weight.grad is not None
                found.append(float(model.weight.grad.sum()) * len(set(ids)))
        scores[present] = found
    bound = epsilon_bound(np.array(scores[True]), np.array(scores[False]), delta=0.1, confidence=0.99)
    step_ = optimizer.privacy_.account.step
    return bound, step_.loss.epsilon(0.1).upper


def test_an_attack_on_a_real_person_stays_below_the_certificate() -> None:
    bound, certified = audited(True)
    assert 0 < bound <= certified
    bound, certified = audited(False)
    assert bound > 1.5 * certified


@pytest.mark.parametrize(
    "kind", [{"sampling": "allocation"}, {"correlated": "banded"}, {"correlated": "blt"}, {}], ids=str
)
def test_persons_go_with_every_way_to_draw_them(kind: dict[str, str]) -> None:
    """Once a pass where persons are placed, never within a band where noise is correlated; in pieces as well."""
    ids, seen = [k % 40 for k in range(200)], {person: set[int]() for person in range(40)}
    model: nn.Module = nn.Linear(1, 1)
    model, optimizer, loader = make_private(
        model, torch.optim.SGD(model.parameters(), lr=0.0),
        DataLoader(TensorDataset(torch.arange(200.0)[:, None]), batch_size=8), clip=1.0, epsilon=4.0, delta=1e-3,
        epochs=4, owner=ids, per_owner=2, physical_batch_size=6, **kind,
    )  # fmt: skip
    training = optimizer.privacy_
    for _ in range(4):
        for (rows,) in loader:
            if training.part.records:
                for row in rows[:, 0].long().tolist():
                    seen[row % 40].add(training.steps)
            model(rows / 200).mean().backward()
            optimizer.step()
    assert training.steps == 20
    assert training.certificate.verdict == "certified"
    assert "per person" in training.certificate.scope
    gap = min(int(np.diff(sorted(steps)).min()) for steps in seen.values() if len(steps) > 1)
    kept = training.planned.correlated
    assert gap >= (kept.separation or 1 if kept is not None else 1)
    if "sampling" in kind:
        assert {len(steps) for steps in seen.values()} == {4}
