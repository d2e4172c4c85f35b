"""Profiles and weights as the papers write them: matrices."""

from __future__ import annotations

import numpy as np
import pytest

from shapedp.papers.inid_noise import recipes as inid
from shapedp.papers.tensor_noise.recipes import tvg

RECIPES = ("iid_gaussian", "spr_gaussian", "inid_gaussian", "iid_laplace", "spr_laplace", "inid_laplace")


@pytest.mark.parametrize("name", [*RECIPES, "inid_laplace_approximate"])
def test_a_matrix_of_bounds_gives_the_noise_of_its_entries(name):
    bounds = np.array([[1.0, 2.0, 0.5], [0.1, 3.0, 1.0]])
    claim = {"epsilon": 1.0, "delta": 1e-5}
    made, flat = (getattr(inid, name)(profile=one, **claim) for one in (bounds, bounds.reshape(-1)))
    assert made.law.scales.tolist() == flat.law.scales.tolist()
    assert made.shape == (2, 3)
    assert made.release(np.zeros((2, 3))).value.shape == (2, 3)
    assert inid.gini(bounds) == inid.gini(bounds.reshape(-1))


def test_tvg_takes_the_matrices_of_the_utility():
    w, turn = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]]), np.array([[0.6, 0.8], [-0.8, 0.6]])
    claim = {"shape": (2, 3), "sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-5}
    plain = tvg(**claim, weights=[w, np.ones(3)])
    assert plain.law.second_moment == tvg(**claim, weights=[np.square(w).sum(axis=0), np.ones(3)]).law.second_moment
    turned = tvg(**claim, weights=[w, np.ones(3)], directions=[turn, None])
    vector = tvg(**claim, weights=[np.square(w @ turn).sum(axis=0), np.ones(3)], directions=[turn, None])
    assert turned.law.second_moment == vector.law.second_moment
    with pytest.raises(ValueError, match="weights must be"):
        tvg(**claim, weights=[np.ones((2, 5)), np.ones(3)])
