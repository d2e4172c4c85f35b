"""A private step of ResNet-20 with group norm (272,474 parameters, batch 1024) on a GPU, by device events."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from _harness import Result, ratio
from gpu_noise import on_device, without_gpu


def resnet20() -> Any:
    """ResNet-20 for 32 x 32 images: group norm, and 1 x 1 convolutions where the shape changes."""
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self, before: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.norm1, self.norm2 = nn.GroupNorm(8, width), nn.GroupNorm(8, width)
            self.short = nn.Sequential()
            if before != width:
                self.short = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.GroupNorm(8, width))

        def forward(self, x: Any) -> Any:
            h = F.relu(self.norm1(self.conv1(x)))
            return F.relu(self.norm2(self.conv2(h)) + self.short(x))

    widths = (16, 16, 16, 16, 32, 32, 32, 64, 64, 64)
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in pairwise(widths)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.GroupNorm(8, 16), nn.ReLU(), *blocks, *head)


def plain_step(model: Any, x: Any, y: Any) -> Callable[[], object]:
    """A step without privacy."""
    import torch
    from torch.nn import functional as F

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def private_step(model: Any, x: Any, y: Any, reduction: str) -> Callable[[], object]:
    """A step of `make_private`, the batch given; a mean switches TF32 off."""
    import torch
    from torch.nn import functional as F
    from torch.utils.data import DataLoader, TensorDataset

    from shapedp.torch import make_private
    from shapedp.torch.loader import Part

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader: Any = DataLoader(TensorDataset(torch.zeros(50_000, 1)), batch_size=len(x))
    settings: dict[str, Any] = {"clip": 1.0, "noise_multiplier": 1.0, "delta": 1e-5, "loss_reduction": reduction}
    make_private(model, optimizer, loader, check_records=False, **settings)
    training: Any = optimizer.privacy_  # type: ignore[attr-defined]

    def step() -> None:
        training.receive(Part(len(x), True))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y, reduction=reduction).backward()
        optimizer.step()

    return step


def vmap_step(model: Any, x: Any, y: Any) -> Callable[[], object]:
    """The plain private step: gradients of single records by vmap, noise by torch.randn."""
    import torch
    from torch.func import functional_call, grad, vmap
    from torch.nn import functional as F

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    named = dict(model.named_parameters())

    def loss(parameters: Any, one: Any, label: Any) -> Any:
        return F.cross_entropy(functional_call(model, parameters, (one[None],)), label[None])

    def step() -> None:
        rows = vmap(grad(loss), in_dims=(None, 0, 0))({k: p.detach() for k, p in named.items()}, x, y)
        flat = torch.cat([value.flatten(1) for value in rows.values()], dim=1)
        total = (1 / flat.norm(dim=1).clamp(min=1.0)) @ flat
        total = (total + torch.randn_like(total)) / len(x)
        for parameter, part in zip(named.values(), total.split([p.numel() for p in named.values()]), strict=True):
            parameter.grad = part.view_as(parameter)
        optimizer.step()

    return step


def run(quick: bool) -> Result:
    try:
        import torch
    except ImportError:
        return without_gpu("gpu_resnet")
    if not torch.cuda.is_available():
        return without_gpu("gpu_resnet")
    batch, rounds = (128, 5) if quick else (1024, 30)
    torch.manual_seed(0)
    x, y = torch.randn(batch, 3, 32, 32, device="cuda"), torch.randint(0, 10, (batch,), device="cuda")
    models = [resnet20().cuda() for _ in range(4)]
    size = sum(p.numel() for p in models[0].parameters())
    result = Result(
        "gpu_resnet",
        what=f"step of ResNet-20 with group norm, {size} parameters, batch {batch}, {torch.cuda.get_device_name()}",
        peers={"torch": torch.__version__},
    )
    torch.backends.cudnn.benchmark = True  # cudnn picks its fastest convolutions, for every case alike
    last = {"memory_format": torch.channels_last}
    cases = {
        "not private": plain_step(models[0], x, y),
        "shapedp": private_step(models[1], x, y, "sum"),
        "plain vmap step": vmap_step(models[2], x, y),
        "not private, channels last": plain_step(models[3].to(**last), x.to(**last), y),
    }
    result.timings = {name: on_device(case, rounds) for name, case in cases.items()}
    result.ratio("shapedp / not private", ratio(result.timings, "shapedp", "not private"), at_most=2)
    result.ratio(
        "shapedp / not private, channels last",
        ratio(result.timings, "shapedp", "not private, channels last"),
        at_most=2,
    )
    result.ratio("plain vmap step / not private", ratio(result.timings, "plain vmap step", "not private"))
    result.figure("parameters", size)
    result.figure("largest memory, GiB", torch.cuda.max_memory_allocated() / 2**30)
    result.notes.append(
        "TF32 as torch sets it by default: on in convolutions, off in matrix products; cudnn.benchmark on for every "
        "case (without it the step that is not private chose slower convolutions than the private one needs). The "
        "private step's loss is a sum: under a mean it would switch TF32 off."
    )
    return result
