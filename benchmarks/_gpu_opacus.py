"""The same steps by Opacus, by its PrivacyEngine: ghost clipping, and hooks that keep every record's gradient."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any


def installed() -> bool:
    """Whether Opacus is there to be measured."""
    return importlib.util.find_spec("opacus") is not None


def _made(model: Any, x: Any, mode: str, criterion: Any, rate: float = 1e-4) -> tuple[Any, ...]:
    """Model, optimizer and, for ghost clipping, criterion, from make_private; the batches are given by hand."""
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate)
    loader: Any = DataLoader(TensorDataset(torch.zeros(50_000, 1)), batch_size=len(x))
    settings: dict[str, Any] = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "poisson_sampling": False}
    made = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, criterion=criterion, grad_sample_mode=mode, **settings
    )
    return made[:-1]  # without the loader


def language_step(model: Any, words: tuple[Any, Any, Any], half: bool, mode: str) -> Callable[[], object]:
    """A step on the mean loss of a batch of texts."""
    import torch
    from torch import nn

    x, places, y = words[0], words[1].contiguous(), words[2]  # its embeddings take no expanded ones
    made = _made(model.train(), x, mode, nn.CrossEntropyLoss())
    module, optimizer = made[0], made[1]
    criterion = made[2] if len(made) > 2 else None

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(x.device.type, dtype=torch.bfloat16) if half else nullcontext():
            answer = module(x, places).flatten(0, 1)
            if criterion is not None:
                loss = criterion(answer, y.flatten(), shape=tuple(y.shape))
            else:
                loss = nn.functional.cross_entropy(answer, y.flatten())
        loss.backward()
        optimizer.step()

    return step


def image_step(model: Any, x: Any, y: Any) -> Callable[[], object]:
    """A step on images, by hooks: ghost clipping knows no convolution that is cheaper."""
    from torch.nn import functional as F

    module, optimizer = _made(model.train(), x, "hooks", None, 0.1)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(module(x), y).backward()
        optimizer.step()

    return step
