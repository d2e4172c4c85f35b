"""Subsampled Gaussian training: epsilon at delta 1e-5, against dp_accounting and prv_accountant in one run.

Processor time, in turn: other work on the machine moves the ratios little.
"""

from __future__ import annotations

import json
import subprocess
import time

from _harness import HERE, Result, Timing
from shapedp.accounting import compose, subsample
from shapedp.privacy import GaussianLoss

SIGMA, RATE, STEPS, DELTA = 1.3, 256 / 60000, 10_000, 1e-5
KINDS, EACH = [(0.8 + 0.05 * i, 0.01 + 0.0007 * i) for i in range(20)], 50  # (sigma, rate) and steps of each

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

def dp_mixed(kinds, each, delta):
    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    for sigma, rate in kinds:
        accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma)), each)
    return [None, accountant.get_epsilon(delta)]

for line in sys.stdin:
    request = json.loads(line)
    start = time.process_time()
    functions = {"dp_accounting": dp, "prv_accountant": prv, "dp_accounting, mixed": dp_mixed}
    value = functions[request["name"]](**request["arguments"])
    print(json.dumps({"seconds": time.process_time() - start, "value": value}), flush=True)
"""


def ours() -> tuple[float, float]:
    """The bracket of epsilon, nothing kept from one call to the next."""
    bracket = compose([(subsample(GaussianLoss(1 / SIGMA), RATE), STEPS)]).epsilon(DELTA)
    return bracket.lower, bracket.upper


def ours_mixed() -> tuple[float, float]:
    """The bracket of 1,000 steps of 20 kinds."""
    steps = [(subsample(GaussianLoss(1 / sigma), rate), EACH) for sigma, rate in KINDS]
    bracket = compose(steps).epsilon(DELTA)
    return bracket.lower, bracket.upper


def run(quick: bool) -> Result:
    python = HERE.parent / ".venv-peers" / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(".venv-peers is missing; make it with `make peers`")
    one = {"sigma": SIGMA, "rate": RATE, "steps": STEPS, "delta": DELTA}
    arguments = {
        "dp_accounting": one,
        "prv_accountant": one,
        "dp_accounting, mixed": {"kinds": KINDS, "each": EACH, "delta": DELTA},
    }
    cases = {"shapedp": ours, "shapedp, mixed": ours_mixed}
    samples: dict[str, list[float]] = {name: [] for name in (*cases, *arguments)}
    values: dict[str, list[float | None]] = {}
    with subprocess.Popen(
        [python, "-I", "-W", "ignore", "-c", PEERS],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3 if quick else 8):  # the first round warms up and is not counted
            for name, case in cases.items():
                start = time.process_time()
                values[name] = list(case())
                samples[name].append(time.process_time() - start)
            for name, given in arguments.items():
                process.stdin.write(json.dumps({"name": name, "arguments": given}) + "\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline())
                samples[name].append(answer["seconds"])
                values[name] = answer["value"]
        process.stdin.close()
    result = Result(
        "accounting", what="epsilon of 10,000 subsampled Gaussian steps (sigma 1.3, rate 256/60000)", peers={}
    )
    result.timings = {name: Timing(tuple(times[1:]), 1) for name, times in samples.items()}
    result.figure("median, s", result.timings["shapedp"].median, at_most=1.0)
    for name, widest in (("shapedp", 1e-5), ("shapedp, mixed", 5e-6)):
        low, high = values[name]
        assert low is not None
        assert high is not None
        result.figure(f"{name}: width of the bracket", high - low, at_most=widest)
        result.notes.append(f"{name}: epsilon in [{low!r}, {high!r}]")
    for name, own, least in (
        ("dp_accounting", "shapedp", 1 / 0.8),
        ("prv_accountant", "shapedp", 10.0),
        ("dp_accounting, mixed", "shapedp, mixed", 1.0),
    ):
        ratio = result.timings[name].median / result.timings[own].median
        result.ratio(f"{name} / {own}, time", ratio, at_least=least / 2 if quick else least)
        result.notes.append(f"{name}: epsilon {values[name]}")
    return result
