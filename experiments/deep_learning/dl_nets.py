"""The networks of the studies."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

Tensor = torch.Tensor


class PaperCNN(nn.Module):
    """The MNIST network of the product-noise paper (after Bu et al. 2020): 26,010 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 8, 2, padding=3), nn.Conv2d(16, 32, 4, 2)
        self.fc1, self.fc2 = nn.Linear(512, 32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2, 1)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2, 1)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class GeoCNN(nn.Module):
    """A two-convolution MNIST network with the 21,840 parameters that the GeoDP paper names."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 10, 5), nn.Conv2d(10, 20, 5)
        self.fc1, self.fc2 = nn.Linear(320, 50), nn.Linear(50, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class Words(nn.Module):
    """Word vectors, their mean, two linear layers."""

    def __init__(self, words: int = 10_001, width: int = 16) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.fc1, self.fc2 = nn.Linear(width, 16), nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.relu(self.fc1(self.words(x).mean(1))))


class Ratings(nn.Module):
    """Neural collaborative filtering over five classes, the stars: 150,010 parameters (after Bu et al. 2020).

    A user's and a movie's vectors are multiplied (5 entries) and laid side by side (10 entries each); one linear layer.
    """

    def __init__(self, users: int = 6040, movies: int = 3952) -> None:
        super().__init__()
        self.user_factors, self.movie_factors = nn.Embedding(users, 5), nn.Embedding(movies, 5)
        self.user_words, self.movie_words = nn.Embedding(users, 10), nn.Embedding(movies, 10)
        self.stars = nn.Linear(25, 5)

    def forward(self, x: Tensor) -> Tensor:
        user, movie = x[:, 0], x[:, 1]
        product = self.user_factors(user) * self.movie_factors(movie)
        return self.stars(torch.cat([product, self.user_words(user), self.movie_words(movie)], dim=1))


class Block(nn.Module):
    """Two convolutions with group norm beside a shortcut."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.GroupNorm(8, width), nn.GroupNorm(8, width)
        self.short = nn.Sequential()
        if before != width:
            self.short = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.GroupNorm(8, width))

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(h)) + self.short(x))


def resnet20() -> nn.Module:
    """ResNet-20 with group norm in place of batch norm, which no private training can use."""
    widths = (16, 16, 16, 16, 32, 32, 32, 64, 64, 64)
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in pairwise(widths)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.GroupNorm(8, 16), nn.ReLU(), *blocks, *head)


def build(name: str) -> nn.Module:
    """The network of that name, with fresh weights."""
    if name == "LR":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    if name == "MLP":
        return nn.Sequential(nn.Linear(105, 16), nn.ReLU(), nn.Linear(16, 2))
    if name == "ResNet-20":
        return resnet20()
    return {"CNN": PaperCNN, "GeoDP CNN": GeoCNN, "embedding": Words, "ratings": Ratings}[name]()
