"""A published sketch showed its eigenvalue: z was rounded to a grid by itself, and the variance released held the rest.

At a certified (1, 1e-6) the noise variance told two neighbours apart 40 times of 40.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from shapedp.mechanisms.mixing import clipped_gram
from shapedp.numerics.gram import least_eigenvalue
from shapedp.papers.gaussian_mixing.recipes import modified_gauss_mix
from shapedp.sampling import grid_for


@pytest.mark.parametrize("bound", [1.0, 0.3])
def test_the_variance_shows_a_rounded_eigenvalue_only(bound: float) -> None:
    mechanism = modified_gauss_mix(rows=100, row_bound=bound, epsilon=1.0, delta=1e-6)
    rows = np.random.default_rng(0).normal(size=(300 if bound == 1 else 1800, 3))
    rows *= bound / np.linalg.norm(rows, axis=1)[:, None]
    least = least_eigenvalue(clipped_gram(rows, bound))
    scale = mechanism.eta * bound**2
    off_grid = 0.0
    for seed in range(8):
        sketch = mechanism.release(rows, rng=np.random.default_rng(seed))
        released = mechanism.gamma - sketch.noise_variance / bound**2
        assert 0 < released < mechanism.gamma  # not cut off
        steps = released / float(grid_for(scale))
        assert abs(steps - round(steps)) < 1e-6
        own = ((released - least) / scale + mechanism.tau) * 2.0**16
        off_grid = max(off_grid, abs(own - round(own)))
    assert off_grid > 1e-3  # z itself lies on no grid, so that lambda_min cannot be read off


def test_half_a_step_is_counted() -> None:
    mechanism = modified_gauss_mix(rows=100, row_bound=1.0, epsilon=1.0, delta=1e-6)
    assert mechanism.loss.delta(1.0).upper > special.ndtr(2.0**-17 - mechanism.tau)
