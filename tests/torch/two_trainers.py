"""One process of a Trainer on several: two_trainers.py FOLDER, with the variables that torchrun sets."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch
from tests.torch.texts import Texts, adapted, bert, trainer
from torch import distributed as dist

from shapedp.sampling import SimulatedSource

torch.set_num_threads(1)
drawn: list[int] = []


class Watched(Texts):
    """Texts that tell which of them were read."""

    def __getitem__(self, k: int) -> dict[str, object]:
        drawn.append(k)
        return super().__getitem__(k)


class Counting(SimulatedSource):
    """A source that counts its calls."""

    calls = 0

    def words(self, n: int) -> np.ndarray:
        Counting.calls += 1
        return super().words(n)


run = trainer(
    adapted(bert()), Path(sys.argv[1]), per_device_train_batch_size=4, gradient_accumulation_steps=2,
    num_train_epochs=1, train_dataset=Watched(60),
)  # fmt: skip
rank = dist.get_rank()
torch.manual_seed(rank)
training = run.privacy_
with torch.no_grad():
    start = float(sum(p.double().abs().sum() for p in run.model.parameters()))
training.source = Counting(np.random.default_rng(rank))
drawn.clear()
run.train()
weights = [float(p.double().abs().sum()) for p in run.model.parameters()]
print(
    json.dumps(
        {
            "weights": sum(weights), "start": start, "epsilon": training.epsilon().upper, "noise": Counting.calls,
            "batch": training.planned.batch_size, "records": training.planned.records, "steps": training.steps,
            "drawn": sorted(set(drawn) - {0}), "ranks": [rank],
        }
    )
)  # fmt: skip
dist.destroy_process_group()
