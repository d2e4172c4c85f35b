"""Laws from JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shapedp.boundary.documents import LacksFieldError, described
from shapedp.noise.base import Law
from shapedp.noise.gaussian import Gaussian
from shapedp.noise.laplace import DiscreteLaplace, Laplace
from shapedp.noise.mixed import Mixed
from shapedp.noise.radial import Radial
from shapedp.noise.spread import Spread
from shapedp.noise.staircase import L1Staircase, Staircase
from shapedp.noise.tensor import TensorGaussian


def _spread(make: Callable[..., Law]) -> Callable[[dict[str, Any]], Law]:
    def read(data: dict[str, Any]) -> Law:
        spread = Spread.from_json(data)
        one = spread.sizes is None and isinstance(data["scale"], int | float)
        return make(float(spread.values[0]) if one else spread.values, spread.dim, sizes=spread.sizes)

    return read


READERS: dict[str, Callable[[dict[str, Any]], Law]] = {
    Gaussian.kind: _spread(Gaussian),
    Laplace.kind: _spread(Laplace),
    DiscreteLaplace.kind: DiscreteLaplace.from_json,
    TensorGaussian.kind: TensorGaussian.from_json,
    Radial.kind: Radial.from_json,
    Mixed.kind: Mixed.from_json,
    Staircase.kind: Staircase.from_json,
    L1Staircase.kind: L1Staircase.from_json,
}


@described
def law_from_json(data: Any) -> Law:
    """The law that `to_json` wrote."""
    kind = data.get("law") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in READERS:
        raise ValueError(f"law must be one of {', '.join(READERS)}, got {kind!r}")
    try:
        return READERS[kind](data)
    except (KeyError, LacksFieldError) as missing:
        raise ValueError(f"law {kind!r} lacks the field {missing.args[0]!r}") from None
