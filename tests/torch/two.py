"""One process of a distributed training: two.py FOLDER RANK PROCESSES STEPS SEED."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch
from tests.torch.helpers import gradient, private, step
from torch import distributed as dist
from torch import nn

from shapedp.sampling import SimulatedSource

folder, rank, processes, steps, seed = Path(sys.argv[1]), *map(int, sys.argv[2:])
torch.set_num_threads(1)
if processes > 1:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=processes)


class Counting(SimulatedSource):
    """A source that counts its calls."""

    calls = 0

    def words(self, n: int) -> np.ndarray:
        Counting.calls += 1
        return super().words(n)


torch.manual_seed(rank)  # each process starts elsewhere: the first one's model counts
model = nn.Sequential(nn.Linear(6, 2))
model, optimizer, loader, training = private(
    model, lr=0.0, batch_size=24 // processes, clip=0.5, noise_multiplier=1.0, rng=np.random.default_rng((seed, rank))
)
start = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
training.source = Counting(np.random.default_rng((seed, rank, 1)))  # that of the noise alone
seen = []
while training.steps < steps:
    for x, y in loader:
        if training.steps < steps:
            step(model, optimizer, x, y)
            seen.append(gradient(model).numpy().copy())
out = folder / f"{processes}-{rank}.npz"
np.savez(out.with_suffix(".part.npz"), gradients=np.stack(seen), start=start.numpy(), draws=Counting.calls)
os.replace(out.with_suffix(".part.npz"), out)
print(json.dumps({"steps": training.steps, "draws": Counting.calls, "epsilon": training.epsilon().upper}))
if processes > 1:
    dist.destroy_process_group()
