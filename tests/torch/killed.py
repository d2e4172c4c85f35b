"""A training that checkpoints every third step and is killed right after a release: killed.py FOLDER STEP."""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
from tests.torch.helpers import private, step

folder, last = Path(sys.argv[1]), int(sys.argv[2])
model, optimizer, loader, training = private(noise_multiplier=1.0, journal=folder / "journal")
while True:
    for x, y in loader:
        step(model, optimizer, x, y)
        if training.steps == last:
            os.kill(os.getpid(), signal.SIGKILL)
        if training.steps % 3 == 0:
            torch.save({"model": model.state_dict(), "privacy": training.state_dict()}, folder / "next.pt")
            os.replace(folder / "next.pt", folder / "state.pt")
