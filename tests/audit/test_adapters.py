"""Mechanisms of other libraries: Opacus here, OpenDP and diffprivlib in environments of their own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from shapedp import audit
from shapedp.privacy import GaussianLoss

ROOT = Path(__file__).resolve().parents[2]


def environment(name: str, module: str) -> str:
    """The interpreter of an environment made by `make peers`, or a skip."""
    for root in (ROOT, Path(os.environ.get("SHAPEDP_PEERS", ROOT))):
        python = root / name / "bin" / "python"
        if python.exists():
            check = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
            if check.returncode == 0:
                return str(python)
    pytest.skip(f"{module} is not installed in {name}: make peers")


def run_in(python: str, script: str) -> dict:
    clean = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([python, "-c", script], env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


OPENDP = """
import json, opendp.prelude as dp
from shapedp import audit
dp.enable_features("contrib")
space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
f = audit.opendp(dp.m.make_laplace(*space, scale=1.0))
call = dict(neighbours=(0.0, 1.0), delta=0.0, samples=16_000)
print(json.dumps({"right": audit.mechanism(f, epsilon=1.0, **call).to_json(),
                  "wrong": audit.mechanism(f, epsilon=0.5, **call).to_json()}))
"""

DIFFPRIVLIB = """
import json, warnings
warnings.simplefilter("ignore")
from diffprivlib.mechanisms import Laplace
from shapedp import audit
f = audit.diffprivlib(Laplace(epsilon=1.0, sensitivity=1.0))
call = dict(neighbours=(0.0, 1.0), delta=0.0, samples=16_000)
print(json.dumps({"right": audit.mechanism(f, epsilon=1.0, **call).to_json(),
                  "wrong": audit.mechanism(f, epsilon=0.5, **call).to_json()}))
"""


@pytest.mark.parametrize(
    ("name", "module", "script"),
    [(".venv-peers", "opendp", OPENDP), (".venv-diffprivlib", "diffprivlib", DIFFPRIVLIB)],
    ids=["opendp", "diffprivlib"],
)
def test_laplace_mechanisms_of_other_libraries(name, module, script):
    """False-alarm rate 1%, twice: a claim that holds stands, one that is half as large falls."""
    answer = run_in(environment(name, module), script)
    assert answer["right"]["verdict"] == "no violation found"
    assert answer["right"]["epsilon_lower"] > 0.5
    assert answer["wrong"]["verdict"] == "violation"


def optimizer(noise_multiplier: float, max_grad_norm: float):
    torch = pytest.importorskip("torch")
    optimizers = pytest.importorskip("opacus.optimizers")
    model = torch.nn.Linear(3, 1, bias=True)
    return optimizers.DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=noise_multiplier,
        max_grad_norm=max_grad_norm,
        expected_batch_size=4,
    )


@pytest.mark.filterwarnings("default")
def test_an_opacus_optimizer_step():
    """Noise multiplier 1 is mu = 1 under add/remove: the claim holds, a third of it does not."""
    step = audit.opacus(optimizer(1.0, 0.7))
    rows = np.random.default_rng(0).normal(size=(4, 4))
    outlier = np.zeros((1, 4))
    outlier[0, 0] = 1e6
    call = {"neighbours": (rows, np.concatenate([rows, outlier])), "delta": 1e-3, "samples": 3000, "seed": 1}
    true = GaussianLoss(1.0).epsilon(1e-3).upper
    right = audit.mechanism(step, epsilon=true, loss=GaussianLoss(1.0), **call)
    wrong = audit.mechanism(step, epsilon=GaussianLoss(0.3).epsilon(1e-3).upper, loss=GaussianLoss(0.3), **call)
    assert not right.violation
    assert wrong.violation


@pytest.mark.filterwarnings("default")
def test_an_opacus_step_needs_rows_of_the_right_length():
    with pytest.raises(ValueError, match="4 gradient entries"):
        audit.opacus(optimizer(1.0, 1.0))(np.zeros((2, 3)), np.random.default_rng(0))


@pytest.mark.parametrize("adapter", [audit.opendp, audit.diffprivlib, audit.opacus])
def test_what_is_no_mechanism_is_refused(adapter):
    with pytest.raises(TypeError, match="takes"):
        adapter(3)
