"""What the two mechanisms for a workload share, and what their releases do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from shapedp.boundary.values import plain
from shapedp.mechanisms.base import Claimed
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, finite, one_of, positive, probability
from shapedp.sensitivity import ADJACENCIES, Adjacency
from shapedp.workloads.workload import Term, Workload, workload_from_json


class WorkloadClaim(Claimed):
    """A mechanism that answers a workload for the claim (epsilon, delta), about at most `records` records."""

    workload: Workload
    adjacency: Adjacency
    records: int

    def __post_init__(self) -> None:
        self._plain(positive, "epsilon")
        self._plain(probability, "delta")
        one_of("adjacency", self.adjacency, ADJACENCIES)
        self._plain(count, "records")
        if self.records > 1 << 40:
            raise ValueError(f"records must be at most 2^40, got {self.records}")

    def term(self, name: Any) -> Term:
        """A group of queries by name."""
        return self.workload.term(name)

    @abstractmethod
    def variances(self, term: Term) -> Floats:
        """The variance of every answer of a group."""

    @abstractmethod
    def _total(self, term: Term) -> float:
        """The sum of these."""

    def standard_error(self, name: str) -> Floats:
        """The standard error of every answer of a group, in its shape; known before any record is read."""
        return np.sqrt(self.variances(self.term(name)))

    @cached_property
    def expected_squared_error(self) -> float:
        """E |noise|^2 over all answers."""
        return sum(self._total(term) for term in self.workload.terms)

    @cached_property
    def weighted_error(self) -> float:
        """The same with the weights of the queries."""
        return sum(term.weight * self._total(term) for term in self.workload.terms)

    def _claim(self) -> dict[str, Any]:
        """The claim and the workload, described."""
        names = ("epsilon", "delta", "adjacency", "records")
        return {name: getattr(self, name) for name in names} | {"workload": self.workload.to_json()}

    @staticmethod
    def _claim_from(data: Mapping[str, Any]) -> dict[str, Any]:
        """What `_claim` described, by the names of fields."""
        names = ("epsilon", "delta", "adjacency", "records")
        return {name: data[name] for name in names} | {"workload": workload_from_json(data["workload"])}


class ReleasedWorkload(ABC):
    """Released answers of a workload, by the names of its groups. A subclass is a dataclass with a `mechanism`."""

    mechanism: Any

    def __post_init__(self) -> None:
        plain(self)

    @abstractmethod
    def __getitem__(self, name: str) -> Any:
        """The answers of a group of queries, in its shape."""

    def __iter__(self) -> Iterator[str]:
        return (term.name for term in self.mechanism.workload.terms)

    def standard_error(self, name: str) -> Floats:
        """The standard error of every answer of a group."""
        found: Floats = self.mechanism.standard_error(name)
        return found

    def _weights(self, query: Mapping[str, Any]) -> Iterator[tuple[Term, Floats]]:
        """The groups of a linear function of the answers, and the weights of each, checked."""
        if not query:
            raise ValueError("name the groups of queries and the weights of their answers")
        for name, given in query.items():
            term = self.mechanism.term(name)
            weights = finite(f"the weights of {name!r}", given)
            if weights.shape != term.shape:
                raise ValueError(f"the weights of {name!r} must have shape {term.shape}, got {weights.shape}")
            yield term, weights
