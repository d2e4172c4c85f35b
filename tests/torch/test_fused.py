"""Norms and sums on the matrix units against float64, and rows of tables that several positions add to."""

from __future__ import annotations

import pytest
import torch
from tests.torch.models import Tied as TiedModel
from torch import Tensor

from shapedp.torch import gpu
from shapedp.torch.fused import Alike, Factors, Fused, Rows
from shapedp.torch.gradients import added
from shapedp.torch.single import Scattered

needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available() or gpu.kernels() is None, reason="needs a CUDA device and Triton"
)
KINDS = [torch.float32, torch.bfloat16, torch.float16]
SIZES = [(3, 20, 70, 40), (5, 256, 768, 130), (4, 100, 333, 257), (2, 7, 16, 300)]


def factors(n: int, positions: int, outs: int, ins: int, kind: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Two factors on the GPU and the gradients they stand for, in float64."""
    torch.manual_seed(0)
    left = (torch.randn(n, positions, outs, device="cuda") * 1e-3).to(kind)
    right = torch.randn(n, positions, ins, device="cuda").to(kind)
    return left, right, torch.bmm(left.double().transpose(1, 2), right.double())


def relative(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@needs_gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", SIZES)
def test_norms_and_sums_are_those_of_the_products(sizes: tuple[int, int, int, int], kind: torch.dtype) -> None:
    left, right, exact = factors(*sizes, kind)
    piece = Fused(Factors(left, right))
    ratio = piece.squared_norms() / piece.dense().double().flatten(1).square().sum(1)
    assert (ratio >= 1).all()
    assert (ratio < 1 + 2.0**-15).all()
    assert relative(piece.dense(), exact) < 1e-6
    weights = torch.rand(len(left), dtype=torch.float64, device="cuda")
    weights[0] = 0.0
    assert relative(piece.weighted_sum(weights), (exact * weights[:, None, None]).sum(0)) < 2e-6


@needs_gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", SIZES)
def test_what_is_added_is_what_was_measured_to_the_last_bit(
    sizes: tuple[int, int, int, int], kind: torch.dtype
) -> None:
    """The certificate's premise on matrix instructions: both kernels' tiles, for a record whose weight becomes 1."""
    left, right, _ = factors(*sizes, kind)
    tiles = gpu.tiles(left, right)
    products = gpu.tile_products(tiles)
    for record in range(len(left)):
        weights = torch.zeros(len(left), dtype=torch.float64, device="cuda")
        weights[record] = 1 / (1 - 2.0**-22) / (1 if tiles.back is None else tiles.back[record])
        total = torch.empty(tiles.outs * tiles.ins, dtype=torch.float64, device="cuda")
        gpu.tile_sums(tiles, weights, total)
        assert bool((total.view(tiles.outs, tiles.ins) == products[record].double()).all())


@needs_gpu
def test_a_record_that_is_not_finite_adds_nothing() -> None:
    left, right, exact = factors(3, 20, 300, 300, torch.float32)
    left[1, 0, 0] = torch.nan
    piece = Fused(Factors(left, right))
    assert piece.squared_norms().isfinite().tolist() == [True, False, True]
    weights = torch.tensor([0.5, 0.0, 2.0], dtype=torch.float64, device="cuda")
    assert relative(piece.weighted_sum(weights), exact[0] * 0.5 + exact[2] * 2) < 2e-6


@needs_gpu
def test_rows_of_very_different_size_lose_none() -> None:
    """One row of 1 and 999 of 2^-30: added in float32 one by one, the small ones would vanish."""
    left = torch.full((1000, 16, 300), 2.0**-30, device="cuda")
    left[0] = 1.0
    right = torch.full((1000, 16, 300), 1 / 16, device="cuda")
    total = Fused(Factors(left, right)).weighted_sum(torch.ones(1000, dtype=torch.float64, device="cuda"))
    assert float((total / (1 + 999 * 2.0**-30) - 1).abs().max()) < 2.0**-21


@needs_gpu
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_table_that_is_also_a_weight(kind: torch.dtype) -> None:
    n, positions, rows, width = 3, 40, 333, 260
    left, right, exact = factors(n, positions, rows, width, kind)
    index = torch.randint(0, 50, (n, positions), device="cuda")
    table = Scattered(index, torch.randn(n, positions, width, device="cuda") * 1e-2, rows)
    exact = exact + table.dense()
    piece = added([table, Fused(Factors(left, right))])
    ratio = piece.squared_norms() / exact.flatten(1).square().sum(1)
    assert (ratio > 1 - 1e-6).all()
    assert (ratio < 1 + 2e-5).all()
    weights = torch.rand(n, dtype=torch.float64, device="cuda")
    assert relative(piece.weighted_sum(weights), (exact * weights[:, None, None]).sum(0)) < 2e-6


@needs_gpu
def test_rows_that_are_laid_out() -> None:
    torch.manual_seed(0)
    values = torch.randn(40, 3000, device="cuda")
    values[3] = torch.nan
    weights = torch.rand(40, dtype=torch.float64, device="cuda")
    weights[3] = 0.0
    total = torch.empty(3000, dtype=torch.float64, device="cuda")
    Rows(values).put([total], weights[None])
    values[3] = 0.0
    assert float((total - weights @ values.double()).abs().max()) < 1e-13
    assert relative(Rows(values).squared_norms(), values.double().square().sum(1)) < 1e-14
    both = Alike(torch.stack([values, 2 * values]))
    totals = [torch.empty_like(total), torch.empty_like(total)]
    both.put(totals, torch.stack([weights, weights]))
    assert float((totals[1] - 2 * total).abs().max()) < 1e-13
    assert relative(both.squared_norms()[40:], 4 * values.double().square().sum(1)) < 1e-14


@pytest.mark.parametrize("positions", [0, 1, 7, 60])
def test_rows_of_a_table_are_summed_once_per_record(positions: int) -> None:
    torch.manual_seed(0)
    index, values = torch.randint(0, 5, (4, positions)), torch.randn(4, positions, 3)
    piece = Scattered(index, values, 9)
    laid = piece.dense().double()
    assert torch.allclose(piece.squared_norms(), laid.flatten(1).square().sum(1), rtol=1e-6)
    weights = torch.tensor([0.5, 0.0, 1.0, 2.0], dtype=torch.float64)
    assert torch.allclose(piece.weighted_sum(weights), (laid * weights[:, None, None]).sum(0), rtol=1e-6, atol=1e-6)
    if positions:
        values[1] = torch.nan
        assert Scattered(index, values, 9).weighted_sum(weights).isfinite().all()


def test_a_tied_table_shares_one_place() -> None:
    from shapedp.torch import Layout
    from shapedp.torch.recorder import sites_of
    from shapedp.torch.rules import rule_for

    model = TiedModel()
    sites = sites_of(model, Layout.of(model), rule_for)
    assert [site.places["weight"] for site in sites] == [0, 0]
