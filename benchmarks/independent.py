"""What `independent=True` costs: processor time of a step, loader and all, against one without it; one thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from _harness import Result
from dpsgd import PaperCNN
from shapedp.torch import make_private

RECORDS, WORDS, LENGTH, WIDTH = 20_000, 1000, 32, 64


class Reader(nn.Module):
    """A transformer of one layer over tokens and places."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down, self.head = nn.Linear(WIDTH, 256), nn.Linear(256, WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t = x.shape
        h = self.tokens(x) + self.places(torch.arange(t).expand_as(x))
        q, k, v = self.mix(self.first(h)).reshape(n, t, 3, 2, WIDTH // 2).permute(2, 0, 3, 1, 4)
        h = h + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, WIDTH))
        return self.head((h + self.down(F.gelu(self.up(self.second(h))))).mean(1))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "CNN of MNIST": (PaperCNN, lambda: torch.randn(RECORDS, 1, 28, 28)),
    "MLP 784-256-10": (
        lambda: nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)),
        lambda: torch.randn(RECORDS, 784),
    ),
    "transformer": (Reader, lambda: torch.randint(0, WORDS, (RECORDS, LENGTH))),
}


def steps(network: str, batch: int, sampling: str, independent: bool) -> Iterator[None]:
    """Steps of a training, one each time it is asked."""
    build, inputs = NETWORKS[network]
    torch.manual_seed(0)
    model: Any = build()
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(inputs(), torch.randint(0, 10, (RECORDS,)))
    options: dict[str, Any] = {"noise_multiplier": 1.3, "delta": 1e-5, "sampling": sampling, "independent": independent}
    model, optimizer, loader = make_private(model, optimizer, DataLoader(data, batch), clip=1.0, **options)
    while True:
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            yield


def price(network: str, batch: int, sampling: str, rounds: int) -> float:
    """Median of the ratios of two steps that follow each other, with and without."""
    both = [steps(network, batch, sampling, on) for on in (True, False)]
    ratios = []
    for turn in range(rounds + 2):
        taken = [0.0, 0.0]
        for k in (0, 1) if turn % 2 else (1, 0):
            start = time.process_time()
            next(both[k])
            taken[k] = time.process_time() - start
        ratios.append(taken[0] / taken[1])
    return statistics.median(ratios[2:])


def run(quick: bool) -> Result:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    result = Result("independent", what="a step with independent=True / without, processor time, one thread")
    try:
        for network in NETWORKS:
            for sampling, batch in (("poisson", 256), ("poisson", 2048), ("fixed", 256), ("fixed", 2048)):
                if not quick or batch == 256:
                    found = price(network, batch, sampling, 5 if quick else 15 if batch < 2048 else 7)
                    result.figure(f"{network}, {sampling}, batch {batch}", found)
    finally:
        torch.set_num_threads(threads)
    return result
