"""Noise over time: the stream against dense matrices, draws against groups, the certificate against simulation."""

import itertools
import json
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.noise import Gaussian
from shapedp.sampling import SimulatedSource
from shapedp.torch import (
    Adaptive,
    BudgetError,
    Flat,
    GaussianNoise,
    LaplaceNoise,
    Layout,
    PerLayer,
    TrainingPlan,
    attach,
)
from shapedp.torch.correlated import error_of
from shapedp.torch.overtime import CyclicBatches, Stream, drawn_groups
from shapedp.workloads import Banded, Buffered, StepSums, Toeplitz
from shapedp_check.verdict import check

SHAPES = {
    "banded": Banded.best(StepSums(6), 3),
    "toeplitz": Toeplitz.best(StepSums(6), 2),
    "independent": Toeplitz.best(StepSums(6), 1),
    "buffered": Buffered.best(StepSums(6), separation=3, buffers=2),
}


def simulated(seed):
    return SimulatedSource(np.random.default_rng(seed))


def plain(query, draw):
    return draw()


def run(kept, sums, law, seed, watch=plain):
    stream, source = Stream(kept, law), simulated(seed)
    return np.array([stream.release(one, source, watch) for one in sums])


@pytest.mark.parametrize("name", SHAPES)
def test_released_noise_has_the_covariance_of_the_inverse(name):
    """False alarm below 1e-6: a sample covariance of 200,000 is off by 5 sd of its entries; 2% off in scale is seen."""
    kept, dim = SHAPES[name], 200_000
    sums = np.random.default_rng(1).normal(size=(6, dim)) * 10
    noise = run(kept, sums, Gaussian(2.0, dim), 2) - sums
    inverse = np.linalg.inv(kept.matrix())
    expected = 4 * inverse @ inverse.T
    spread = np.sqrt((np.outer(expected.diagonal(), expected.diagonal()) + expected**2) / dim)
    found = noise @ noise.T / dim
    assert np.abs(found - expected).max() <= (6 * spread).max()
    assert (np.abs(found - expected) <= 6 * spread).all()
    assert not (np.abs(found * 1.02**2 - expected) <= 6 * spread).all()


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("scales", [0.37, [0.1, 3.0, 11.0]])
def test_given_the_same_answers_neighbours_differ_by_the_columns_alone(name, scales):
    """A replay: all that enters the noise differs by C times the rows, to the bit of the grid; far sums too."""
    kept, rng = SHAPES[name], np.random.default_rng(4)
    law = Gaussian(scales, 3) if isinstance(scales, float) else Gaussian(np.array(scales))
    fine = 2.0 ** (np.floor(np.log2(law.scales)) - 23)
    for size in (1.0, 1e4):
        sums = np.rint(rng.normal(size=(6, 3)) * size / fine) * fine
        row = np.rint(rng.normal(size=(6, 3)) / fine) * fine
        seen, answers = [], []

        def keep(query, draw, seen=seen, answers=answers):
            seen.append(query)
            answers.append(draw())
            return answers[-1]

        released = run(kept, sums, law, 5, keep)
        others, script = [], iter(answers)
        again = run(kept, sums + row, law, 99, lambda query, draw, o=others, s=script: (o.append(query), next(s))[1])
        np.testing.assert_array_equal(released, again)
        moved = np.array(others) - np.array(seen)
        room = 2.0**-25 if not isinstance(kept, Buffered) else kept.stray * 2.0**-8
        assert (np.abs(moved - kept.matrix() @ row) <= room * fine + 2.0**-52 * np.abs(np.array(seen))).all()


def test_a_step_shows_nothing_of_the_noise_of_others():
    """The answers are multiples of the law's grid: they hold no bits of the sums below it."""
    answers = []
    run(
        SHAPES["banded"],
        np.full((6, 2), np.pi),
        Gaussian(1.0, 2),
        3,
        lambda q, draw: (answers.append(draw()), answers[-1])[1],
    )
    assert (np.array(answers) * 2.0**16 % 1 == 0).all()


def test_bands_keep_as_many_steps_as_they_say():
    for kept in SHAPES.values():
        stream = Stream(kept, Gaussian(1.0, 1000))
        assert stream.history.kept.nbytes == 4 * 1000 * kept.copies


def batches(n, rate, separation, draws, seed, announce=lambda part: None, **options):
    source = simulated(seed)
    groups = drawn_groups(range(n), separation, source)
    return CyclicBatches(range(n), rate, draws, source, None, announce, groups=groups, separation=separation, **options)


def test_nobody_takes_part_twice_within_the_separation():
    """False alarm below 1e-6: counts of 4000 x 200 draws at rate 0.4/5 within 5 sd."""
    parts = []
    drawn = [set(one) for one in batches(4000, 0.4, 5, 200, 1, parts.append)]
    for number in range(196):
        assert sum(map(len, drawn[number : number + 5])) == len(set().union(*drawn[number : number + 5]))
    assert [part.turn for part in parts] == list(range(200))
    total = sum(map(len, drawn))
    assert abs(total - 4000 * 40 * 0.4) < 5 * (4000 * 40 * 0.24) ** 0.5
    everyone = [set(one) for one in batches(100, 1.0, 4, 8, 2)]
    assert set().union(*everyone[:4]) == set(range(100))
    assert everyone[:4] == everyone[4:]


def test_an_epoch_goes_on_where_the_steps_are():
    turn = 0
    iterations = batches(50, 1.0, 3, 4, 1, next_turn=lambda: turn)
    first = list(iterations)
    turn = 4
    assert list(iterations)[2] == first[0]


def test_pieces_hold_a_group_of_any_size():
    source = simulated(3)
    groups = drawn_groups(range(1000), 4, source)
    one = CyclicBatches(range(1000), 1.0, 4, source, 64, lambda part: None, groups=groups, separation=4)
    assert one.pieces == len(list(one)) / 4
    assert max(map(len, one)) <= 64


def brute_delta(lower, sigma, rate, group, separation, epsilon, samples, rng):
    """delta of the mixture over all patterns of uses of a record of one group, simulated; and its standard error."""
    steps = np.arange(group, len(lower), separation)
    patterns = [np.array(uses) for uses in itertools.product((0, 1), repeat=len(steps))]
    weights = np.array([rate ** one.sum() * (1 - rate) ** (len(one) - one.sum()) for one in patterns])
    means = np.array([lower[:, steps] @ one / sigma for one in patterns])
    drawn = means[rng.choice(len(patterns), size=samples, p=weights)] + rng.normal(size=(samples, len(lower)))
    loss = np.log(np.exp(drawn @ means.T - 0.5 * np.square(means).sum(axis=1)) @ weights)
    value = np.maximum(1 - np.exp(epsilon - loss), 0.0)
    return value.mean(), value.std() / samples**0.5


@pytest.mark.parametrize(("bands", "rate"), [(1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0)])
def test_the_certificate_is_that_of_all_patterns_of_uses(bands, rate):
    """False alarm below 1e-6 (5 sd). Full cycles are nearly attained; uses at random in every step are not covered."""
    rng, steps = np.random.default_rng(8), 8
    kept = Banded.best(StepSums(steps), bands)
    plan = TrainingPlan(
        Layout.single(1),
        records=400,
        batch_size=100,
        clip=Flat(1.0),
        delta=1e-2,
        steps=steps,
        scale=1.3,
        correlated=kept,
    )
    assert plan.rate == rate
    for epsilon in (0.5, 1.0):
        together = sdp.accounting.Step(plan.mechanism, plan.rate, count=plan.correlated.units)
        bound = sdp.accounting.Plan((together,)).delta(epsilon).upper
        worst = 0.0
        for group in range(bands):
            value, error = brute_delta(kept.matrix(), 1.3, rate, group, bands, epsilon, 60_000, rng)
            assert value <= bound + 5 * error
            worst = max(worst, value + 5 * error)
        assert worst >= 0.97 * bound
        if bands == 3:  # drawn in every step with the rate of a cycle: what cyclic draws prevent
            value, error = brute_delta(kept.matrix(), 1.3, rate, 0, 1, epsilon, 60_000, rng)
            assert value > bound + 5 * error


def test_what_the_stream_releases_keeps_the_certificate():
    """200,000 runs at once, one per entry, through the stream itself; the loss of what it releases."""
    kept, dim, rate, sigma = SHAPES["banded"], 200_000, 0.5, 1.1
    rng, lower = np.random.default_rng(2), SHAPES["banded"].matrix()
    uses = np.zeros((6, dim))
    uses[1::3] = rng.random((2, dim)) < rate
    seen = lower @ run(kept, uses, Gaussian(sigma, dim), 7) / sigma
    loss = np.zeros(dim)
    for step in (1, 4):
        column = lower[:, step] / sigma
        loss += np.log1p(rate * np.expm1(column @ seen - column @ column / 2))
    found = np.maximum(1 - np.exp(0.7 - loss), 0.0)
    bound = sdp.accounting.Plan((sdp.accounting.Step(sdp.GaussianLoss(1 / sigma), rate, count=2),)).delta(0.7)
    assert abs(found.mean() - bound.upper) <= 5 * found.std() / dim**0.5 + 2e-3 * bound.upper


def made(steps=12, kept=None, records=120, batch=20, **options):
    torch.manual_seed(0)
    x, y = torch.randn(records, 4), torch.randint(0, 2, (records,))
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = {"clip": 1.0, "noise_multiplier": 1.0, "delta": 1e-5, "steps": steps, "correlated": kept} | options
    return sdp.torch.make_private(model, optimizer, DataLoader(TensorDataset(x, y), batch_size=batch), **given)


def train(model, optimizer, loader, steps):
    taken = 0
    while taken < steps:
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            taken += 1
            if taken == steps:
                break


def test_cycles_are_charged_when_they_begin():
    model, optimizer, loader = made(kept=Toeplitz.best(StepSums(12), 5))
    privacy = optimizer.privacy_
    train(model, optimizer, loader, 6)
    assert (privacy.steps, privacy.account.taken) == (6, 2)
    expected = sdp.accounting.Plan((sdp.accounting.Step(privacy.planned.mechanism, 5 * 20 / 120, count=2),))
    assert privacy.epsilon().upper == pytest.approx(expected.epsilon(1e-5).upper)
    assert "5 steps" in privacy.certificate.scope
    train(model, optimizer, loader, 6)
    with pytest.raises(BudgetError, match="12 steps"):
        train(model, optimizer, loader, 1)
    assert privacy.account.taken == 3


def test_a_batch_without_its_step_stops_the_run():
    model, optimizer, loader = made(kept=Toeplitz.best(StepSums(12), 5))
    walk = iter(loader)
    next(walk)
    with pytest.raises(RuntimeError, match="drawn for another step"):
        next(walk)
    train(model, optimizer, loader, 2)  # a new walk begins with the step that comes next


def test_no_state_holds_the_noise_and_a_run_that_goes_on_pays_for_its_cycle():
    kept = Toeplitz.best(StepSums(12), 5)
    model, optimizer, loader = made(kept=kept)
    train(model, optimizer, loader, 2)
    state = optimizer.privacy_.state_dict()
    assert set(state) == {"account", "clip"}
    assert len(json.dumps(state)) < 5000
    model, optimizer, loader = made(kept=kept)
    optimizer.privacy_.load_state_dict(state)
    train(model, optimizer, loader, 1)
    assert optimizer.privacy_.account.taken == 2
    model, optimizer, loader = made(kept=Buffered.best(StepSums(12), 6), noise_multiplier=None, epsilon=3.0)
    train(model, optimizer, loader, 2)
    state = optimizer.privacy_.state_dict()
    model, optimizer, loader = made(kept=Buffered.best(StepSums(12), 6), noise_multiplier=None, epsilon=3.0)
    optimizer.privacy_.load_state_dict(state)
    with pytest.raises(BudgetError):
        train(model, optimizer, loader, 1)


def test_a_journal_counts_cycles_of_all_runs(tmp_path):
    kept = Toeplitz.best(StepSums(12), 5)
    for run_number in range(3):
        model, optimizer, loader = made(kept=kept, journal=tmp_path / "steps")
        train(model, optimizer, loader, 1)
        assert optimizer.privacy_.account.taken == run_number + 1


@pytest.mark.parametrize(("kind", "epsilon"), [("banded", 1.0), ("banded", 12.0), ("blt", 12.0), ("auto", 12.0)])
def test_the_choice_never_has_more_error_than_independent_noise(kind, epsilon):
    options = {"noise_multiplier": None, "epsilon": epsilon, "steps": 24}
    chosen = made(kept=kind, **options)[1].privacy_.planned
    alone = made(kept=None, **options)[1].privacy_.planned
    workload = StepSums(24)
    assert chosen.certificate.verdict == alone.certificate.verdict == "certified"
    assert error_of(chosen, workload) <= error_of(alone, workload)
    assert (chosen.correlated is None) == (epsilon == 1.0)
    if epsilon > 1.0:
        assert error_of(chosen, workload) < 0.9 * error_of(alone, workload)


@pytest.mark.parametrize("kept", [*SHAPES.values()])
def test_plans_keep_their_noise_and_the_checker_agrees(kept):
    plan = TrainingPlan(
        Layout(("a", "b"), ((2,), (3,)), (0, 1)), 60, 20, PerLayer([0.5, 0.2]), GaussianNoise(), 2.0, 1e-5, 6,
        correlated=kept,
    )  # fmt: skip
    written = json.loads(json.dumps(plan.to_json()))
    same = TrainingPlan.from_json(written)
    assert same == plan
    assert plan.certificate.verdict == "certified"
    assert sdp.verify(plan.certificate).verdict == "certified"
    assert check(json.loads(json.dumps(plan.certificate.to_json()))).verdict == "certified"
    weaker = written | {"scale": plan.scale / 1.05}
    assert TrainingPlan.from_json(weaker).certificate.verdict == "refuted"
    if isinstance(kept, Toeplitz | Banded) and kept.bands > 1:
        name = "coefficients" if isinstance(kept, Toeplitz) else "columns"
        more = json.loads(json.dumps(written))
        row = more["correlated"][name] if name == "coefficients" else more["correlated"][name][0]
        row[0] += 40_000
        with pytest.raises(ValueError, match="norm at most 1"):
            TrainingPlan.from_json(more)


def test_buffers_pay_for_every_use_at_once():
    kept = SHAPES["buffered"]
    plan = TrainingPlan(
        Layout.single(5), records=60, batch_size=20, clip=Flat(1.0), delta=1e-5, steps=6, scale=2.0, correlated=kept
    )
    assert (plan.correlated.units, plan.rate) == (1, 1.0)
    assert float(plan.mechanism.law.scales[0]) >= 2.0 * kept.reach
    assert plan.certificate.epsilon == pytest.approx(sdp.GaussianLoss(0.5).epsilon(1e-5).upper, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": LaplaceNoise(), "clip": sdp.torch.PerValue(1.0)}, "Gaussian"),
        ({"clip": Adaptive(1.0)}, "stays the same"),
        ({"steps": 11}, "made for 12 steps"),
        ({"batch": 40}, "fewer bands or smaller batches"),
        ({"kept": Buffered.best(StepSums(12), 5)}, "at least records/batch"),
        ({"kept": "auto"}, "give epsilon"),
        *(({"sampling": one}, "draws of its own") for one in ("allocation", "shuffle", "fixed")),
        ({"kept": "shaped"}, "correlated must be"),
    ],
)
def test_what_is_not_served_is_refused_in_words(options, message):
    with pytest.raises(ValueError, match=message):
        made(**({"kept": Toeplitz.best(StepSums(12), 5)} | options))


def test_a_matrix_of_your_own_is_refused():
    with pytest.raises(TypeError, match="would not be proved"):
        TrainingPlan(Layout.single(2), 10, 2, Flat(1.0), delta=1e-5, steps=3, scale=1.0, correlated=object())


def test_neighbours_replay_with_noise_over_time():
    """Two runs on neighbours, the same random numbers per record, answers replayed: nothing moves beyond one row."""
    kept = Toeplitz.best(StepSums(6), 3)
    plan = TrainingPlan(
        Layout.of(nn.Linear(4, 2)), records=30, batch_size=10, clip=Flat(1.0), delta=1e-5, steps=6, scale=1.0,
        correlated=kept,
    )  # fmt: skip
    x, y = torch.randn(30, 4, generator=torch.Generator().manual_seed(1)) * 5, torch.arange(30) % 2

    def trained(left, seen, script, uses):
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer, loader = attach(
            plan, model, optimizer, DataLoader(TensorDataset(x, y), batch_size=10), rng=np.random.default_rng(6)
        )
        inside = loader.batches

        def without(announce):
            return _Without(inside(lambda part: None), left, announce, uses)

        loader.batches = without
        answers = partial(_answered, seen, script)
        with sdp.mechanisms.watch.watching(answers):
            train(model, optimizer, loader, 6)
        return [p.detach().clone() for p in model.parameters()]

    seen, others, uses = [], [], []
    one = trained(None, seen, None, [])
    two = trained(4, others, [value for _, value in seen], uses)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    moved = np.array([np.linalg.norm(a[0] - b[0]) for a, b in zip(seen, others, strict=True)])
    assert uses
    assert min(np.diff(uses), default=3) >= 3
    allowed = kept.matrix()[:, uses].sum(axis=1)
    assert (moved <= allowed * (1 + 1e-6)).all()
    assert (moved >= 0.5 * allowed).all()  # the test sees the record


def _answered(seen, script, mechanism, x, draw):
    value = draw() if script is None else script[len(seen)]
    seen.append((np.array(x), np.array(value)))
    return value


class _Without:
    """Batches without one record."""

    def __init__(self, inside, left, announce, uses):
        self.inside, self.left, self.announce, self.uses = inside, left, announce, uses

    def __iter__(self):
        parts = []
        self.inside.announce = parts.append
        for piece in self.inside:
            kept = [one for one in piece if one != self.left]
            part = parts.pop()
            self.uses += [part.turn] if self.left in piece else []
            self.announce(type(part)(len(kept), part.last, part.first, turn=part.turn))
            yield kept


def test_persons_take_turns_with_all_their_records():
    """With owners the groups hold persons: nobody's records are in two of five steps in a row."""
    kept = Toeplitz.best(StepSums(12), 5)
    owner = [number // 2 for number in range(120)]
    _, optimizer, loader = made(kept=kept, owner=owner, per_owner=2, batch=10)
    drawn = [set() for _ in range(12)]
    turn = 0
    while turn < 12:
        for rows in loader.batches(lambda part: None):
            drawn[turn] = {row // 2 for row in rows}
            turn += 1
            if turn == 12:
                break
        loader.privacy_._turn = turn
    for number in range(8):
        assert sum(map(len, drawn[number : number + 5])) == len(set().union(*drawn[number : number + 5]))
    assert any(drawn)
    plan = optimizer.privacy_.planned
    assert plan.rate == 5 * 10 / 60
    assert "person" in plan.certificate.scope
    assert "5 steps" in plan.certificate.scope
