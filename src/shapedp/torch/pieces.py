"""Per-record gradients of one parameter, laid out only where that is needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch

Tensor = torch.Tensor
_SURE = 2.0**-44  # relative rounding of a Gram product in float64, with room


class Piece(ABC):
    """Gradients g_1 ... g_n of one parameter."""

    on_gpu: bool = False

    @abstractmethod
    def squared_norms(self) -> Tensor:
        """|g_i|_2^2, never below the truth by more than rounding relative to |g_i|_2^2 itself."""

    @abstractmethod
    def weighted_sum(self, weights: Tensor) -> Tensor:
        """sum_i w_i g_i, in the parameter's shape."""

    @abstractmethod
    def dense(self) -> Tensor:
        """All gradients, shape (n, *shape)."""

    @abstractmethod
    def without(self, bad: Tensor) -> Piece:
        """The same with zeros for the records of the mask, whatever they hold."""


@dataclass(frozen=True)
class Dense(Piece):
    """Gradients laid out, shape (n, *shape)."""

    values: Tensor

    @property
    def on_gpu(self) -> bool:  # type: ignore[override]
        return self.values.is_cuda

    def squared_norms(self) -> Tensor:
        norms: Tensor = torch.linalg.vector_norm(self.values.flatten(1), dim=1)
        return norms.square()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        return (weights @ self.values.flatten(1)).reshape(self.values.shape[1:])

    def dense(self) -> Tensor:
        return self.values

    def without(self, bad: Tensor) -> Dense:
        return Dense(_cleared(self.values, bad))


@dataclass(frozen=True)
class Outer(Piece):
    """g_i = left_i right_i^T: the weight of a linear layer seen once per record."""

    left: Tensor
    right: Tensor

    @property
    def on_gpu(self) -> bool:  # type: ignore[override]
        return self.left.is_cuda

    def squared_norms(self) -> Tensor:
        norms: Tensor = torch.linalg.vector_norm(self.left, dim=1) * torch.linalg.vector_norm(self.right, dim=1)
        return norms.square()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        return (self.left * weights[:, None]).T @ self.right

    def dense(self) -> Tensor:
        return self.left[:, :, None] * self.right[:, None, :]

    def without(self, bad: Tensor) -> Outer:
        return Outer(_cleared(self.left, bad), _cleared(self.right, bad))


@dataclass(frozen=True)
class Products(Piece):
    """g_i = sum_t left_it right_it^T over positions t: the weight of a wide linear layer on sequences.

    Norms come from Gram matrices, |g_i|^2 = sum_ts <left_t, left_s> <right_t, right_s>, in float64: terms may cancel,
    so a bound on the rounding of the sum, relative to (sum_t |left_t| |right_t|)^2, is added.
    """

    left: Tensor  # (n, positions, out)
    right: Tensor  # (n, positions, in)

    def squared_norms(self) -> Tensor:
        left, right = self.left.double(), self.right.double()
        grams = torch.bmm(left, left.transpose(1, 2)) * torch.bmm(right, right.transpose(1, 2))
        reach: Tensor = (torch.linalg.vector_norm(left, dim=2) * torch.linalg.vector_norm(right, dim=2)).sum(1)
        return (grams.sum((1, 2)).clamp(min=0.0) + _SURE * reach.square()).to(self.left.dtype)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        return (self.left * weights[:, None, None]).flatten(0, 1).T @ self.right.flatten(0, 1)

    def dense(self) -> Tensor:
        return torch.bmm(self.left.transpose(1, 2), self.right)

    def without(self, bad: Tensor) -> Products:
        return Products(_cleared(self.left, bad), _cleared(self.right, bad))


@dataclass(frozen=True)
class Scattered(Piece):
    """Gradients of rows of a table: record i adds values_it to the row index_it."""

    index: Tensor  # (n, positions)
    values: Tensor  # (n, positions, width)
    rows: int

    def squared_norms(self) -> Tensor:
        n, positions = self.index.shape
        record = torch.arange(n, device=self.index.device)[:, None]
        keys, place = torch.unique((record * self.rows + self.index).reshape(-1), return_inverse=True)
        sums = self.values.new_zeros(len(keys), self.values.shape[2])
        sums.index_add_(0, place, self.values.reshape(n * positions, -1))
        return self.values.new_zeros(n).index_add_(0, keys // self.rows, sums.square().sum(1))

    def weighted_sum(self, weights: Tensor) -> Tensor:
        total = self.values.new_zeros(self.rows, self.values.shape[2])
        return total.index_add_(0, self.index.reshape(-1), (self.values * weights[:, None, None]).flatten(0, 1))

    def dense(self) -> Tensor:
        n = self.index.shape[0]
        total = self.values.new_zeros(n * self.rows, self.values.shape[2])
        record = torch.arange(n, device=self.index.device)[:, None]
        total.index_add_(0, (record * self.rows + self.index).reshape(-1), self.values.flatten(0, 1))
        return total.reshape(n, self.rows, -1)

    def without(self, bad: Tensor) -> Scattered:
        return Scattered(self.index, _cleared(self.values, bad), self.rows)


def added(pieces: list[Piece]) -> Piece:
    """The gradients of a parameter that one pass used several times."""
    if len(pieces) == 1:
        return pieces[0]
    return Dense(torch.stack([piece.dense() for piece in pieces]).sum(0))


def _cleared(values: Tensor, bad: Tensor) -> Tensor:
    return torch.where(bad.reshape(-1, *(1,) * (values.ndim - 1)), torch.zeros_like(values), values)
