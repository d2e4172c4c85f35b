"""The mutation suite: every fault still applies, and ten of them are put in and killed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "mutants" / "run.py"

if not RUNNER.exists():  # inside a copy made by the runner itself
    pytest.skip("the mutation suite is not in this tree", allow_module_level=True)

_spec = importlib.util.spec_from_file_location("mutants_run", RUNNER)
runner = importlib.util.module_from_spec(_spec)
sys.modules["mutants_run"] = runner
_spec.loader.exec_module(runner)
MUTANTS = runner.load()


def test_there_are_enough_and_their_names_differ():
    assert len(MUTANTS) >= 170
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert sum(mutant.ci for mutant in MUTANTS) == 10
    assert sum(mutant.survives is not None for mutant in MUTANTS) <= 0.05 * len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_fault_still_applies_and_names_tests_that_exist(mutant):
    path = ROOT / mutant.file
    assert path.exists(), f"{mutant.file} is gone: update {mutant.name} in mutants/*.toml"
    changed = mutant.applied(path.read_text(encoding="utf-8"))
    assert changed is not None, f"`old` of {mutant.name} must occur once in {mutant.file}: update mutants/*.toml"
    compile(changed, mutant.file, "exec")
    assert mutant.kill
    for test in mutant.kill:
        assert (ROOT / test.split("::")[0]).exists(), f"{mutant.name} names {test}, which is gone"


def test_ten_faults_are_killed():
    chosen = [mutant for mutant in MUTANTS if mutant.ci]
    outcomes = runner.run(chosen, workers=2, seconds=120)
    assert {o.mutant.name: o.verdict for o in outcomes} == {m.name: runner.KILLED for m in chosen}
