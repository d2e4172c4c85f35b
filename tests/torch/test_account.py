"""The account: equal to dp_accounting's, right after a resume and after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.torch.helpers import empty_step, private, step

import shapedp as sdp
from shapedp.accounting import Plan, Step
from shapedp.torch import Account, Adaptive, BudgetError, Flat, PerLayer, make_private

ROOT = Path(__file__).parents[2]


def theirs(sigma: float, rate: float, steps: int, delta: float) -> float:
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()
    accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), steps))
    return float(accountant.get_epsilon(delta))


def test_epsilon_of_flat_gaussian_noise_is_that_of_dp_accounting() -> None:
    """Their pessimistic grid lies above the exact value, by less than 1e-3 here."""
    model, optimizer, loader, training = private(noise_multiplier=1.1, clip=0.3)
    for _ in range(8):
        for x, y in loader:
            step(model, optimizer, x, y)
    bracket = training.epsilon()
    other = theirs(1.1, 12 / 60, 40, 1e-5)
    assert bracket.lower <= other <= bracket.upper * (1 + 1e-3)
    assert bracket.upper - bracket.lower < 1e-5 * bracket.upper


def paper_step(batch: int, records: int, sigma: float) -> Step:
    """One step of the product-noise paper's Gaussian baseline on its MNIST network."""
    from tests.torch.models import PaperCNN
    from torch.utils.data import DataLoader, TensorDataset

    model = PaperCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.15)
    loader: Any = DataLoader(TensorDataset(torch.zeros(records, 1)), batch_size=batch)
    make_private(model, optimizer, loader, clip=1.0, noise_multiplier=sigma, delta=1e-5)
    return optimizer.privacy_.account.step  # type: ignore[attr-defined, no-any-return]


def test_mnist_row_of_the_product_noise_paper() -> None:
    """p = 256/60000, sigma = 1.3, 11719 steps: PRV 1.66 in print, 1.65 exactly."""
    one = paper_step(256, 60_000, 1.3)
    assert one.sampling_rate == 256 / 60_000
    epsilon = Plan((Step(one.subject, one.sampling_rate, 11_719),)).epsilon(1e-5)
    print(f"MNIST, p = 256/60000, sigma = 1.3, 11719 steps: epsilon in [{epsilon.lower:.6f}, {epsilon.upper:.6f}]")
    assert 1.645 < epsilon.lower <= epsilon.upper < 1.655


@pytest.mark.slow
def test_mnist_row_against_dp_accounting() -> None:
    one = paper_step(256, 60_000, 1.3)
    epsilon = Plan((Step(one.subject, one.sampling_rate, 11_719),)).epsilon(1e-5)
    other = theirs(1.3, 256 / 60_000, 11_719, 1e-5)
    assert epsilon.lower <= other <= epsilon.upper * (1 + 2e-2)  # their grid of 1e-4 adds up over 11,719 steps


def test_certificates_recheck_offline(tmp_path: Path) -> None:
    for options in ({"clip": Flat(0.5)}, {"clip": PerLayer(0.5)}):
        model, optimizer, loader, training = private(**options)
        for x, y in loader:
            step(model, optimizer, x, y)
        written = json.dumps(training.certificate.to_json())
        certificate = sdp.Certificate.from_json(json.loads(written))
        assert certificate.adjacency == "add-remove"
        assert certificate.verdict == "certified"
        assert sdp.verify(certificate).verdict == "certified"


def test_tensor_noise_rechecks_offline() -> None:
    model, optimizer, loader, training = private(noise="tensor")
    for x, y in loader:
        step(model, optimizer, x, y)
    certificate = sdp.Certificate.from_json(json.loads(json.dumps(training.certificate.to_json())))
    assert sdp.verify(certificate).verdict == "certified"


def test_resume_goes_on_where_the_checkpoint_was(tmp_path: Path) -> None:
    model, optimizer, loader, training = private(clip=Adaptive(3.0), noise_multiplier=1.0)
    for x, y in loader:
        step(model, optimizer, x, y)
    states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "privacy": training.state_dict()}
    torch.save(states, tmp_path / "state.pt")
    radius, spent = training.clip.radii, training.epsilon()

    loaded = torch.load(tmp_path / "state.pt")
    model, optimizer, loader, training = private(clip=Adaptive(3.0), noise_multiplier=1.0)
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    training.load_state_dict(loaded["privacy"])
    assert training.steps == 5
    assert training.clip.radii == radius
    assert training.epsilon() == spent
    for x, y in loader:
        step(model, optimizer, x, y)
    assert training.steps == 10
    (one,) = training.plan.steps
    assert one.count == 10


def test_resume_with_other_noise_keeps_both_in_the_account() -> None:
    model, optimizer, loader, training = private(noise_multiplier=1.0)
    for x, y in loader:
        step(model, optimizer, x, y)
    state = training.state_dict()
    model, optimizer, loader, later = private(noise_multiplier=2.0)
    later.load_state_dict(state)
    for x, y in loader:
        step(model, optimizer, x, y)
    assert [one.count for one in later.plan.steps] == [5, 5]
    assert later.epsilon().lower > training.epsilon().upper
    exact = sdp.compose([(one.loss, one.count) for one in later.plan.steps]).epsilon(1e-5)
    assert later.epsilon().upper == pytest.approx(exact.upper, rel=1e-9)


def test_resume_refuses_what_would_break_the_claim() -> None:
    *_, training = private(noise_multiplier=0.5)
    training.account.taken = 5
    state = training.state_dict()
    *_, later = private(noise_multiplier=1.0)
    later.account.epsilon, later.account.limit = 2.0, 5
    with pytest.raises(sdp.RefutedError):
        later.load_state_dict(state)
    with pytest.raises(ValueError, match="state of an account"):
        later.account.load_state_dict({"taken": 3})


def killed(folder: Path, at: int) -> None:
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed.py")), str(folder), str(at)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == -signal.SIGKILL, run.stderr


def test_a_killed_run_is_charged_for_every_step_it_started(tmp_path: Path) -> None:
    killed(tmp_path, 8)  # checkpoint after step 6
    state = torch.load(tmp_path / "state.pt")
    assert state["privacy"]["account"]["taken"] == 6
    *_, plain = private(noise_multiplier=1.0)
    plain.load_state_dict(state["privacy"])
    assert plain.steps == 6
    model, optimizer, loader, training = private(noise_multiplier=1.0, journal=tmp_path / "journal")
    training.load_state_dict(state["privacy"])
    assert training.steps == 8
    for x, y in loader:
        step(model, optimizer, x, y)
    assert training.steps == 13
    assert (tmp_path / "journal").read_bytes().count(b".") == 13
    exact = sdp.Plan((Step(training.mechanism, 12 / 60, 13),)).epsilon(1e-5)
    assert training.epsilon().upper == pytest.approx(exact.upper, rel=1e-9)


def taken(steps: int, **options: Any) -> Any:
    """A training after that many steps on empty draws."""
    _, optimizer, _, training = private(**options)
    for _ in range(steps):
        empty_step(training, optimizer)
    return training


def test_the_journal_alone_is_enough(tmp_path: Path) -> None:
    taken(9, journal=tmp_path / "journal")
    *_, training = private(journal=tmp_path / "journal")
    assert training.steps == 9


def test_a_journal_counts_one_kind_of_step(tmp_path: Path) -> None:
    """Steps at 0.6 are not charged as steps at 3; nor is a file that holds something else."""
    taken(4, noise_multiplier=0.6, journal=tmp_path / "journal")
    for options in ({"noise_multiplier": 3.0}, {"noise_multiplier": 0.6, "batch_size": 6}):
        with pytest.raises(ValueError, match="other noise, clip or sampling"):
            private(**options, journal=tmp_path / "journal")
    (tmp_path / "notes").write_bytes(b"." * 9)
    with pytest.raises(ValueError, match="not a journal of steps"):
        private(journal=tmp_path / "notes")
    assert private(noise_multiplier=0.6, journal=tmp_path / "journal")[3].steps == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "notes"]


def test_runs_that_share_a_journal_are_both_charged(tmp_path: Path) -> None:
    _, first, _, one = private(journal=tmp_path / "journal")
    _, second, _, two = private(journal=tmp_path / "journal")
    for training, optimizer in ((one, first), (two, second), (two, second), (one, first)):
        empty_step(training, optimizer)
    assert one.steps == 4
    assert private(journal=tmp_path / "journal")[3].steps == 4


def test_steps_of_a_run_without_the_journal_are_added(tmp_path: Path) -> None:
    state = taken(5).state_dict()
    taken(3, journal=tmp_path / "journal")
    *_, training = private(journal=tmp_path / "journal")
    training.load_state_dict(state)
    assert training.steps == 8


def test_loading_a_state_never_lowers_the_account() -> None:
    _, optimizer, _, training = private()
    states = [training.state_dict()]
    for _ in range(3):
        empty_step(training, optimizer)
        states.append(training.state_dict())
    for state in states:
        with pytest.raises(ValueError, match="before the first step"):
            training.load_state_dict(state)
    assert training.steps == 3
    *_, later = private()
    later.load_state_dict(states[0])
    later.load_state_dict(states[3])
    with pytest.raises(ValueError, match="before the first step"):
        later.load_state_dict(states[1])
    assert later.steps == 3


def test_a_plan_cannot_be_run_again_by_loading_its_start() -> None:
    _, optimizer, _, training = private(epsilon=3.0, steps=2, batch_size=60)
    start = training.state_dict()
    for _ in range(2):
        empty_step(training, optimizer)
    with pytest.raises(ValueError, match="before the first step"):
        training.load_state_dict(start)
    with pytest.raises(BudgetError):
        empty_step(training, optimizer)


def test_a_state_that_contradicts_itself_is_refused() -> None:
    state = taken(2).state_dict()
    for change in ({"steps": None, "taken": 50}, {"taken": 0}, {"taken": 3}):
        *_, training = private()
        with pytest.raises(ValueError, match="contradicts itself"):
            training.account.load_state_dict(state["account"] | change)
        assert training.steps == 0


def test_an_account_without_steps_has_spent_nothing() -> None:
    *_, training = private()
    assert training.epsilon().upper == 0
    with pytest.raises(ValueError, match="no number of steps"):  # one step would stand for all
        _ = training.certificate
    *_, planned = private(epsilon=2.0, steps=3)
    assert planned.certificate.secure is None


def test_a_certificate_is_kept_for_the_steps_it_covers_and_no_others() -> None:
    def fresh(**options: Any) -> Account:
        return Account(Step(sdp.GaussianLoss(0.1)), None, 1e-5, 3, **options)

    account = fresh()
    planned = account.certificate()
    account.take_over(Plan((Step(sdp.GaussianLoss(0.5)),)))
    assert account.certificate().epsilon > planned.epsilon
    account = fresh()
    for taken in (1, 2):
        account.charge()
        spent, found = account.spent(), account.certificate()
        assert found.epsilon >= spent.upper
        assert found == account.certificate() == fresh(taken=taken).certificate()
    account.epsilon = 9.0
    assert account.certificate().epsilon == 9.0
