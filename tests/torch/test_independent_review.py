"""Attacks on `independent=True`: a record that changes the type of all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from shapedp.torch import RecordError, make_private


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
    assert int(mixed[0, 0]) == 2**24
    assert trained(Residue, OneOfFloats(None), sampling="shuffle", independent=True).steps == 5
    with pytest.raises(RecordError, match="shapes and types"):
        trained(Residue, OneOfFloats(3), sampling="shuffle")
