"""To and from OpenDP measurements."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.interchange.events import zcdp_loss
from shapedp.mechanisms import Additive
from shapedp.numerics.checks import nonnegative, probability
from shapedp.privacy import Loss, loss_of
from shapedp.privacy.losses.stated import StatedLoss
from shapedp.sensitivity import L1, L2

_RELATIONS = {
    "SymmetricDistance()": "add-remove",
    "InsertDeleteDistance()": "add-remove",
    "ChangeOneDistance()": "replace",
    "HammingDistance()": "replace",
}


def _library() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise ImportError("OpenDP is needed for this: pip install 'shapedp[opendp]'") from error
    return dp


def to_opendp(mechanism: Additive, *, delta: float) -> Any:
    """An OpenDP measurement that releases a list of floats through a mechanism over an L2 or an L1 ball.

    Guarantee: its privacy map answers (epsilon, delta) with the least certified epsilon of the same noise at the
    distance asked for; delta is fixed (a function of ours cannot hand OpenDP a whole profile), 0.0 for pure DP.
    The functions are ours, so OpenDP wants its features "contrib" and "honest-but-curious" enabled.

    Example:
        >>> import opendp.prelude as dp
        >>> import shapedp as sdp
        >>> dp.enable_features("contrib", "honest-but-curious")
        >>> ball = sdp.L2(1.0, dim=2, adjacency="add-remove")
        >>> gaussian = sdp.calibrate("gaussian", ball, epsilon=1.0, delta=1e-6)
        >>> len(to_opendp(gaussian, delta=1e-6)([3.0, 4.0]))
        2
    """
    dp, delta = _library(), probability("delta", delta)
    ball = mechanism.sensitivity
    if not isinstance(ball, L2 | L1) or getattr(ball, "scales", None) is not None:
        raise TypeError("OpenDP knows L2 and L1 distances: other sensitivity sets have no metric there")
    if ball.whole:
        raise TypeError(
            "the mechanism releases whole numbers only, the measurement a list of floats: calibrate it "
            "without of_integers()"
        )
    mechanism.certificate.require()

    def privacy_map(distance: float) -> tuple[float, float]:
        if nonnegative("distance", distance) == 0:
            return 0.0, 0.0
        return loss_of(mechanism.law, replace_radius(ball, float(distance))).epsilon(delta).upper, delta

    return dp.m.make_user_measurement(
        dp.vector_domain(dp.atom_domain(T=float, nan=False), size=mechanism.law.dim),
        dp.l2_distance(T=float) if isinstance(ball, L2) else dp.l1_distance(T=float),
        dp.approximate(dp.max_divergence()),
        lambda x: mechanism.release(np.asarray(x, dtype=np.float64)).value.tolist(),
        privacy_map,
        TO="Vec<f64>",
    )


def replace_radius(ball: L2 | L1, radius: float) -> L2 | L1:
    """The ball of another radius."""
    return type(ball)(radius, shape=ball.shape, adjacency=ball.adjacency)


def from_opendp(measurement: Any, distance: Any) -> Loss:
    """What an OpenDP measurement states of itself for inputs at a distance, as a loss to compose with ours.

    Guarantee: as good as the measurement's privacy map, which bounds from above: the lower ends are 0. Pure and
    approximate DP, zCDP and privacy profiles. At a distance of 1 between data sets the loss is labelled with their
    neighbour relation; otherwise the user vouches for it.

    Example:
        >>> import opendp.prelude as dp
        >>> dp.enable_features("contrib")
        >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        >>> round(from_opendp(dp.m.make_laplace(*space, scale=2.0), 1.0).epsilon(0.0).upper, 3)
        0.5
    """
    _library()
    one = isinstance(distance, numbers.Real) and distance == 1
    near = _RELATIONS.get(str(measurement.input_metric)) if one else None
    stated, measure = measurement.map(distance), str(measurement.output_measure)
    if measure == "MaxDivergence":
        return BareLoss(stated, 0.0, attained=False, adjacency=near)
    if measure == "Approximate(MaxDivergence)":
        return BareLoss(stated[0], stated[1], attained=False, adjacency=near)
    if measure == "ZeroConcentratedDivergence":
        return zcdp_loss(stated, adjacency=near)
    if measure == "SmoothedMaxDivergence":
        return StatedLoss(stated.delta, adjacency=near)
    raise TypeError(
        f"the measure {measure} is not understood here: cast the measurement to one of pure, approximate "
        "or zero-concentrated DP"
    )
