"""The names Opacus uses, for code that was written for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from shapedp.numerics.checks import one_of
from shapedp.torch.clips import Clip, Flat, PerLayer
from shapedp.torch.loader import PoissonLoader
from shapedp.torch.private import make_private
from shapedp.torch.training import Training

Private = tuple[nn.Module, torch.optim.Optimizer, PoissonLoader]


class PrivacyEngine:
    """`from shapedp.torch import PrivacyEngine` in place of `from opacus import PrivacyEngine`.

    The methods take Opacus' arguments, and any other of `make_private` besides (`noise`, `clip`, ...). `accountant`
    is ignored: epsilon is always the certified one. Noise is always secure unless `rng` is passed.
    """

    def __init__(self, *, accountant: str = "prv", secure_mode: bool = True) -> None:
        self.training: Training | None = None

    def make_private(
        self,
        *,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        data_loader: DataLoader[Any],
        noise_multiplier: float,
        max_grad_norm: float | Sequence[float],
        clipping: str = "flat",
        poisson_sampling: bool = True,
        **options: Any,
    ) -> Private:
        """Private counterparts with a given noise multiplier."""
        return self._make(
            module, optimizer, data_loader, max_grad_norm, clipping, poisson_sampling,
            options | {"noise_multiplier": noise_multiplier},
        )  # fmt: skip

    def make_private_with_epsilon(
        self,
        *,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        data_loader: DataLoader[Any],
        target_epsilon: float,
        target_delta: float,
        epochs: int,
        max_grad_norm: float | Sequence[float],
        clipping: str = "flat",
        poisson_sampling: bool = True,
        **options: Any,
    ) -> Private:
        """Private counterparts with the least noise that meets the target."""
        claim = {"epsilon": target_epsilon, "delta": target_delta, "epochs": epochs}
        return self._make(module, optimizer, data_loader, max_grad_norm, clipping, poisson_sampling, options | claim)

    def get_epsilon(self, delta: float) -> float:
        """The upper end of the epsilon spent so far."""
        if self.training is None:
            raise RuntimeError("nothing is private yet: call make_private first")
        return self.training.epsilon(delta).upper

    def _make(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        loader: DataLoader[Any],
        norm: float | Sequence[float],
        clipping: str,
        poisson: bool,
        options: dict[str, Any],
    ) -> Private:
        if not poisson:
            raise ValueError("poisson_sampling=False has no amplification that was proved for it: leave it on")
        for ignored in ("batch_first", "grad_sample_mode", "noise_generator", "alphas"):
            if options.pop(ignored, None) not in (None, True, "hooks", "functorch", "ghost", "ew"):
                raise ValueError(f"{ignored} is not served: see make_private for what is")
        options.setdefault("clip", _clip(norm, clipping))
        private = make_private(module, optimizer, loader, **options)
        self.training = private[1].privacy_  # type: ignore[attr-defined]
        return private


def _clip(norm: float | Sequence[float], clipping: str) -> Clip:
    if one_of("clipping", clipping, ("flat", "ghost", "per_layer")) == "per_layer":
        return PerLayer(norm)
    if isinstance(norm, Sequence):
        raise ValueError("several max_grad_norm go with clipping='per_layer'")
    return Flat(norm)
