"""The clocks that a user sees, each with its bar: processor time, best of several, warm unless the name says cold.

Every figure is also divided by a yardstick measured beside it, fixed numpy work of about 20 ms; a quick run fails where
one of these quotients is more than twice the stored one. A whole run asks `accounting` and `calibration`, too, whose
peers need `make peers`: one command for every bar.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import numpy as np

import accounting
import calibration
import linear_fit
import shapedp as sdp
from _harness import RESULTS, Result
from shapedp.learn import LinearRegression
from shapedp.learn.moments import one_blas_thread
from shapedp.mechanisms.mixing import draw_sketch
from shapedp.noise import tilted
from shapedp.numerics.arrays import dots
from shapedp.numerics.gram import BLOCK, gram, square_of
from shapedp.numerics.hyperspherical import from_angles, to_angles
from shapedp.numerics.threads import cores
from shapedp.privacy.losses import largest_mus, sums
from shapedp.sampling import SecureSource, rounded_sum

CLAIM = {"epsilon": 1.0, "delta": 1e-5}
ADVISE = 0.3
ENOUGH = 2.0  # seconds: a case that took so long is not asked again
LONG = 30.0  # yardsticks: what takes longer is left to whole runs
Case = tuple[str, Callable[[], object], float]


def _yardstick() -> None:
    x = np.linspace(0.0, 1.0, 1 << 18)
    np.fft.rfft(np.exp(np.sin(x)))
    np.sort(np.cos(1e6 * x))


def _forget() -> None:
    """Empties what calibration keeps from one call to the next."""
    sums._kept.cache_clear()
    tilted._solved.cache_clear()


def _sets() -> dict[str, sdp.Sensitivity]:
    rng = np.random.default_rng(0)
    return {
        "L2, dim 2": sdp.L2(1.0, 2),
        "L2, dim 14": sdp.L2(1.0, 14),
        "L2, dim 1000": sdp.L2(1.0, 1000),
        "L2 of a tensor 8x8x8": sdp.L2(1.0, shape=(8, 8, 8)),
        "L1, dim 14": sdp.L1(1.0, 14),
        "box, 1 bound": sdp.Box([1.0]),
        "box, 14 equal bounds": sdp.Box(np.ones(14)),
        "box, 14 bounds": sdp.Box(rng.uniform(0.1, 1, 14)),
        "box, 1000 bounds": sdp.Box(rng.uniform(0.1, 1, 1000)),
        "two blocks": sdp.Blocks([1.0, 2.0], [5, 9]),
        "hull, 5 vertices in 14": sdp.Hull(rng.normal(size=(5, 14))),
        "hull, 40 vertices in 40": sdp.Hull(rng.normal(size=(40, 40))),
    }


def _cases() -> list[Case]:
    """Names, calls and the seconds each may take."""
    cases: list[Case] = [
        (f"advise, {name}", lambda chosen=chosen: sdp.advise(chosen, **CLAIM), ADVISE)  # type: ignore[misc]
        for name, chosen in _sets().items()
    ]
    cases += [
        (f"best radial law, dim {dim}", lambda dim=dim: sdp.calibrate("radial", sdp.L2(1.0, dim), **CLAIM), 0.3)  # type: ignore[misc]
        for dim in (2, 14, 1000)
    ]
    for dim in (2, 14):
        law = sdp.calibrate("radial", sdp.L2(1.0, dim), **CLAIM).law
        cases.append(
            (
                f"2,000 sampled steps of radial noise, dim {dim}",
                lambda law=law, dim=dim: sdp.compose([(sdp.subsample(law.loss(sdp.L2(1.0, dim)), 0.01), 2000)]).epsilon(
                    1e-5
                ),  # type: ignore[misc]
                3.0,
            )
        )
    training = {"epsilon": 2.0, "delta": 1e-5, "sampling_rate": 0.01}
    cases += [(f"plan, {n} steps", lambda n=n: sdp.plan(**training, steps=n), 1.0) for n in (1000, 10_000)]  # type: ignore[misc]
    rng = np.random.default_rng(2)
    claims = 10 ** rng.uniform(-3, 1.69, 10**5), 10 ** rng.uniform(-30, -0.302, 10**5)
    cases.append(("100,000 calibrations as one array", lambda: largest_mus(*claims), 0.2))
    return cases


def _best(call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Processor seconds of a call, and over the yardstick's: the best of each."""
    own, measure = [], []
    while len(own) < rounds and sum(own) < ENOUGH:
        _forget()
        for what, into in ((_yardstick, measure), (call, own)):
            start = time.process_time()
            what()
            into.append(time.process_time() - start)
    return min(own), min(own) / min(measure)


def _children(commands: dict[str, list[str]], rounds: int) -> dict[str, float]:
    """Processor seconds of Python processes, in turn, the best of each.

    Modules are compiled first, into a folder of this run: so does Python for every user but where it is told not to.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def seconds(words: list[str]) -> float:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True, env=environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        for words in commands.values():
            seconds(words)
        times = [[seconds(words) for words in commands.values()] for _ in range(rounds)]
        return dict(zip(commands, map(min, zip(*times, strict=True)), strict=True))


def _command_line(result: Result, rounds: int) -> None:
    book = tomllib.loads((files("shapedp.cli") / "commands.toml").read_text("utf-8"))["commands"]
    shapedp, claim = ["-m", "shapedp"], ["--epsilon", "1", "--delta", "1e-5"]
    times = _children({name: [*shapedp, name, "--help"] for name in book}, rounds)
    slowest = max(times, key=times.__getitem__)
    result.figure(f"slowest --help, {slowest}: s", times[slowest], at_most=0.25)
    sets = ("--l1 1 --dim 14", "--l2 1 --dim 14", "--box 1,0.5,0.1")
    commands = {words: [*shapedp, "advise", *words.split(), *claim] for words in sets}
    times = _children({"import": ["-c", "import scipy.special"], **commands}, 3 * rounds)
    for words in sets:
        ratio = times[words] / times["import"]
        result.ratio(f"cold advise {words} / import scipy.special", ratio, at_most=2.0)
    result.figure("shapedp claims --verify: s", _children({"": [*shapedp, "claims", "--verify"]}, 1)[""])
    result.notes.append("Commands run with their modules compiled, as they are after their first run.")


def _quotient(call: Callable[[], object], other: Callable[[], object], rounds: int = 5) -> float:
    """The best processor time of a call over that of another, in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for what, into in zip((call, other), times, strict=True):
            start = time.process_time()
            what()
            into.append(time.process_time() - start)
    return min(times[0]) / min(times[1])


def _kernels(result: Result, size: int) -> None:
    generator, source, zeros = np.random.default_rng(0), SecureSource(), np.zeros(size)
    quotient = _quotient(
        lambda: generator.standard_normal(size), lambda: rounded_sum(zeros, "gaussian", 1.0, None, source)
    )
    result.ratio("numpy's raw normals / secure, float-safe noise added", quotient, at_least=0.7)
    x = generator.standard_normal(size)
    quotient = _quotient(lambda: from_angles(*to_angles(x)), x.copy)
    result.ratio("angles of a vector, there and back / copy", quotient, at_most=10.0)
    rows = generator.normal(size=(size // 50, 100)) / 20
    made = sdp.Mixing.calibrate(rows=500, row_bound=1.0, epsilon=1.0, delta=1e-6, records=len(rows), dim=100)
    variance = made.noise_variance
    quotient = _quotient(
        lambda: made.release(rows), lambda: draw_sketch(gram(rows), 500, variance, variance / 2, source)
    )
    result.ratio("release of a sketch / Gram and sample", quotient, at_most=1.15)


def _fit(result: Result, records: int) -> None:
    """A whole private fit over the plain Gram matrix: processor time, whatever the threads."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(records, 100)) / 20
    y = x @ rng.normal(size=100) / 4
    model = LinearRegression(**linear_fit.CLAIM, solver="mixing", sketch_rows=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these data are fitted several times
        quotient = _quotient(lambda: model.fit(x, y), lambda: linear_fit._threaded(x))
    result.ratio(f"fit of {records:,} x 100, calibration kept / threaded Gram", quotient, at_most=1.1)
    least = _quotient(lambda: _threaded_passes(x, y), lambda: linear_fit._threaded(x))
    result.ratio("its passes alone: Gram, norms, sum and x^T y by numpy / threaded Gram", least)


def _threaded_passes(x: np.ndarray, y: np.ndarray) -> None:
    """What a private fit cannot do without, as numpy does it: x^T x, every row's norm, the sum of rows, x^T y."""
    ones = np.ones(BLOCK)

    def passes(start: int) -> None:
        for at in range(start, len(x), cores() * BLOCK):
            rows, target = x[at : at + BLOCK], y[at : at + BLOCK]
            square_of(rows)
            dots(rows, rows)
            target @ rows
            ones[: len(rows)] @ rows

    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        list(pool.map(passes, range(0, cores() * BLOCK, BLOCK)))


def _beside_peers(result: Result) -> None:
    """The bars of the benchmarks that run beside other libraries."""
    for other in (accounting.run(quick=False), calibration.run(quick=False)):
        result.ratios += [entry for entry in other.ratios if "met" in entry]
        result.figures += [entry for entry in other.figures if "met" in entry]
        result.peers |= other.peers


def run(quick: bool) -> Result:
    result = Result("bars", what="what a user waits for: processor seconds, best of several", guards=quick)
    stored = _stored() if quick else {}
    for name, call, seconds in _cases():
        if quick and stored.get(name, 0.0) > LONG:
            continue
        own, quotient = _best(call, 4)
        if quick and quotient > 2 * stored.get(name, math.inf):  # once more: other work is on the machine too
            own, quotient = min((own, quotient), _best(call, 12), key=lambda found: found[1])
        if not quick:
            result.figure(f"{name}: s", own, at_most=seconds)
        result.figure(f"{name}: yardsticks", quotient, at_most=2 * stored[name] if name in stored else None)
    if not quick:
        _kernels(result, 10**7)
        _fit(result, 500_000)
        _beside_peers(result)
        _command_line(result, 3)
    result.notes.append("The yardstick is an FFT, a sort and three functions of 262,144 numbers.")
    return result


def _stored() -> dict[str, float]:
    """The quotients of the last whole run, by case."""
    path = RESULTS / "bars.json"
    figures = json.loads(path.read_text("utf-8"))["figures"] if path.exists() else []
    end = ": yardsticks"
    return {one["what"].removesuffix(end): one["value"] for one in figures if one["what"].endswith(end)}
