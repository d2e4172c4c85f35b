"""A private step of a GPT-2-small-sized model (batch 32 x 256 tokens), of LoRA on it, and of ResNet-20, on a GPU."""

from __future__ import annotations

import gc
import importlib.metadata
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import _gpu_opacus
from _harness import Result, Timing, ratio
from gpu_noise import on_device, without_gpu
from gpu_resnet import plain_step, private_step, resnet20

RECORDS, TOKENS = 32, 256
TOGETHER = 5  # steps of a sample, as a training runs them: nobody waits for the GPU between two
Case = Callable[[], object]


def gpt2(tied: bool = False, width: int = 768, layers: int = 12, heads: int = 12, words: int = 50_257) -> Any:
    """GPT-2's layers at random weights; 163 M parameters, or 124 M with the table of words as the last layer's weight.

    Positions come as an input, one row per record.
    """
    from torch import nn
    from torch.nn import functional as F

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            n, t, d = x.shape
            q, k, v = self.mix(x).view(n, t, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
            return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, d))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention()
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.first(x))
            return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
            self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(layers))), nn.LayerNorm(width)
            self.head = nn.Linear(width, words, bias=False)
            for parameter in self.parameters():
                if parameter.ndim == 2:
                    nn.init.normal_(parameter, std=0.02)
            if tied:
                self.head.weight = self.words.weight

        def forward(self, x: Any, places: Any) -> Any:
            return self.head(self.norm(self.blocks(self.words(x) + self.places(places))))

    return Gpt()


def adapted(model: Any, rank: int = 8) -> Any:
    """The model, frozen, with LoRA on both projections of each attention."""
    import torch
    from torch import nn

    class Adapted(nn.Module):
        def __init__(self, layer: Any) -> None:
            super().__init__()
            self.layer = layer
            self.down = nn.Linear(layer.in_features, rank, bias=False)
            self.up = nn.Linear(rank, layer.out_features, bias=False)
            nn.init.normal_(self.up.weight, std=0.02)

        def forward(self, x: Any) -> Any:
            return self.layer(x) + self.up(self.down(x))

    model.requires_grad_(False)
    for block in model.blocks:
        block.attention.mix, block.attention.out = Adapted(block.attention.mix), Adapted(block.attention.out)
    return model.to(torch.float32)


def sequences() -> tuple[Any, Any, Any]:
    """Words, places and the words to come."""
    import torch

    x = torch.randint(0, 50_257, (RECORDS, TOKENS), device="cuda")
    return x, torch.arange(TOKENS, device="cuda").expand_as(x), torch.randint(0, 50_257, x.shape, device="cuda")


def language_step(model: Any, half: bool, clip: Any = None) -> Case:
    """A step on the sum over records of their mean loss; private where a clip is given."""
    import torch
    from torch.nn import functional as F
    from torch.utils.data import DataLoader, TensorDataset

    from shapedp.torch import make_private
    from shapedp.torch.loader import Part

    x, places, y = sequences()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    training: Any = None
    if clip is not None:
        loader: Any = DataLoader(TensorDataset(torch.zeros(50_000, 1)), batch_size=RECORDS)
        settings: dict[str, Any] = {"noise_multiplier": 1.0, "delta": 1e-6, "loss_reduction": "sum"}
        make_private(model, optimizer, loader, clip=clip, check_records=False, **settings)
        training = optimizer.privacy_  # type: ignore[attr-defined]

    def step() -> None:
        if training is not None:
            training.receive(Part(RECORDS, True))
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16) if half else nullcontext():
            answer = model(x, places)
            loss = F.cross_entropy(answer.flatten(0, 1), y.flatten(), reduction="sum") / TOKENS
        del answer
        loss.backward()
        optimizer.step()

    return step


def cases() -> dict[str, Callable[[], Case]]:
    """What is timed, each built when its turn comes."""
    import torch

    from shapedp.torch import PerLayer

    found: dict[str, Callable[[], Case]] = {}
    for name, half in (("float32", False), ("bf16 autocast", True)):
        for kind, clip in (("not private", None), ("flat", 1.0), ("per layer", PerLayer(1.0))):
            found[f"GPT-2, {name}, {kind}"] = lambda h=half, c=clip: language_step(gpt2().cuda(), h, c)
        for kind, clip in (("not private", None), ("flat", 1.0)):
            found[f"GPT-2 tied, {name}, {kind}"] = lambda h=half, c=clip: language_step(gpt2(True).cuda(), h, c)
            found[f"LoRA, {name}, {kind}"] = lambda h=half, c=clip: language_step(adapted(gpt2()).cuda(), h, c)
    batch = 1024

    def images(make: Callable[..., Case], *more: Any) -> Case:
        x, y = torch.randn(batch, 3, 32, 32, device="cuda"), torch.randint(0, 10, (batch,), device="cuda")
        return make(resnet20().cuda(), x, y, *more)

    found["ResNet-20, not private"] = lambda: images(plain_step)
    found["ResNet-20, flat"] = lambda: images(private_step, "sum")
    if _gpu_opacus.installed():
        for name, half in (("float32", False), ("bf16 autocast", True)):
            for mode in ("ghost", "hooks"):
                found[f"GPT-2, {name}, Opacus {mode}"] = lambda h=half, m=mode: _gpu_opacus.language_step(
                    gpt2().cuda(), sequences(), h, m
                )
            found[f"LoRA, {name}, Opacus ghost"] = lambda h=half: _gpu_opacus.language_step(
                adapted(gpt2()).cuda(), sequences(), h, "ghost"
            )
        found["ResNet-20, Opacus hooks"] = lambda: images(_gpu_opacus.image_step)
    return found


def timed(build: Callable[[], Case], rounds: int) -> tuple[Timing, float]:
    """Seconds of a step, and the most memory in GiB that it and its model held."""
    import torch

    gc.collect()
    torch.cuda.empty_cache()
    torch.manual_seed(0)
    case = build()
    for _ in range(2):
        case()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()

    def several() -> None:
        for _ in range(TOGETHER):
            case()

    found = on_device(several, rounds)
    timing = Timing(tuple(one / TOGETHER for one in found.samples), TOGETHER)
    return timing, torch.cuda.max_memory_allocated() / 2**30


def differences() -> dict[str, float]:
    """How far clipped sums of small copies are from a naive loop over records, relative, float32 without TF32."""
    import torch
    from torch.nn import functional as F

    from shapedp.torch import Flat, Layout
    from shapedp.torch.gradients import summed_rows
    from shapedp.torch.recorder import Recorder

    small = {"width": 256, "layers": 2, "heads": 4, "words": 1003}
    x = torch.randint(0, 1003, (5, 40), device="cuda")
    words = (x, torch.arange(40, device="cuda").expand_as(x)), torch.randint(0, 1003, x.shape, device="cuda")
    images = (torch.randn(5, 3, 32, 32, device="cuda"),), torch.randint(0, 10, (5, 1), device="cuda")
    copies = {"GPT-2": (gpt2(**small), *words), "GPT-2 tied": (gpt2(True, **small), *words)}
    copies |= {"LoRA": (adapted(gpt2(**small)), *words), "ResNet-20": (resnet20(), *images)}
    before, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
    found = {}
    for name, (model, given, y) in copies.items():
        model, layout = model.cuda(), Layout.of(model)
        trained = [p for p in model.parameters() if p.requires_grad]

        def loss(given: Any, y: Any, model: Any = model) -> Any:
            return F.cross_entropy(model(*given).reshape(y.numel(), -1), y.flatten(), reduction="sum")

        rows = [torch.autograd.grad(loss([one[k : k + 1] for one in given], y[k : k + 1]), trained) for k in range(5)]
        clip = Flat(1.0)
        flat = torch.stack([torch.cat([one.flatten() for one in row]) for row in rows]).double()
        expected = clip.rows(flat, layout).sum(0)
        sums: list[Any] = []

        def keep(n: int, gradients: Any, scale: float, at: Any = layout, clip: Any = clip, sums: Any = sums) -> None:
            sums.append(summed_rows(clip, at, n, gradients, scale))

        recorder = Recorder(model, layout, False, keep)
        recorder.attach()
        loss(given, y).backward()
        recorder.flush()
        found[name] = float((sums[0] - expected).norm() / expected.norm())
    torch.backends.cudnn.allow_tf32 = before
    return found


def run(quick: bool) -> Result:
    try:
        import torch
    except ImportError:
        return without_gpu("gpu_large")
    if not torch.cuda.is_available():
        return without_gpu("gpu_large")
    size = sum(math.prod(p.shape) for p in gpt2().parameters())
    what = f"one step; GPT-2 small ({size} parameters, {RECORDS} x {TOKENS} tokens), LoRA of rank 8 on it, ResNet-20"
    peers = {"torch": torch.__version__}
    if _gpu_opacus.installed():
        peers["opacus"] = importlib.metadata.version("opacus")
    result = Result("gpu_large", what=f"{what}; {torch.cuda.get_device_name()}", peers=peers)
    torch.backends.cudnn.benchmark = True
    memory: dict[str, float] = {}
    for name, build in cases().items():
        try:
            result.timings[name], memory[name] = timed(build, 2 if quick else 8)
        except (RuntimeError, NotImplementedError) as why:
            if "Opacus" not in name:
                raise
            result.notes.append(
                f"{name}: no figure, it ended in {type(why).__name__}: {str(why).splitlines()[0][:120]}"
            )
    bounds = {"GPT-2, float32": 1.3, "GPT-2, bf16 autocast": 1.5, "LoRA, float32": 1.1, "LoRA, bf16 autocast": 1.2}
    bounds["ResNet-20"] = 1.15
    for name in result.timings:
        family, _, kind = name.rpartition(", ")
        if kind == "not private":
            continue
        base, ours = f"{family}, not private", "Opacus" not in kind
        most = bounds.get(family) if ours else None
        result.ratio(f"{name} / not private", ratio(result.timings, name, base), at_most=most)
        most = 1.3 if ours and family != "ResNet-20" else None  # there the gradients of single records are laid out
        result.ratio(f"{name} / not private, memory", memory[name] / memory[base], at_most=most)
    for name, value in differences().items():
        result.figure(f"{name}, a small copy: relative difference from a naive loop", value, at_most=1e-5)
    result.notes.append(
        f"Each sample is {TOGETHER} steps in a row, as a training runs them. "
        "float32 as torch sets it by default: no TF32 in matrix products, TF32 in convolutions. Norms and sums of the "
        "private steps run on the matrix units, in two float16 numbers per float32."
    )
    result.notes.append(
        "The private ResNet-20 lays out the gradients of single records: physical_batch_size bounds that memory."
    )
    return result
