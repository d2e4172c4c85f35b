"""Solvers of several releases, naive Bayes and k-means, audited by all that they release: see `transcripts`."""

import importlib.util
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from tests.learn.trainers import BOUNDED, CLAIM, CUT, first, noise_times
from tests.learn.transcripts import TRANSCRIPTS, Drawing, Noise, leaning, plain_sums

import shapedp as sdp
from shapedp.learn import LinearRegression, base
from shapedp.learn.moments import Bounds, moments
from shapedp.learn.solvers.base import Draws
from shapedp.learn.solvers.linear import SOLVERS, Problem
from shapedp.tables import InMemory

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("transcript_audits", ROOT / "experiments/erm/transcript_audits.py")
study = importlib.util.module_from_spec(_spec)
sys.modules["transcript_audits"] = study
_spec.loader.exec_module(study)
ROWS = {(row["name"], row["kept"]): row for row in study.stored()}
SEVERAL = {"refined": 4, "boosted": 7, "descent": 20, "adassp": 3}
LITTLE = {"LinearRegression, adassp": 0.25}  # its certificate is of a smaller epsilon

pytestmark = pytest.mark.filterwarnings("ignore::shapedp.learn.RepeatedFitsWarning")


@pytest.mark.parametrize(
    ("name", "kept"),
    [("LinearRegression, refined", 1.0), *((name, LITTLE.get(name, 0.5)) for name in TRANSCRIPTS)],
)
def test_two_thousand_runs(name, kept):
    """With so few, noise cut by half is sure to show."""
    attack = TRANSCRIPTS[name]()
    options = {"loss": attack.certified(), "neighbours": attack.neighbours, "score": first, "seed": 0}
    with noise_times(kept):
        found = sdp.audit.mechanism(attack, **CLAIM, **options, samples=2_000, confidence=0.999)
    assert found.violation is (kept < 1), found


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_the_attack_uses_up_the_certificate(name):
    """The mean score is the Kullback-Leibler divergence, which a Gaussian pair of parameter mu has as mu^2/2."""
    attack, rng = TRANSCRIPTS[name](), np.random.default_rng(0)
    epsilon = attack.certified().epsilon(CLAIM["delta"]).upper
    mu = sdp.calibrate("gaussian", sdp.L2(1.0, 1), epsilon=epsilon, delta=CLAIM["delta"]).loss.mu
    scores = [attack(attack.neighbours[0], rng)[0] for _ in range(round(125 / mu**2))]
    share = np.mean(scores) / (mu**2 / 2)  # its standard deviation is 0.18, for a Gaussian pair of parameter mu
    assert 0.6 < share < 1.4, share


@pytest.mark.parametrize("solver", SEVERAL)
def test_a_fit_asks_what_the_attacker_sees(solver):
    """`fit` asks its queries at the same answers as the fast path, up to rounding of sums."""
    data = leaning(40)[0]
    through = Drawing(Noise(np.random.default_rng(3)))
    with mock.patch.object(base, "Draws", return_value=through):
        LinearRegression(**BOUNDED, target_bound=1.0, solver=solver, random_state=0).fit(*data)
    fast = Drawing(Noise(np.random.default_rng(3)))
    given = moments(InMemory(*data), Bounds(1.0, 1.0))
    problem = Problem(40, 1, Bounds(1.0, 1.0), **CLAIM)
    with plain_sums({id(given): data}):
        SOLVERS[solver].solve(given, SOLVERS[solver].mechanisms(problem), fast)
    assert len(through.seen) == len(fast.seen) == SEVERAL[solver]
    for (_, one, _), (_, other, _) in zip(through.seen, fast.seen, strict=True):
        assert one == pytest.approx(other, abs=1e-6)


def test_noise_in_blocks_is_that_of_single_releases():
    """Standard deviations of 4,096 draws each, within 8 % (five standard deviations)."""
    (mechanism,) = SOLVERS["suffstats"].mechanisms(Problem(40, 1, Bounds(1.0, 1.0), **CLAIM))
    noise, draws = Noise(np.random.default_rng(1)), Draws(np.random.default_rng(2))
    block = np.array([noise.of(mechanism) for _ in range(4096)])
    single = np.array([draws.release(mechanism, np.zeros(3)) for _ in range(4096)])
    assert block.std(axis=0) / mechanism.law.scales == pytest.approx(1.0, abs=0.08)
    assert single.std(axis=0) / mechanism.law.scales == pytest.approx(1.0, abs=0.08)


def test_what_was_stored():
    assert ROWS.keys() <= {(name, kept) for name in TRANSCRIPTS for kept in (1.0, CUT)}
    assert len(ROWS) >= 8
    for (_, kept), row in ROWS.items():
        assert row["violation"] is (kept == CUT), row
        if kept == 1:
            assert row["runs"] >= 100_000
            assert row["epsilon_lower"] <= row["certificate"] <= CLAIM["epsilon"]


def test_the_documentation_shows_what_is_stored():
    page = ROOT / "docs" / "classification.md"
    if not page.exists():
        pytest.skip("this copy has no documentation")
    assert study.table(list(ROWS.values())) in page.read_text(encoding="utf-8")
