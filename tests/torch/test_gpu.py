"""Kernels on a CUDA device against the CPU's routes; skipped where there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from tests.torch.chacha import words
from tests.torch.models import CASES
from torch import nn

from shapedp.torch import Flat, Layout, gpu
from shapedp.torch.gradients import summed_rows
from shapedp.torch.recorder import Recorder
from shapedp.torch.rules import rule_for

needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available() or gpu.kernels() is None, reason="needs a CUDA device and Triton"
)
BYTES = ((7, 5, 3, 1), (15, 13, 11, 9))  # the words whose lower bytes extend the radii, lowest first
KEY = np.arange(1, 9, dtype=np.int32) * 0x01234567


def test_the_reference_stream_gives_the_vector_of_the_rfc() -> None:
    """RFC 8439, section 2.3.2."""
    key = np.frombuffer(bytes(range(32)), dtype=np.uint32)
    nonce = np.frombuffer(bytes.fromhex("000000090000004a00000000"), dtype=np.uint32)
    block = words(key, [1], 20, nonce.tolist())
    assert [int(w[0]) for w in block[:4]] == [0xE4E7F110, 0x15593BD1, 0x1FDD0F50, 0xC47120A3]


def box_muller(first: np.ndarray, second: np.ndarray, high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, ...]:
    """Two normals from 96 bits of radius and 24 of angle, in float64."""
    u = first * 2.0**-32 + high * 2.0**-64 + (low + 0.5) * 2.0**-96
    radius = np.sqrt(np.maximum(-2 * np.log(u), 2.0**-25))
    angle = ((second.view(np.int32) >> 8) + 0.5) * (math.pi * 2.0**-23)
    return radius * np.cos(angle), radius * np.sin(angle)


def expected_noise(n: int, rounds: int) -> np.ndarray:
    block = gpu.kernels().BLOCK
    programs = -(-n // (16 * block))
    stream = words(KEY.view(np.uint32), np.arange(programs * block), rounds)
    normals = np.empty((programs, 16, block))
    high, low = (sum((stream[j] & 255).astype(np.float64) * 256.0**k for k, j in enumerate(js)) for js in BYTES)
    for j in range(0, 16, 2):
        for k, normal in enumerate(box_muller(stream[j], stream[j + 1], high, low)):
            normals[:, j + k] = normal.reshape(programs, block)
    return normals.reshape(-1)[:n]


def assert_near(found: np.ndarray, expected: np.ndarray) -> None:
    """Fast logarithms lose digits where the radius is near 0 only."""
    error = np.abs(found - expected)
    assert error.max() < 5e-4
    assert np.quantile(error, 0.999) < 1e-5


@needs_gpu
def test_noise_is_that_of_the_stream() -> None:
    n = 100_003
    x = torch.randn(n, device="cuda")
    key = torch.from_numpy(KEY).cuda()
    scales = torch.linspace(0.1, 9.0, n, device="cuda")
    for rounds in (8, 12, 20):
        normals = expected_noise(n, rounds)
        flat = gpu.add_noise(x, 2.5, None, key, rounds=rounds)
        assert_near((flat - x).cpu().numpy() / 2.5, normals)
        shaped = gpu.add_noise(x, 1.0, scales, key, rounds=rounds)
        assert_near((shaped - x).cpu().numpy() / scales.cpu().numpy(), normals)


@needs_gpu
def test_normals_reach_beyond_11_sigma() -> None:
    """A word of zeros is extended by two more: no value of the noise is out of reach below 11.6 sigma."""
    from tests.torch.tail import normals

    first = np.array([0, 0, 0, 0, 1, 5, 2**31, 2**32 - 1], dtype=np.uint32)
    high = np.array([0, 0, 1, 2**31, 7, 0, 3, 2**32 - 1], dtype=np.uint32)
    low = np.array([0, 2**31, 9, 0, 0, 1, 2, 2**32 - 1], dtype=np.uint32)
    second = np.array([0, 1 << 30, 77, 2**31 - 1, 2**31, 3, 256, 2**32 - 1], dtype=np.uint32)
    words = torch.from_numpy(np.stack([first, second, high, low]).view(np.int32)).cuda()
    found = normals(words).cpu().double().numpy()
    expected = np.stack(box_muller(first, second, high.astype(float), low.astype(float)))
    assert np.abs(found - expected).max() < 2e-5
    assert 11.59 < np.hypot(*found).max() < 11.61


@needs_gpu
@pytest.mark.slow
def test_noise_passes_the_end_of_32_bits() -> None:
    """2^41 values: 29.5 lie beyond 6.7637 sigma on average; at least 6 and at most 66 with probability 1 - 1e-6."""
    zeros = torch.zeros(2**30, device="cuda")
    out = torch.empty_like(zeros)
    found = 0
    for k in range(2**11):
        key = torch.from_numpy(KEY + k).cuda()
        found += int((gpu.add_noise(zeros, 1.0, None, key, out=out).abs_() > 6.7637).sum())
    assert 6 <= found <= 66


@needs_gpu
def test_float64_sums_are_rounded_once() -> None:
    """The noise on zeros, plus the sum on the grid, is what leaves: no bit of the sum is lost before."""
    key = torch.from_numpy(KEY).cuda()
    x = torch.randn(10_000, dtype=torch.float64, device="cuda") * 300
    scales = torch.linspace(0.1, 9.0, len(x), device="cuda")
    for sigma, each in ((1.3, None), (1.0, scales)):
        grid = torch.exp2(torch.floor(torch.log2(torch.full_like(x, sigma) if each is None else each.double())) - 23)
        noise = gpu.add_noise(torch.zeros_like(x), sigma, each, key).double()
        assert bool((gpu.add_noise(x, sigma, each, key) == (torch.floor(x / grid + 0.5) * grid + noise).float()).all())


@needs_gpu
def test_values_leave_on_the_grid() -> None:
    x = torch.randn(5000, device="cuda") * 3
    noisy = gpu.add_noise(x, 1.3, None, torch.from_numpy(KEY).cuda()).double()
    steps = noisy * 2.0**gpu.GRID_BITS
    assert bool((steps == steps.round()).all())


@needs_gpu
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of normalised weights, record by record
@pytest.mark.parametrize("name", CASES)
def test_sums_on_the_gpu_equal_those_on_the_cpu(name: str) -> None:
    if name == "recurrent":
        pytest.importorskip("opacus")
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        torch.manual_seed(3)
        case = CASES[name]
        model, x, y = case.build(), case.inputs(7), torch.randint(0, case.classes, (7,))
        sums = []
        for device in ("cpu", "cuda"):
            found: list[torch.Tensor] = []
            model = model.to(device)
            layout = Layout.of(model)
            recorder = Recorder(
                model,
                layout,
                True,
                lambda n, g, scale, f=found, t=layout: f.append(summed_rows(Flat(0.7), t, n, g, scale)),
            )
            recorder.attach()
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
            recorder.flush()
            sums.append(found[0].cpu())
        assert (sums[0] - sums[1]).abs().max() < 1e-5
    finally:
        torch.backends.cudnn.allow_tf32 = before


@needs_gpu
def test_noise_of_a_training_on_the_gpu() -> None:
    """Covariance per layer as planned, false-alarm rate 1e-6; the certificate says the stream is secure."""
    from tests.torch.helpers import network
    from tests.torch.test_noise import drawn, fits

    from shapedp.torch import PerLayer

    for clip in (PerLayer([1.0, 0.2]), Flat(0.5)):
        noise, training = drawn(4000, model=network().cuda(), clip=clip, rng=None)
        assert training.planned.gpu_noise
        assert fits(noise, training)
        assert not fits(noise * 1.02, training)
        assert training.certificate.secure


@needs_gpu
def test_a_step_on_the_gpu_is_that_on_the_cpu() -> None:
    from tests.torch.helpers import data, gradient, network, private, step

    from shapedp.torch.loader import Part

    x, y = data()
    seen = []
    for device in ("cpu", "cuda"):
        model, optimizer, _, training = private(network().to(device), noise_multiplier=1e-6)
        training.receive(Part(9, True))
        step(model, optimizer, x[:9].to(device), y[:9].to(device))
        seen.append(gradient(model).cpu())
    assert (seen[0] - seen[1]).abs().max() < 1e-5


@needs_gpu
def test_wide_convolutions_with_tf32_are_near() -> None:
    torch.manual_seed(0)
    for layer, side in (
        (nn.Conv2d(16, 32, 3, 2, 1), 32),
        (nn.Conv2d(64, 64, 3, 1, 1), 8),
        (nn.Conv2d(3, 16, 3, 1, 1), 32),
    ):
        x = torch.randn(9, layer.in_channels, side, side)
        grad = torch.randn_like(layer(x))
        exact = rule_for(layer).pieces(layer, (x,), {}, grad)["weight"].dense()
        found = gpu.conv_rows(layer.cuda(), x.cuda(), grad.cuda()).cpu()
        assert (found - exact).norm() / exact.norm() < 1e-3


@needs_gpu
@pytest.mark.parametrize("precision", ["highest", "high"])
def test_records_made_to_defeat_the_arithmetic_stay_within_the_certified_set(precision: str) -> None:
    from tests.torch.test_clip_numerics import line, moved, uneven

    from shapedp.torch import PerLayer

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        for half in (256, 4096, 16384):
            move, radius = moved(line().cuda(), *(one.cuda() for one in uneven(half)))
            assert 0.99 < move <= radius
        for value in np.linspace(1, 1.01, 9):
            x, y = torch.full((64, 512), float(value)).cuda(), torch.full((64, 64), -1e3 * float(value)).cuda()
            for clip in (Flat(1.0), PerLayer([1.0])):
                move, radius = moved(line(512, 64).cuda(), x, y, clip=clip)
                assert 0.99 < move <= radius
        move, radius = moved(line(2**20).cuda(), torch.full((2, 2**20), 1.3).cuda(), torch.full((2, 1), -1e3).cuda())
        assert 0.99 < move <= radius
    finally:
        torch.set_float32_matmul_precision(before)


@needs_gpu
def test_numbers_are_compared_over_nccl() -> None:
    """One process in a group of its own; a tensor on the CPU would be refused."""
    from torch import distributed as dist

    from shapedp.torch.training import Processes

    store = dist.HashStore()
    dist.init_process_group("nccl", store=store, rank=0, world_size=1)
    try:
        assert Processes(0, 2).largest(7) == 7
    finally:
        dist.destroy_process_group()


@pytest.fixture
def tf32() -> Iterator[None]:
    """TF32 on, as before afterwards."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


@needs_gpu
@pytest.mark.usefixtures("tf32")
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("name", ["linear", "conv", "two-block transformer"])
def test_records_beside_the_one_that_leaves_keep_their_rows(name: str, reduction: str) -> None:
    """Equal records, one leaves: what the rows of the others differ by fits the room that is left for it."""
    from tests.torch.test_clip_numerics import change_of_others

    from shapedp.torch.rounding import OTHERS

    case = CASES[name]
    torch.manual_seed(0)
    for change, size in change_of_others(case.build().cuda(), case.inputs(1).cuda(), reduction):
        assert change <= OTHERS * size


@needs_gpu
@pytest.mark.usefixtures("tf32")
def test_a_mean_switches_tf32_off_and_a_sum_does_not() -> None:
    from tests.torch.helpers import data, network, private, step

    from shapedp.torch.loader import Part
    from shapedp.torch.recorder import RecordError

    x, y = (one[:9].cuda() for one in data())
    private(network().cuda(), loss_reduction="sum")
    assert torch.backends.cudnn.allow_tf32
    model, optimizer, _, training = private(network().cuda())
    assert not torch.backends.cudnn.allow_tf32
    assert torch.get_float32_matmul_precision() == "highest"
    torch.backends.cudnn.allow_tf32 = True
    training.receive(Part(9, True))
    with pytest.raises(RecordError, match="TF32 was switched on"):
        step(model, optimizer, x, y)
