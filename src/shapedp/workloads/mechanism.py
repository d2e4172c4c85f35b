"""Noise for a workload: turned tables with Gaussian noise, from which every answer is rebuilt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.documents import decode, encode
from shapedp.boundary.values import boolean, plain
from shapedp.mechanisms.base import Rng
from shapedp.noise.hull import beyond
from shapedp.noise.request import Request
from shapedp.noise.rotation import Mode
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import count, entries, nonnegative, vector
from shapedp.numerics.modes import outer, replace_mode
from shapedp.numerics.outward import ABOVE_WIDE
from shapedp.privacy import Bracket, GaussianLoss
from shapedp.sampling import Source, rounded_sum
from shapedp.sensitivity import Adjacency, Box
from shapedp.workloads.base import WorkloadClaim
from shapedp.workloads.blocks import (
    Block,
    Family,
    Part,
    Strategy,
    Tables,
    contrast_lengths,
    contrasted,
    outermost,
    table_by,
)
from shapedp.workloads.release import WorkloadRelease
from shapedp.workloads.spent import grid_of, mu_bounds, slack
from shapedp.workloads.strategy import strategy
from shapedp.workloads.variances import cell_variances, total_variance
from shapedp.workloads.workload import Term, Workload

GAP = 1e-4
RECORDS = 1 << 24
_SPAN = 400  # bits of all scales of a family together: their squares neither overflow nor vanish


@dataclass(frozen=True, eq=False)
class WorkloadMechanism(WorkloadClaim):
    """The answers of a workload with Gaussian noise, for the claim (epsilon, delta).

    Guarantee: `loss` is computed from the families of blocks alone. What leaves is a function of R x + s z, where x
    are exact tables of counts, R the matrices kept here and s z independent Gaussian noise, drawn and rounded
    exactly; R x is computed in fixed point, and what its rounding adds to mu is counted.

    A person with at most k = `workload.max_rows` rows has k times the mu of one row, under every neighbour relation.
    Let V hold what one row can add, and 0 for a row outside the domains. A person who comes, goes or is zeroed moves a
    sum of k elements of V; one who is replaced moves the sum of k differences v_i - w_i of elements of V. By the
    triangle inequality neither is longer than k times the longest of one row, and k rows that are alike reach it.
    Where a person has rows in at most g different cells, k in each, the sum is k times one of g vectors of different
    cells: see `spent.several_cells`.

    Parameters
    ----------
    workload: the queries.
    families: the noise; see `workloads.strategy`.
    epsilon, delta, adjacency: the claim.
    least: a lower bound on the weighted squared error of any Gaussian noise with mu = 1 for one row, as stated, or 0.
    records: a public bound on the number of records.

    Examples
    --------
    >>> m = Workload({"age": 3, "sex": ["F", "M"]}).marginals(0, 1).calibrate(epsilon=1.0, delta=1e-6)
    >>> m.certificate.verdict, m.optimality.upper < 1.0001
    ('certified', True)
    """

    kind: ClassVar[str] = "workload"
    phrase: ClassVar[str] = "Gaussian, shaped to all queries together; answers agree where they overlap"
    workload: Workload
    families: tuple[Family, ...]
    epsilon: float
    delta: float
    adjacency: Adjacency
    least: float = 0.0
    records: int = RECORDS

    def __post_init__(self) -> None:
        plain(self)
        object.__setattr__(self, "families", entries("families", self.families))
        given: tuple[object, ...] = (self.workload, *self.families)
        if len(given) < 2 or not all(isinstance(one, Family if n else Workload) for n, one in enumerate(given)):
            raise TypeError("a workload's mechanism needs a Workload and the families of its noise")
        super().__post_init__()
        self._plain(nonnegative, "least")
        if self.workload.schema.measures and self.records > 1 << 32:
            raise ValueError(f"sums of measures are exact for at most 2^32 records, got {self.records}")
        _usual(self.families)

    @property
    def exchange(self) -> bool:
        """Whether a neighbour replaces a record."""
        return self.adjacency == "replace"

    @cached_property
    def _unrounded(self) -> tuple[float, float]:
        return mu_bounds(self.families, self.workload.schema, self.exchange, self.workload)

    @cached_property
    def loss(self) -> GaussianLoss:
        """mu = the longest difference of neighbours, and what rounding of the turned tables adds."""
        low, high = self._unrounded
        more = slack(self.families, self.workload.schema, self.records)
        return GaussianLoss(high + more, max(low - more, 0.0)).under(self.adjacency)

    @cached_property
    def _plan(self) -> Strategy:
        return Strategy(self.families, self.least)

    def _total(self, term: Term) -> float:
        return total_variance(self._plan, term, self.workload)

    @cached_property
    def optimality(self) -> Bracket | None:
        """A proved bracket of the weighted error over the least of any Gaussian noise that meets the claim.

        None where the plan states no bound. What a file states is not trusted: the bound is computed anew.
        """
        if not self.least or not self.proved or self.workload.max_groups is not None:
            return None
        far = beyond(Request(Box([1.0]), self.epsilon, self.delta))
        least = self.proved * self.workload.max_rows**2
        return Bracket(1.0, max(self.weighted_error * far**2 / least * ABOVE_WIDE, 1.0))

    @cached_property
    def proved(self) -> float:
        """`least` as this program finds it, whatever a file says; `calibrate` puts its own here."""
        return strategy(self.workload, gap=GAP / 2, exchange=self.exchange).least

    def variances(self, term: Term) -> Floats:
        return self.covariances(term)

    def covariances(self, term: Term, other: Term | None = None) -> Floats:
        """The variance of every answer of a group, or its covariance with that of another by the same attributes."""
        special = [axis for family in self.families for axis in family.axes]
        shape = [factor.count if place in special else 1 for place, factor in term.factors]
        found = cell_variances(self._plan, term, self.workload, other).reshape(shape)
        return np.broadcast_to(found, term.shape)

    def needed(self) -> list[tuple[int, ...]]:
        """The attributes of the tables that must be counted: none lies within another."""
        return outermost(tuple(sorted((*block, *family.axes))) for family in self.families for block in family.blocks)

    def release(self, x: Any, *, rng: Rng = None, unsafe: bool = False) -> WorkloadRelease:
        """The answers with noise. x is a table: a frame, Arrow data, the path of a file, or tables counted before."""
        from shapedp.workloads.counting import counted_within

        if not boolean("unsafe", unsafe):
            self.certificate.require()
        tables = counted_within(self, x)
        exact = [self._table(tables.tables, family, block) for family in self.families for block in family.blocks]
        flat = np.concatenate([one.reshape(-1) for one in exact])
        drawn = self._drawn(flat, lambda source: self._noisy(exact, source), rng, unsafe)
        return WorkloadRelease(self, self._cut(drawn.value), tables.stated(drawn.certificate), drawn.unsafe)

    def _table(self, tables: Tables, family: Family, block: Block) -> Floats:
        """The counts by the attributes of a block: (n_1, ..., n_k, coordinates of part 1, ...)."""
        sizes, units = self.workload.schema.sizes, self.workload.schema.units()
        wanted = (*block, *family.axes)
        values = any(part.values for part in family.parts)
        cells = table_by(tables, wanted)
        exact = cells * units if values else cells[..., 0].astype(np.float64)
        return np.ascontiguousarray(exact.reshape([sizes[k] for k in block] + [part.size for part in family.parts]))

    def _noisy(self, exact: Sequence[Floats], source: Source) -> NDArray[Any]:
        """Every block turned, and noise added."""
        places = [(family, k) for family in self.families for k in range(len(family.blocks))]
        found = [self._block(x, *place, source).reshape(-1) for x, place in zip(exact, places, strict=True)]
        return np.concatenate(found)

    def _block(self, x: Floats, family: Family, place: int, source: Source) -> Floats:
        """The contrasts of a table with noise, over their lengths; the table is turned first along its other axes."""
        schema, block, modes = self.workload.schema, family.blocks[place], family.modes_of(place)
        grid = grid_of(family, place, schema, self.records)
        work = np.rint(x / grid)
        for axis, mode in enumerate(modes, start=len(block)):
            if mode.rotation is not None:
                replace_mode(work, work.shape, axis, mode.rotation.turn)
        most = float(np.abs(work).sum(axis=tuple(range(len(block)))).max())
        if not most * math.prod(schema.sizes[k] - 1 for k in block) < 2.0**63:
            raise ValueError("the tables hold more than the records that the plan was made for")
        whole = work.astype(np.int64)
        for axis in range(len(block)):
            whole = contrasted(whole, axis)
        lengths = outer([contrast_lengths(schema.sizes[k]) for k in block])
        scale = np.multiply.outer(lengths * float(family.sigma[place]), outer([mode.scales for mode in modes]))
        noisy = rounded_sum(whole.reshape(-1) * grid, "gaussian", scale.reshape(-1), None, source)
        return np.asarray(noisy).reshape(scale.shape) / lengths.reshape(*lengths.shape, *[1] * len(modes))

    def _cut(self, flat: NDArray[Any]) -> list[list[Floats]]:
        """The released coefficients, by family and block."""
        sizes, found, start = self.workload.schema.sizes, [], 0
        for family in self.families:
            rows = []
            for block in family.blocks:
                shape = [sizes[k] - 1 for k in block] + [part.size for part in family.parts]
                rows.append(flat[start : start + math.prod(shape)].reshape(shape))
                start += math.prod(shape)
            found.append(rows)
        return found

    def _described(self) -> dict[str, Any]:
        return {**self._claim(), "least": self.least, "families": [_written(family) for family in self.families]}

    @classmethod
    def _read(cls, data: dict[str, Any]) -> dict[str, Any]:
        claim = cls._claim_from(data)
        families = tuple(_read(one, claim["workload"]) for one in data["families"])
        _fits(families, claim["workload"])
        return {**claim, "families": families, "least": data["least"]}


def _usual(families: tuple[Family, ...]) -> None:
    """Refuses scales whose squares, or products of squares, could leave the range of floats: mu would be wrong."""
    for family in families:
        ends = [np.abs(np.log2(family.sigma)).max(initial=0.0)]
        ends += [max(np.abs(np.log2(mode.scales)).max() for mode in part.modes) for part in family.parts]
        if not sum(ends) <= _SPAN:
            raise ValueError("the noise's scales must lie between 2^-400 and 2^400: claim a usual epsilon")


def _written(family: Family) -> dict[str, Any]:
    lengths = np.array([len(block) for block in family.blocks], dtype=np.float64)
    flat = np.array([k for block in family.blocks for k in block], dtype=np.float64)
    return {
        "parts": [
            {"axes": list(part.axes), "values": part.values, "modes": [mode.to_json() for mode in part.modes]}
            for part in family.parts
        ],
        "lengths": encode(lengths),
        "attributes": encode(flat),
        "sigma": encode(family.sigma),
        "mode": encode(family.mode.astype(np.float64)),
    }


def _read(data: Any, workload: Workload) -> Family:
    """A family from a description, everything checked."""
    parts = []
    for one in data["parts"]:
        if not isinstance(one["values"], bool):
            raise TypeError("values must be true or false")
        axes = tuple(count("an axis", axis, least=0) for axis in one["axes"])
        parts.append(Part(axes, one["values"], tuple(Mode.from_json(mode) for mode in one["modes"])))
    lengths, flat = (
        _whole(name, decode(name, data[name]) if data[name] else np.empty(0)) for name in ("lengths", "attributes")
    )
    sigma = vector("sigma", decode("sigma", data["sigma"]), least=0.0, strict=True)
    mode = _whole("mode", decode("mode", data["mode"]))
    if not lengths.size == sigma.size == mode.size or int(lengths.sum()) != flat.size:
        raise ValueError("the blocks of a family do not fit together")
    ends = np.cumsum(lengths)
    blocks = tuple(tuple(flat[end - size : end].tolist()) for end, size in zip(ends, lengths, strict=True))
    return Family(tuple(parts), blocks, frozen(sigma), mode)


def _whole(name: str, values: Floats) -> NDArray[np.int64]:
    if values.size and not ((values >= 0) & (values % 1 == 0) & (values < 2**31)).all():
        raise ValueError(f"{name} must hold whole numbers")
    return values.astype(np.int64)


def _fits(families: tuple[Family, ...], workload: Workload) -> None:
    """Refuses families whose axes and sizes are not those of the schema."""
    sizes, wide = workload.schema.sizes, 1 + len(workload.schema.measures)
    for family in families:
        special = family.axes
        for part in family.parts:
            if any(axis >= len(sizes) for axis in part.axes) or not part.modes:
                raise ValueError("a part names an attribute that does not exist")
            size = math.prod(sizes[axis] for axis in part.axes) * (wide if part.values else 1)
            if any(mode.size != size or mode.singular for mode in part.modes):
                raise ValueError("a mode has another size than its part, or no noise")
        many = max(len(part.modes) for part in family.parts)
        for block, mode in zip(family.blocks, family.mode, strict=True):
            plain = [k for k in block if k < len(sizes) and k not in special and sizes[k] > 1]
            if tuple(sorted(set(plain))) != block or mode >= many:
                raise ValueError("a block names an attribute that does not exist, or twice")
        if len(set(special)) < len(special) or len(family.index) < len(family.blocks):
            raise ValueError("a family names an attribute or a block twice")
        if len(family.parts) > 1 and (many > 1 or any(part.values for part in family.parts)):
            raise ValueError("parts beside others have one mode each, and no values")
    if not families or len({tuple(sorted(family.axes)) for family in families}) < len(families):
        raise ValueError("families must differ in their special attributes")
