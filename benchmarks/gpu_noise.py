"""Noise on 2^30 float32 values of a GPU, by device events, against a copy and against torch.randn plus an addition."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from _harness import RESULTS, Result, Timing


class Kept(Result):
    """A result of another machine: shown, never written over."""

    def write(self, folder: Path = RESULTS) -> Path:
        return folder / f"{self.name}.json"


def stored(name: str) -> Result | None:
    """The result kept from a machine with a GPU, for machines without one."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    result = Kept(data["name"], data["what"], data["peers"], ratios=data["ratios"], figures=data["figures"])
    result.timings = {
        case: Timing((each["best_s"], each["median_s"], each["worst_s"]), each["loops"])
        for case, each in data["timings"].items()
    }
    result.notes = data["notes"]
    return result


def without_gpu(name: str) -> Result:
    """What a machine without a GPU reports: the stored figures, or that there are none."""
    found = stored(name)
    if found is None:
        found = Kept(name, what="needs a CUDA device and Triton; none is here, and no result is stored")
    return found


def on_device(case: Callable[[], object], rounds: int) -> Timing:
    """Seconds of a case by device events, one sample per round, after three runs to warm up."""
    import torch

    for _ in range(3):
        case()
    samples = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        case()
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) / 1e3)
    return Timing(tuple(samples), 1)


def run(quick: bool) -> Result:
    try:
        import torch

        from shapedp.torch import gpu
    except ImportError:
        return without_gpu("gpu_noise")
    if not torch.cuda.is_available() or gpu.kernels() is None:
        return without_gpu("gpu_noise")
    import triton

    size, rounds = (2**26, 5) if quick else (2**30, 30)
    device = torch.device("cuda")
    values = torch.randn(size, device=device)
    out = torch.empty_like(values)
    key = torch.randint(-(2**31), 2**31 - 1, (8,), dtype=torch.int32, device=device)

    def noise(rounds: int) -> Callable[[], object]:
        return lambda: gpu.add_noise(values, 1.3, None, key, rounds=rounds, out=out)

    cases: dict[str, Callable[[], object]] = {
        "copy": lambda: out.copy_(values),
        "randn + add (not private)": lambda: torch.add(values, torch.randn_like(values), alpha=1.3, out=out),
        "ChaCha8": noise(8),
        "ChaCha12": noise(12),
        "ChaCha20": noise(20),
        "copy again": lambda: out.copy_(values),
    }
    result = Result(
        "gpu_noise",
        what=f"Gaussian noise on {size} float32 values, {torch.cuda.get_device_name()}, device events",
        peers={"torch": torch.__version__, "triton": triton.__version__},
    )
    result.timings = {name: on_device(case, rounds) for name, case in cases.items()}
    copy = result.timings["copy"].median
    for name in ("ChaCha8", "ChaCha12", "ChaCha20"):
        bound = 1.6 if name == f"ChaCha{gpu.ROUNDS}" else None
        result.ratio(f"{name} + Box-Muller + add / copy", result.timings[name].median / copy, at_most=bound)
    result.ratio("randn + add / copy", result.timings["randn + add (not private)"].median / copy)
    result.ratio("copy again / copy", result.timings["copy again"].median / copy)
    gpu.add_noise(values, 1.3, None, key, out=out)
    noise_drawn = ((out - values) / 1.3).double()
    result.figure("mean of the noise, in standard errors", float(noise_drawn.mean()) * math.sqrt(size))
    spread = (float(noise_drawn.square().mean()) - 1) * math.sqrt(size / 2)
    result.figure("variance of the noise less 1, in standard errors", spread)
    result.figure("largest value of the noise, in sigma", float(noise_drawn.abs().max()))
    result.notes.append(
        f"The library draws from ChaCha{gpu.ROUNDS}, keyed with 256 fresh bits per release: a cryptographic stream. "
        "The normals are float32 (Box and Muller) and end at 11.6 sigma."
    )
    return result
