"""Mechanisms for whole numbers could not be audited (the audit releases floats), and a measurement made of one for
OpenDP failed when it was called."""

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import to_opendp


@pytest.fixture(scope="module")
def mechanism():
    region = sdp.L1(1.0, dim=2, adjacency="add-remove").of_integers()
    return sdp.calibrate("laplace", region, epsilon=1.0, delta=0.0)


def test_an_audit_releases_whole_numbers(mechanism):
    found = sdp.audit.mechanism(mechanism, samples=4000, seed=1)
    assert not found.violation
    assert sdp.audit.distribution(mechanism, samples=2000, seed=1).passed
    with pytest.raises(TypeError, match="whole numbers"):
        sdp.audit.mechanism(mechanism, neighbours=(np.zeros(2), np.array([0.5, 0.0])), samples=4000, seed=1)


def test_opendp_is_not_handed_what_it_cannot_call(mechanism):
    pytest.importorskip("opendp")
    with pytest.raises(TypeError, match="whole numbers"):
        to_opendp(mechanism, delta=0.0)
