"""A user's class that named its kind entered the table of our own, whose certificates a ledger takes as computed."""

import shapedp as sdp
from shapedp.mechanisms import Additive
from shapedp.mechanisms.certify import KINDS


def test_a_class_from_elsewhere_is_not_ours():
    class Mine(Additive):
        kind = "additive"

    class Other(Additive):
        kind = "other"

    assert KINDS["additive"] is Additive
    assert "other" not in KINDS
    made = sdp.calibrate("gaussian", sdp.L2(1.0, dim=2), epsilon=1.0, delta=1e-6)
    assert sdp.verify(made.certificate).verdict == "certified"
