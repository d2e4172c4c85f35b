"""Small models of every kind of layer, with inputs and a loss, and a naive loop over records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

Tensor = torch.Tensor


class PaperCNN(nn.Module):
    """The MNIST network of the papers: 26,010 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 8, 2, padding=3)
        self.conv2 = nn.Conv2d(16, 32, 4, 2)
        self.fc1 = nn.Linear(512, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2, 1)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2, 1)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.mix = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, t, d = x.shape
        q, k, v = self.mix(x).reshape(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, d))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, 2)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Transformer(nn.Module):
    """Two blocks over token and position embeddings, the positions expanded to the batch."""

    def __init__(self, words: int = 20, width: int = 16, length: int = 7, expand: bool = True) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 3)
        self.expand = expand

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1], device=x.device)
        if self.expand:
            places = places.expand_as(x)
        h = self.tokens(x) + self.positions(places)
        return self.head(self.norm(self.blocks(h)).mean(1))


class Owner(nn.Module):
    """A module with a parameter of its own beside a child."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.randn(6))
        self.inner = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.inner(x) * self.shift)


class Tied(nn.Module):
    """One weight used twice: embedding and output."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(9, 5), nn.Linear(5, 9, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.tokens(x).mean(1))


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attention(x, x, x)[0].mean(1))


class Twice(nn.Module):
    """One layer called twice in a pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.layer(torch.tanh(self.layer(x)))))


class Recurrent(nn.Module):
    """Opacus' LSTM, one linear layer called at every time step."""

    def __init__(self) -> None:
        super().__init__()
        from opacus.layers import DPLSTM

        self.cell, self.head = DPLSTM(5, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0][:, -1])


@dataclass(frozen=True)
class Case:
    """A model, its input for n records, and whether Opacus serves it."""

    build: Callable[[], nn.Module]
    inputs: Callable[[int], Tensor]
    classes: int = 3
    opacus: bool = True


def images(channels: int, side: int) -> Callable[[int], Tensor]:
    return lambda n: torch.randn(n, channels, side, side)


def words(count: int, length: int) -> Callable[[int], Tensor]:
    return lambda n: torch.randint(0, count, (n, length))


CASES: dict[str, Case] = {
    "linear": Case(lambda: nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)), lambda n: torch.randn(n, 5)),
    "linear on sequences": Case(
        lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Flatten(), nn.Linear(24, 3)),
        lambda n: torch.randn(n, 3, 5),
    ),
    "wide linear on sequences": Case(
        lambda: nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Flatten(), nn.Linear(1024, 3)),
        lambda n: torch.randn(n, 4, 256),
    ),
    "conv": Case(PaperCNN, images(1, 28), 10),
    "conv, dilated in groups": Case(
        lambda: nn.Sequential(
            nn.Conv2d(4, 8, 3, 2, padding=2, dilation=2, groups=2), nn.ReLU(), nn.Flatten(), nn.Linear(128, 3)
        ),
        images(4, 8),
    ),
    "conv, same and reflected padding": Case(
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, (3, 5), padding="same"),
            nn.ReLU(inplace=True),
            nn.Conv2d(3, 2, 3, padding=1, padding_mode="reflect", bias=False),
            nn.Flatten(),
            nn.Linear(72, 3),
        ),
        images(2, 6),
        opacus=False,
    ),
    "conv1d": Case(
        lambda: nn.Sequential(nn.Conv1d(2, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(15, 3)),
        lambda n: torch.randn(n, 2, 5),
    ),
    "conv3d": Case(
        lambda: nn.Sequential(nn.Conv3d(2, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(24, 3)),
        lambda n: torch.randn(n, 2, 3, 3, 3),
    ),
    "embedding": Case(lambda: nn.Sequential(nn.Embedding(11, 4), nn.Flatten(), nn.Linear(24, 3)), words(11, 6)),
    "embedding, padded": Case(  # Opacus 1.6 gives the padding row a gradient
        lambda: nn.Sequential(nn.Embedding(11, 4, padding_idx=0), nn.Flatten(), nn.Linear(24, 3)),
        words(11, 6),
        opacus=False,
    ),
    "layer norm": Case(
        lambda: nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 3)), lambda n: torch.randn(n, 5)
    ),
    "group norm": Case(
        lambda: nn.Sequential(nn.Conv2d(2, 6, 3), nn.GroupNorm(3, 6), nn.ReLU(), nn.Flatten(), nn.Linear(96, 3)),
        images(2, 6),
    ),
    "instance and rms norm": Case(
        lambda: nn.Sequential(nn.InstanceNorm2d(2, affine=True), nn.Flatten(), nn.RMSNorm(32), nn.Linear(32, 3)),
        images(2, 4),
        opacus=False,
    ),
    "two-block transformer": Case(Transformer, words(20, 7)),
    "multi-head attention": Case(SelfAttention, lambda n: torch.randn(n, 4, 8), opacus=False),
    "parameter of its own": Case(lambda: nn.Sequential(Owner(), nn.Linear(6, 3)), lambda n: torch.randn(n, 6)),
    "tied weights": Case(Tied, words(9, 4), 9, opacus=False),
    "recurrent": Case(Recurrent, lambda n: torch.randn(n, 3, 5)),
    "normalised weights": Case(
        lambda: nn.Sequential(weight_norm(nn.Linear(6, 5)), nn.Tanh(), weight_norm(nn.Linear(5, 3, bias=False))),
        lambda n: torch.randn(n, 6),
        opacus=False,
    ),
    "one layer twice": Case(Twice, lambda n: torch.randn(n, 6)),
}


def naive_rows(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The gradient of each record, one at a time."""
    rows = []
    for i in range(len(x)):
        model.zero_grad()
        F.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
        rows.append(torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None]))
    model.zero_grad()
    return torch.stack(rows)
