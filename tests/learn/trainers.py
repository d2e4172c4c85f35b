"""Tiny problems on which a fit is as far apart as its certificate allows, and noise that is cut."""

from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np

from shapedp import Gaussian
from shapedp.learn import PCA, Lasso, Ridge
from shapedp.mechanisms import Additive

CLAIM = {"epsilon": 1.0, "delta": 1e-2}
SMALL = {"feature_bounds": 1.0, "target_bound": 1.0, "fit_intercept": False}


def _descent(kind, **options):
    """A record whose derivative is clipped in every pass, or zeros in its place."""
    options = {"alpha": 0.0, "mean_squares": [1.0, 1.0], **CLAIM, **SMALL, "passes": 2, "step": 0.01, **options}

    def fit(data, rng):
        return kind(**options, random_state=rng).fit(*data).coef_

    x = np.array([[1.0, 1.0], [0.0, 0.0]])
    return fit, ((x, np.array([1.0, 0.0])), (0 * x, np.zeros(2)))


def _estimated(data, rng):
    """The weights and the mean squares that were released first."""
    found = Lasso(alpha=0.0, **CLAIM, **SMALL, passes=2, step=0.01, share=0.5, clip=0.5, random_state=rng).fit(*data)
    return np.concatenate([found.coef_, found.mean_squares_])


def _components(release, center):
    """What `fit` leaves of a record along the first axis, or of zeros."""

    def fit(data, rng):
        found = PCA(1, **CLAIM, feature_bound=1.0, release=release, center=center, random_state=rng).fit(data)
        return np.concatenate([found.covariance_[np.triu_indices(2)], found.mean_])

    x = np.array([[1.0, 0.0], [0.0, 0.0]])
    if release == "clipped":
        x[0] = [0.8, 0.6]
    return fit, (x, 0 * x)


X = np.array([[1.0], [0.0]])
TRAINERS = {
    "Lasso, objective": _descent(Lasso),
    "Lasso, parameter": _descent(Lasso, noise="parameter", mean_squares=[1.0, 0.04]),
    "Ridge, equal": _descent(Ridge, noise="equal"),
    "Lasso, estimated": (_estimated, ((X, np.array([1.0, 0.0])), (0 * X, np.zeros(2)))),
    "PCA, isometric": _components("isometric", False),
    "PCA, centred": _components("isometric", True),
    "PCA, iid": _components("iid", False),
    "PCA, clipped": _components("clipped", False),
}


@contextmanager
def noise_times(factor):
    """Every Gaussian release draws `factor` times its noise, while its certificate says otherwise."""
    release = Additive.release

    def cut(self, x, **options):
        honest = self.certificate
        weaker = replace(self, law=Gaussian(np.broadcast_to(self.law.scales * factor, self.law.dim)))
        assert honest.verdict == "certified"
        return release(weaker, x, **{**options, "unsafe": True})

    with mock.patch.object(Additive, "release", cut):
        yield
