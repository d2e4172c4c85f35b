"""Training: draws, pieces, faults of single records, frozen parameters, precision, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.torch.helpers import RECORDS, data, empty_step, gradient, network, private, step
from tests.torch.models import naive_rows
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

import shapedp as sdp
from shapedp.sampling import SimulatedSource
from shapedp.torch import Adaptive, BudgetError, Flat, PerLayer, PerValue, Progress, RecordError, make_private
from shapedp.torch.loader import Part, PoissonBatches


def near_zero_noise(**options: Any) -> Any:
    return private(noise_multiplier=1e-6, **options)


def test_a_step_is_the_clipped_sum_over_the_expected_batch_size() -> None:
    x, y = data()
    model = network()
    expected = Flat(0.5).rows(naive_rows(model, x[:9], y[:9]), sdp.torch.Layout.of(model)).sum(0) / 12
    model, optimizer, _, training = near_zero_noise(model=model, clip=0.5)
    training.receive(Part(9, True))
    step(model, optimizer, x[:9], y[:9])
    assert (gradient(model) - expected).abs().max() < 1e-6


@pytest.mark.parametrize("clip", [Flat(0.5), PerLayer(0.5), PerValue(0.5)])
def test_pieces_of_a_draw_make_one_step(clip: Any) -> None:
    x, y = data()
    seen = []
    for pieces in ([10], [4, 4, 2], [1] * 10):
        model, optimizer, _, training = near_zero_noise(clip=clip)
        start = [p.clone() for p in model.parameters()]
        done = 0
        for k, size in enumerate(pieces):
            training.receive(Part(size, k == len(pieces) - 1, k == 0))
            step(model, optimizer, x[done : done + size], y[done : done + size])
            done += size
            if done < 10:
                assert all(torch.equal(a, b) for a, b in zip(start, model.parameters(), strict=True))
        assert training.steps == 1
        seen.append(gradient(model))
    assert (seen[0] - seen[1]).abs().max() < 1e-6
    assert (seen[0] - seen[2]).abs().max() < 1e-6


def test_the_loader_cuts_draws_and_counts_steps() -> None:
    model, optimizer, loader, training = private(physical_batch_size=4)
    assert len(loader) == 5
    sizes = []
    for x, y in loader:
        sizes.append(len(x))
        step(model, optimizer, x, y)
    assert training.steps == 5
    assert max(sizes) <= 4
    assert len(sizes) > 5


def test_a_single_layer_is_a_model() -> None:
    x, y = data()
    torch.manual_seed(0)
    model: nn.Module = nn.Linear(6, 5)
    expected = Flat(0.5).rows(naive_rows(model, x[:9], y[:9]), sdp.torch.Layout.of(model)).sum(0) / 12
    model, optimizer, _, training = near_zero_noise(model=model, clip=0.5)
    training.receive(Part(9, True))
    step(model, optimizer, x[:9], y[:9])
    assert (gradient(model) - expected).abs().max() < 1e-6


def test_workers_that_load_ahead_keep_the_pieces_in_order() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(*data()), batch_size=6, num_workers=2)
    rest: dict[str, Any] = {"clip": 1.0, "delta": 1e-5, "noise_multiplier": 1.0, "rng": np.random.default_rng(0)}
    model, optimizer, private_loader = make_private(model, optimizer, loader, physical_batch_size=3, **rest)
    training = optimizer.privacy_  # type: ignore[attr-defined]
    for x, y in private_loader:
        assert len(x) == max(training.part.records, 1)
        step(model, optimizer, x, y)
    assert training.steps == 10


def test_two_batches_without_a_step_between_are_refused() -> None:
    model, _, loader, _ = private()
    batches = iter(loader)
    x, y = next(batches)
    F.cross_entropy(model(x), y).backward()
    with pytest.raises(RuntimeError, match="physical_batch_size"):
        next(batches)


def test_a_second_pass_over_the_same_batch_is_refused() -> None:
    model, optimizer, loader, _ = private()
    x, y = next(iter(loader))
    F.cross_entropy(model(x), y).backward()
    F.cross_entropy(model(x), y).backward()
    with pytest.raises(RecordError, match="once a step"):
        optimizer.step()


def test_a_batch_in_two_halves_is_one_batch() -> None:
    x, y = data()
    model, optimizer, _, training = near_zero_noise()
    training.receive(Part(8, True))
    step(model, optimizer, x[:8], y[:8])
    whole = gradient(model)
    model, optimizer, _, training = near_zero_noise()
    training.receive(Part(8, True))
    for half in (slice(0, 4), slice(4, 8)):
        F.cross_entropy(model(x[half]), y[half]).backward()
    optimizer.step()
    assert (gradient(model) - whole).abs().max() < 1e-6


def test_a_second_step_on_one_batch_is_refused() -> None:
    model, optimizer, loader, training = private()
    x, y = next(iter(loader))
    step(model, optimizer, x, y)
    with pytest.raises(RuntimeError, match="one step per batch"):
        optimizer.step()
    assert training.steps == 1


def test_steps_without_the_private_loader_are_refused() -> None:
    x, y = data()
    model, optimizer, _, _ = private()
    F.cross_entropy(model(x), y).backward()
    with pytest.raises(RuntimeError, match="iterate over the loader"):
        optimizer.step()


def test_empty_draws_release_noise_alone() -> None:
    model, optimizer, loader, training = private(records=200, batch_size=1)
    empty = 0
    for x, y in loader:
        blank = training.part is not None and training.part.records == 0
        if blank:
            empty += 1
            assert len(x) == 1
            assert not x.any()
        before = training.steps
        step(model, optimizer, x, y)
        assert training.steps == before + 1
    assert 40 < empty < 110  # 200 draws, each empty with probability e^-1


def test_an_empty_draw_adds_no_gradient() -> None:
    x, y = data()
    model, optimizer, _, training = near_zero_noise()
    training.receive(Part(0, True))
    step(model, optimizer, x[:1], y[:1])
    assert gradient(model).abs().max() < 1e-5


def test_draws_include_each_record_at_its_rate_and_on_its_own() -> None:
    """400 draws of 200 records at rate 0.3: counts per record and per draw, false-alarm rate 1e-6."""
    from scipy import stats

    batches = PoissonBatches(range(200), 0.3, 400, SimulatedSource(np.random.default_rng(1)), None, lambda part: None)
    table = np.zeros((400, 200))
    for k, drawn in enumerate(batches):
        table[k, drawn] = 1
    for counts, n in ((table.sum(0), 400), (table.sum(1), 200)):
        statistic = float((np.square(counts - n * 0.3) / (n * 0.21)).sum())
        assert stats.chi2.sf(statistic, counts.size) > 5e-7
        assert stats.chi2.cdf(statistic, counts.size) > 5e-7
    wrong = float((np.square(table.sum(0) - 400 * 0.33) / (400 * 0.33 * 0.67)).sum())
    assert stats.chi2.sf(wrong, 200) < 1e-6


def test_one_record_cannot_poison_the_sum() -> None:
    x, y = data()
    model, optimizer, _, training = near_zero_noise()
    training.receive(Part(9, True))
    step(model, optimizer, x[:9], y[:9])
    clean = gradient(model)
    for bad in (float("nan"), float("inf"), 1e30):
        model, optimizer, _, training = near_zero_noise()
        training.receive(Part(10, True))
        step(model, optimizer, torch.cat([x[:9], torch.full((1, 6), bad)]), y[:10])
        found = gradient(model)
        assert torch.isfinite(found).all()
        assert (found - clean).norm() <= 1.001 / 12


def test_frozen_parameters_stay_and_are_not_charged() -> None:
    model = network()
    model[0].requires_grad_(False)
    before = [p.clone() for p in model[0].parameters()]
    model, optimizer, loader, training = private(model=model)
    assert training.mechanism.law.dim == 25
    for x, y in loader:
        step(model, optimizer, x, y)
    assert all(torch.equal(a, b) for a, b in zip(before, model[0].parameters(), strict=True))
    model[0].requires_grad_(True)
    x, y = next(iter(loader))
    with pytest.raises(RuntimeError, match="not private"):
        step(model, optimizer, x, y)


def test_a_gradient_from_before_the_freezing_moves_nothing() -> None:
    x, y = data()
    model: Any = network()
    F.cross_entropy(model(x), y).backward()
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    model, optimizer, _, training = private(model=model, lr=1.0)
    training.receive(Part(0, True))
    optimizer.step()
    assert torch.equal(model[0].weight, before)


def test_a_parameter_frozen_later_is_refused() -> None:
    model, optimizer, loader, _ = private()
    model[0].requires_grad_(False)
    x, y = next(iter(loader))
    with pytest.raises(RuntimeError, match="frozen after make_private"):
        step(model, optimizer, x, y)


def test_mixed_precision() -> None:
    x, y = data()
    seen = []
    for half in (False, True):
        model, optimizer, _, training = near_zero_noise(loss_reduction="sum")
        training.receive(Part(9, True))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            loss = F.cross_entropy(model(x[:9]).float(), y[:9], reduction="sum")
        loss.backward()
        optimizer.step()
        seen.append(gradient(model))
    assert seen[1].dtype == torch.float32
    assert 0 < (seen[1] - seen[0]).norm() < 0.05 * seen[0].norm()


def test_sums_of_losses() -> None:
    x, y = data()
    model, optimizer, _, training = near_zero_noise()
    training.receive(Part(9, True))
    step(model, optimizer, x[:9], y[:9])
    mean = gradient(model)
    model, optimizer, _, training = near_zero_noise(loss_reduction="sum")
    training.receive(Part(9, True))
    F.cross_entropy(model(x[:9]), y[:9], reduction="sum").backward()
    optimizer.step()
    assert (gradient(model) / 12 - mean).abs().max() < 1e-6


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_the_opacus_route_gives_the_same_step() -> None:
    x, y = data()
    seen = []
    for route in ("fast", "opacus"):
        model, optimizer, _, training = near_zero_noise(gradients=route)
        training.receive(Part(9, True))
        step(model, optimizer, x[:9], y[:9])
        seen.append(gradient(model))
    assert (seen[0] - seen[1]).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.BatchNorm1d(4), "replace it by nn.GroupNorm"),
        (nn.InstanceNorm1d(4, track_running_stats=True), "track_running_stats=False"),
        (nn.LSTM(4, 4), "DPLSTM"),
        (nn.Embedding(4, 4, max_norm=1.0), "leave these off"),
        (nn.EmbeddingBag(4, 4, max_norm=1.0), "leave these off"),
        (nn.EmbeddingBag(4, 4, max_norm=1.0).requires_grad_(False), "leave these off"),
        (nn.MultiheadAttention(4, 2), "batch_first=True"),
        (nn.MultiheadAttention(4, 2, dropout=0.1, batch_first=True), "set dropout to 0"),
        (nn.DataParallel(nn.Linear(4, 4)), "pass the bare model"),
        (nn.LazyLinear(3), "run the model once"),
    ],
)
def test_layers_that_mix_records_are_refused_with_the_remedy(layer: nn.Module, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        private(model=nn.Sequential(nn.Linear(6, 4), layer))


def test_unusable_loaders_and_optimizers_are_refused() -> None:
    model, dataset = network(), TensorDataset(*data())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rest: dict[str, Any] = {"clip": 1.0, "delta": 1e-5, "noise_multiplier": 1.0}
    weighted = DataLoader(dataset, batch_size=4, sampler=WeightedRandomSampler([1.0] * RECORDS, RECORDS))
    with pytest.raises(ValueError, match="must be Poisson samples"):
        make_private(model, optimizer, weighted, **rest)
    with pytest.raises(TypeError, match="torch DataLoader"):
        make_private(model, optimizer, [1, 2], **rest)  # type: ignore[arg-type]
    loader = DataLoader(dataset, batch_size=4)
    with pytest.raises(ValueError, match="LBFGS"):
        make_private(model, torch.optim.LBFGS(model.parameters()), loader, **rest)
    with pytest.raises(ValueError, match="not the model's"):
        make_private(model, torch.optim.SGD([nn.Parameter(torch.zeros(2))], lr=0.1), loader, **rest)
    for options, text in (
        ({"noise_multiplier": None}, "give epsilon and delta together with"),
        ({"epsilon": 1.0, "epochs": 1}, "not both"),
        ({"epochs": 1, "steps": 2}, "epochs or steps"),
        ({"clip": float("nan")}, "clip must"),
        ({"noise": "uniform"}, "noise must be one of"),
        ({"loss_reduction": "none"}, "loss_reduction"),
        ({"gradients": "magic"}, "gradients must be one of"),
        ({"delta": None, "progress": True}, "pass a delta"),
    ):
        with pytest.raises(ValueError, match=text):
            make_private(model, optimizer, loader, **(rest | options))


def test_a_closure_is_refused() -> None:
    model, optimizer, loader, _ = private()
    x, y = next(iter(loader))
    with pytest.raises(TypeError, match="closure"):
        optimizer.step(lambda: F.cross_entropy(model(x), y))  # type: ignore[arg-type]


def test_adaptive_clipping_follows_the_quantile_and_costs_what_was_planned() -> None:
    clip = Adaptive(5.0, quantile=0.5, rate=0.5)
    model, optimizer, loader, training = private(lr=0.0, clip=clip, noise_multiplier=0.3, records=400, batch_size=100)
    x, y = data(400)
    norms = naive_rows(network(), x[:200], y[:200]).norm(dim=1)
    planned = training.mechanism.loss.mu
    for _ in range(10):
        for a, b in loader:
            step(model, optimizer, a, b)
            assert training.mechanism.loss.mu <= planned
    assert training.clip.radii == pytest.approx(float(norms.median()), rel=0.25)
    assert len(training.plan.steps) == 1
    assert training.plan.steps[0].count == 40


def test_layers_adapt_each_on_its_own() -> None:
    model, optimizer, loader, training = private(
        lr=0.0, clip=Adaptive([5.0, 0.01], rate=0.5), noise_multiplier=0.3, records=400, batch_size=100
    )
    rows = naive_rows(network(), *data(400))
    expected = [float(part.norm(dim=1).median()) for part in rows.split([28, 25], dim=1)]
    planned = training.mechanism.loss.mu
    for _ in range(15):
        for x, y in loader:
            step(model, optimizer, x, y)
            assert training.mechanism.loss.mu <= planned
    assert training.clip.radii == pytest.approx(tuple(expected), rel=0.3)
    assert training.certificate.verdict == "certified"


def test_a_clip_that_changes_asks_for_noise_that_follows() -> None:
    *_, training = private(clip=Flat(1.0), noise=sdp.torch.RadialNoise(a=20.0))
    with pytest.raises(ValueError, match="Gaussian noise that follows it"):
        training._set_clip(Flat(2.0))


def test_replaying_on_neighbours_finds_no_leak_and_finds_a_wrong_clip() -> None:
    x, y = data(30)

    class Loose(Flat):
        def factors(self, norms: torch.Tensor) -> torch.Tensor:
            return 1.2 * super().factors(norms)

    def run(clip: Any) -> Any:
        def train(rows: Any) -> Any:
            model, optimizer, _, training = private(clip=clip)
            for _ in range(3):
                training.receive(Part(len(rows), True))
                step(model, optimizer, x[rows], y[rows])
            return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()

        return train

    pairs = [(list(range(12)), [k for k in range(12) if k != out]) for out in (0, 5)]
    for clip in (Flat(0.3), PerLayer(0.3), PerValue(0.3)):
        result = sdp.audit.replay(run(clip), pairs, adjacency="add-remove")
        assert result.passed, result.explain()
        assert result.releases == 6
    assert 0.9 < sdp.audit.replay(run(Flat(0.3)), pairs, adjacency="add-remove").largest <= 1
    assert not sdp.audit.replay(run(Loose(0.3)), pairs, adjacency="add-remove").passed


def test_watched_and_simulated_releases_are_not_called_secure() -> None:
    _, optimizer, _, training = private()
    empty_step(training, optimizer)
    assert training.certificate.secure is False


def test_progress_reports_the_epsilon_spent() -> None:
    lines: list[Progress] = []
    model, optimizer, loader, _ = private(progress=lines.append)
    for _ in range(2):
        for x, y in loader:
            step(model, optimizer, x, y)
    assert [line.step for line in lines] == [5, 10]
    assert 0 < lines[0].epsilon.lower <= lines[0].epsilon.upper < lines[1].epsilon.lower
    assert "epsilon in [" in str(lines[0])


def test_the_budget_ends_training() -> None:
    model, optimizer, loader, training = private(epsilon=3.0, epochs=10, batch_size=RECORDS)
    for _ in range(10):
        for x, y in loader:
            step(model, optimizer, x, y)
    assert training.certificate.verdict == "certified"
    assert 2.99 < training.epsilon().upper <= 3.0
    x, y = next(iter(loader))
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(BudgetError, match="all 10 planned steps"):
        step(model, optimizer, x, y)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
