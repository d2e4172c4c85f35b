"""Figures 1 to 4 of the i.n.i.d. noise paper, with the numbers its text quotes.

    python experiments/inid_noise/inid_figures.py [--plot DIRECTORY]

Expected: reductions of 1.145, 2.442, 9.658 dB (Gaussian) and 0.546, 1.39, 7.609 dB (Laplace) at K = 20; saturation of
the exponential profile at 21.477 dB (Gaussian) and 14.432 dB (Laplace; 14.243 is printed); exponential below quadratic
from K = 3 on (Gaussian); Laplace above Gaussian from K = 9 on for the uniform profile, below it at every K for the
exponential one. All at epsilon 0.5, delta 1e-6.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from inid_profiles import NAMES, decibel, profile

from shapedp.papers.recipes import inid

EPSILON, DELTA, K = 0.5, 1e-6, 20
CURVES = NAMES[:4]


def gaussian_error(name: str, dim: int, epsilon: float = EPSILON, *, shaped: bool = True) -> float:
    """Expected squared error at unit l2 sensitivity."""
    recipe = inid.inid_gaussian if shaped else inid.iid_gaussian
    mechanism = recipe(profile=profile(name, dim, 2), epsilon=epsilon, delta=DELTA)
    assert mechanism.certificate.verdict == "certified"
    return mechanism.expected_squared_error


def laplace_error(name: str, dim: int, epsilon: float = EPSILON, *, shaped: bool = True, norm: int = 1) -> float:
    """Expected squared error at unit l1 (or l2) sensitivity."""
    recipe = inid.inid_laplace if shaped else inid.iid_laplace
    mechanism = recipe(profile=profile(name, dim, norm), epsilon=epsilon, delta=0.0)
    assert mechanism.certificate.verdict == "certified"
    return mechanism.expected_squared_error


def reductions() -> dict[str, list[float]]:
    """Reduction in dB over i.i.d. noise at K = 20: the distances between the lines of figures 1a and 3a."""
    names = CURVES[1:]
    return {
        "gaussian": [decibel(gaussian_error(n, K, shaped=False) / gaussian_error(n, K)) for n in names],
        "laplace": [decibel(laplace_error(n, K, shaped=False) / laplace_error(n, K)) for n in names],
    }


def crossing(name: str, last: int = 60) -> list[int]:
    """The dimensions at which pure Laplace noise costs more than Gaussian noise (figure 4)."""
    dims = range(1, last + 1)
    return [dim for dim in dims if laplace_error(name, dim, norm=2) > gaussian_error(name, dim)]


def check() -> list[str]:
    """Assert every number; return the lines to print."""
    found = reductions()
    np.testing.assert_allclose(found["gaussian"], [1.145, 2.442, 9.658], atol=6e-4)
    np.testing.assert_allclose(found["laplace"], [0.546, 1.39, 7.609], atol=6e-4)
    levels = decibel(gaussian_error("exponential", 200)), decibel(laplace_error("exponential", 200))
    np.testing.assert_allclose(levels, [21.477, 14.432], atol=6e-4)
    uniform = crossing("uniform")
    assert uniform == list(range(9, 61)), uniform
    assert crossing("exponential") == []
    better = [k for k in range(2, 30) if gaussian_error("exponential", k) < gaussian_error("quadratic", k)]
    assert better == list(range(3, 30)), better
    assert inid.gini(profile("quadratic", 2, 2)) > inid.gini(profile("exponential", 2, 2))
    return [
        f"reduction at K = {K}, dB (linear, quadratic, exponential): "
        f"Gaussian {', '.join(f'{v:.3f}' for v in found['gaussian'])}; "
        f"Laplace {', '.join(f'{v:.3f}' for v in found['laplace'])}",
        f"saturation of the exponential profile: Gaussian {levels[0]:.3f} dB, Laplace {levels[1]:.3f} dB",
        f"uniform profile: Laplace above Gaussian from K = {uniform[0]} on; exponential: at no K",
    ]


def draw(folder: Path) -> None:
    """The four figures as png files."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    epsilons, dims = np.linspace(0.1, 2, 20), np.arange(2, 31)
    for number, error in (("1", gaussian_error), ("3", laplace_error)):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
        for name in CURVES:
            left.plot(epsilons, [decibel(error(name, K, e)) for e in epsilons], label=name)
            right.plot(dims, [decibel(error(name, k)) for k in dims], label=name)
        left.set(xlabel="epsilon", ylabel="expected squared error, dB")
        right.set(xlabel="K")
        left.legend()
        figure.savefig(folder / f"figure{number}.png", dpi=120, bbox_inches="tight")
    for number, curves in (
        ("2", {name: [inid.gini(profile(name, k, 2)) for k in dims] for name in CURVES}),
        (
            "4",
            {f"Gaussian, {n}": [decibel(gaussian_error(n, k)) for k in dims] for n in ("uniform", "exponential")}
            | {
                f"Laplace, {n}": [decibel(laplace_error(n, k, norm=2)) for k in dims]
                for n in ("uniform", "exponential")
            },
        ),
    ):
        figure, axes = plt.subplots(figsize=(5, 4))
        for name, values in curves.items():
            axes.plot(dims, values, label=name)
        axes.set(xlabel="K", ylabel="Gini coefficient" if number == "2" else "expected squared error, dB")
        axes.legend()
        figure.savefig(folder / f"figure{number}.png", dpi=120, bbox_inches="tight")


def main(arguments: list[str] | None = None) -> None:
    """Check, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path, metavar="DIRECTORY")
    options = parser.parse_args(arguments)
    print("\n".join(check()))
    if options.plot is not None:
        options.plot.mkdir(parents=True, exist_ok=True)
        draw(options.plot)


if __name__ == "__main__":
    main()
