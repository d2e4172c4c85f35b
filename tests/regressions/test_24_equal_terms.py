"""The transform of a sum of very many equal Laplace losses, against 50 digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from shapedp.numerics.laplace_sums import LaplaceSum


@pytest.mark.parametrize(
    ("a", "count"), [(0.3, 1), (0.01, 17), (0.02, 10**4), (1e-3, 10**6), (2e-6, 10**6), (3e-5, 10**9)]
)
def test_the_transform_of_many_equal_terms_is_within_its_error(a: float, count: int) -> None:
    """A power by squaring is off by units of the count, which tiny terms do not show in their sum."""
    frequencies = np.concatenate([[0.0], np.geomspace(1e-3, 20, 12)])
    total = LaplaceSum.grouped(np.array([a]), np.array([float(count)]))
    found, error = total.spectrum(2.0, frequencies)
    with mp.workdps(50):

        def moment(theta: mp.mpc) -> mp.mpc:
            s = theta + mp.mpf(0.5)
            return mp.exp(-mp.mpf(a) / 2) * (mp.cosh(s * a) + mp.sinh(s * a) / (2 * s))

        for value, bound, t in zip(found, error, frequencies, strict=True):
            truth = (moment(mp.mpc(2, float(t))) / moment(mp.mpf(2))) ** count
            assert abs(mp.mpc(complex(value)) - truth) <= float(bound)
