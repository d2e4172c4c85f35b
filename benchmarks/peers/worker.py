"""Answers JSON lines on standard input with timed calls of other libraries.

Request: {"function": name, "arguments": {...}, "loops": n}.
Answer: {"seconds": total over the loops, "value": last returned value} or {"error": text}.

Each function below prepares what may be prepared once and returns the callable that is timed.
Imports are inside the functions: one environment need not hold every library.
"""

import contextlib
import functools
import gc
import importlib.metadata
import json
import os
import sys
import time

LIBRARIES = (
    "opendp",
    "polars",
    "dp-accounting",
    "autodp",
    "prv-accountant",
    "diffprivlib",
    "tmlt.analytics",
    "pyspark",
)
LIBRARIES += ("numpy", "scipy")

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from models import diffprivlib_model  # noqa: E402

from tables import diffprivlib_table, opendp_table, tumult_table  # noqa: E402


def dp_accounting_sigma(epsilon, delta):
    """dp_accounting: standard deviation of the Gaussian mechanism, sensitivity 1."""
    from dp_accounting import get_sigma_gaussian

    return lambda: get_sigma_gaussian(epsilon, delta)


def autodp_sigma(epsilon, delta):
    """autodp: its analytic Gaussian calibrator, sensitivity 1."""
    import autodp.mechanism_zoo  # noqa: F401 - first: privacy_calibrator imports in a circle
    from autodp.privacy_calibrator import ana_gaussian_mech

    return lambda: float(ana_gaussian_mech(epsilon, delta)["sigma"])


def opendp_sigma(epsilon, delta):
    """OpenDP: binary search over make_gaussian, zCDP converted to approximate DP, sensitivity 1."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def mechanism(scale):
        approximate = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale))
        return dp.c.make_fix_delta(approximate, delta)

    return lambda: dp.binary_search_param(mechanism, d_in=1.0, d_out=(epsilon, delta), T=float)


def opendp_quantile(values, candidates, level, epsilon):
    """OpenDP: one pure quantile among candidates, at the least scale that meets epsilon."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))

    def mechanism(scale):
        return dp.m.make_private_quantile(
            domain, dp.symmetric_distance(), dp.max_divergence(), candidates, level, scale
        )

    release = mechanism(dp.binary_search_param(mechanism, d_in=1, d_out=epsilon, T=float))
    return lambda: release(values)


def opendp_release(size, scale=1.0, k=None):
    """OpenDP: Gaussian release of `size` coordinates from a ready list; returns the number released.

    k: noise on the grid 2^k (OpenDP's default is the finest there is).
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    atom = dp.atom_domain(T=float, nan=False)
    domain = dp.vector_domain(atom) if k is None else dp.vector_domain(atom, size=size)
    release = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale, k=k)
    values = [0.0] * size
    return lambda: len(release(values))


def diffprivlib_sigma(epsilon, delta):
    """diffprivlib: its analytic Gaussian mechanism, sensitivity 1."""
    from diffprivlib.mechanisms import GaussianAnalytic

    return lambda: float(GaussianAnalytic(epsilon=epsilon, delta=delta, sensitivity=1.0)._scale)


def versions():
    """Versions of the libraries that this environment holds."""
    found = {}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return lambda: found


FUNCTIONS = {
    function.__name__: function
    for function in (
        dp_accounting_sigma,
        autodp_sigma,
        opendp_sigma,
        opendp_quantile,
        opendp_release,
        diffprivlib_sigma,
        diffprivlib_model,
        diffprivlib_table,
        opendp_table,
        tumult_table,
        versions,
    )
}


@functools.cache
def prepared(name, arguments):
    if name not in FUNCTIONS:
        raise KeyError(f"no function {name!r}; there are {sorted(FUNCTIONS)}")
    return FUNCTIONS[name](**json.loads(arguments))


def answer(request):
    call = prepared(request["function"], json.dumps(request.get("arguments", {}), sort_keys=True))
    gc.disable()
    now = time.process_time if request.get("processor") else time.perf_counter
    start = now()
    for _ in range(request.get("loops", 1)):
        value = call()
    seconds = now() - start
    gc.enable()
    return {"seconds": seconds, "value": value}


def main():
    # Libraries that print must not break the line protocol: keep the real standard output aside.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        for line in sys.stdin:
            try:
                reply = answer(json.loads(line))
            except Exception as error:
                reply = {"error": f"{type(error).__name__}: {error}"}
            replies.write(json.dumps(reply) + "\n")
            replies.flush()


if __name__ == "__main__":
    main()
