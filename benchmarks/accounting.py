"""Subsampled Gaussian training: epsilon at delta 1e-5, against dp_accounting and prv_accountant in one run."""

from __future__ import annotations

import json
import subprocess
import time

from _harness import HERE, Result, Timing
from shapedp.accounting import compose, subsample
from shapedp.privacy import GaussianLoss

SIGMA, RATE, STEPS, DELTA = 1.3, 256 / 60000, 10_000, 1e-5

# Runs in the peers' environment: one request per line, the answer and the seconds it took.
PEERS = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import dp_accounting
from dp_accounting import pld
from prv_accountant import PRVAccountant, PoissonSubsampledGaussianMechanism

def dp(sigma, rate, steps, delta):
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma))
    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    return [None, accountant.compose(event, steps).get_epsilon(delta)]

def prv(sigma, rate, steps, delta):
    mechanism = PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=rate)
    options = {"eps_error": 5e-3, "delta_error": delta / 1000}
    accountant = PRVAccountant(prvs=[mechanism], max_self_compositions=[steps], **options)
    low, _, high = accountant.compute_epsilon(delta, [steps])
    return [float(low), float(high)]

for line in sys.stdin:
    request = json.loads(line)
    start = time.perf_counter()
    value = {"dp_accounting": dp, "prv_accountant": prv}[request["name"]](**request["arguments"])
    print(json.dumps({"seconds": time.perf_counter() - start, "value": value}), flush=True)
"""


def ours() -> tuple[float, float]:
    """The bracket of epsilon, nothing kept from one call to the next."""
    bracket = compose([(subsample(GaussianLoss(1 / SIGMA), RATE), STEPS)]).epsilon(DELTA)
    return bracket.lower, bracket.upper


def run(quick: bool) -> Result:
    python = HERE.parent / ".venv-peers" / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(".venv-peers is missing; make it with `make peers`")
    samples: dict[str, list[float]] = {"shapedp": [], "dp_accounting": [], "prv_accountant": []}
    values: dict[str, list[float | None]] = {}
    arguments = {"sigma": SIGMA, "rate": RATE, "steps": STEPS, "delta": DELTA}
    with subprocess.Popen(
        [python, "-I", "-W", "ignore", "-c", PEERS],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(2 if quick else 7):
            start = time.perf_counter()
            values["shapedp"] = list(ours())
            samples["shapedp"].append(time.perf_counter() - start)
            for name in ("dp_accounting", "prv_accountant"):
                process.stdin.write(json.dumps({"name": name, "arguments": arguments}) + "\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline())
                samples[name].append(answer["seconds"])
                values[name] = answer["value"]
        process.stdin.close()
    result = Result(
        "accounting", what="epsilon of 10,000 subsampled Gaussian steps (sigma 1.3, rate 256/60000)", peers={}
    )
    result.timings = {name: Timing(tuple(times), 1) for name, times in samples.items()}
    low, high = values["shapedp"]
    assert low is not None
    assert high is not None
    result.figure("median, s", result.timings["shapedp"].median, at_most=1.0)
    result.figure("width of the bracket", high - low, at_most=1e-5)
    for name in ("dp_accounting", "prv_accountant"):
        result.ratio(f"{name} / shapedp, time", result.timings[name].median / result.timings["shapedp"].median)
        result.notes.append(f"{name}: epsilon {values[name]}")
    result.notes.append(f"shapedp: epsilon in [{low!r}, {high!r}]")
    return result
