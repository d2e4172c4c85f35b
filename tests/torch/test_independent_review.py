"""Attacks on `independent=True`: paths that a whole batch chooses, and records that change the types of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.torch.helpers import private
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from shapedp.privacy.assumptions import SENTENCES
from shapedp.torch import RecordError, make_private


class DropsMask(nn.Module):
    """Tokens averaged under a mask, which is dropped when nothing is padded."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(9, 8), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        h, there = self.tokens(x), x != 0
        if there.all():
            return self.head(h.mean(1))
        return self.head((h * there[..., None]).sum(1) / there.sum(1, keepdim=True).clamp(min=1))


class Picks(DropsMask):
    """The same for the records alone that are not all padding."""

    def forward(self, x: Tensor) -> Tensor:
        kept = (x != 0).any(1)
        h = torch.zeros(len(x), 8).index_put((kept.nonzero()[:, 0],), x[kept].double().mean(1, keepdim=True).float())
        return self.head(h + self.tokens(x).mean(1))


class LooksAtAll(nn.Module):
    """A third, computed in one of two ways, as `asks` says of the whole batch."""

    def __init__(self, asks: Any) -> None:
        super().__init__()
        self.layer, self.asks = nn.Linear(6, 5), asks

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(torch.where(self.asks(x), x * (1 / 3), x / 3))


TOKENS, REALS = torch.arange(420).reshape(60, 7) % 8 + 1, torch.linspace(-2, 2, 360).reshape(60, 6)
MODELS: dict[str, tuple[Any, Tensor]] = {
    "a mask that is dropped": (DropsMask, TOKENS),
    "rows that are picked": (Picks, TOKENS),
    "finite": (lambda: LooksAtAll(lambda x: torch.isfinite(x).all()), REALS),
    "not a number": (lambda: LooksAtAll(lambda x: ~x.isnan().any()), REALS),
    "the largest": (lambda: LooksAtAll(lambda x: x.abs().max() < 1000), REALS),
    "an empty place": (lambda: LooksAtAll(lambda x: (x != 0).all()), REALS),
}


def trained(build: Any, records: Any, **options: Any) -> Any:
    """An epoch of a training on these records."""
    torch.manual_seed(1)
    model = build()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    made: Any = make_private(
        model, sgd, DataLoader(records, batch_size=12), clip=1.0, noise_multiplier=1.0, delta=1e-5, epochs=1,
        rng=np.random.default_rng(0), **options,
    )  # fmt: skip
    for x, y in made[2]:
        sgd.zero_grad()
        F.cross_entropy(model(x), y).backward()
        sgd.step()
    return made[1].privacy_


@pytest.mark.parametrize("options", [{"sampling": "fixed"}, {"independent": True}], ids=["fixed", "poisson"])
@pytest.mark.parametrize("name", MODELS)
def test_a_path_that_the_whole_batch_chooses_is_refused(name: str, options: dict[str, Any]) -> None:
    """Each changes bits of all records when one is padded, huge or not finite, or becomes an empty place."""
    build, x = MODELS[name]
    records = TensorDataset(x, torch.zeros(len(x), dtype=torch.int64))
    with pytest.raises(RecordError, match=r"last bits|which operations"):
        trained(build, records, **options)


def test_what_treats_every_record_alike_is_not() -> None:
    """The check above can pass: masks that stay, activations, norms, and values that are not finite."""
    layers = [nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 5)]
    labels = torch.zeros(60, dtype=torch.int64)
    assert trained(lambda: nn.Sequential(*layers), TensorDataset(REALS, labels), independent=True).steps == 5
    table = [nn.Embedding(9, 4), nn.Softmax(1), nn.Flatten(), nn.Linear(28, 5)]
    assert trained(lambda: nn.Sequential(*table), TensorDataset(TOKENS, labels), independent=True).steps == 5


class OneOfFloats(torch.utils.data.Dataset[Any]):
    """Whole numbers that float32 does not hold, in all records but perhaps one."""

    def __init__(self, odd: int | None) -> None:
        self.odd = odd

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> Any:
        x = torch.full((6,), 2**24 + 1)
        return x.float() if index == self.odd else x, 0


class Residue(nn.Module):
    """Features that the last digit of a whole number decides."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer((x.long() % 2).float())


def test_a_record_that_turns_all_others_into_floats_is_refused() -> None:
    """torch stacks whole numbers with floats as floats: 2^24 + 1 becomes even in all records of that batch."""
    mixed = torch.utils.data.default_collate([OneOfFloats(1)[0][0], OneOfFloats(1)[1][0]])
    assert int(mixed[0, 0]) % 2 == 0 != int(OneOfFloats(1)[0][0][0]) % 2
    assert trained(Residue, OneOfFloats(None), sampling="shuffle", independent=True).steps == 5
    with pytest.raises(RecordError, match="types and strides"):
        trained(Residue, OneOfFloats(3), sampling="shuffle")


def test_the_premise_names_the_data_set() -> None:
    """A generator of the data set's own goes on from record to record: nothing here can see that."""
    assert "The data set reads a record by its index and the global random generators alone" in SENTENCES["places"]
    training: Any = private(sampling="fixed", epsilon=2.0, epochs=1)[3]
    assert training.certificate.assumptions[0] == SENTENCES["places"]
