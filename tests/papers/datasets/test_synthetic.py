"""The papers' synthetic sets: their laws, their blocks, their seeds."""

from collections.abc import Callable

import numpy as np
import pytest

from shapedp import datasets as ds

STREAMS = [ds.stream_gaussian, ds.stream_mlp, ds.stream_uniform, ds.stream_synthetic_h]
LINEAR = [ds.make_gaussian, ds.make_mlp, ds.make_uniform]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_do_not_depend_on_the_order(stream: Callable[..., ds.Stream], dtype: type) -> None:
    s = stream(rng(), rows=130, dim=20, block_rows=50, dtype=dtype)
    assert len(s) == 3
    assert [len(y) for _, y in s] == [50, 50, 30]
    backwards = [s.block(k) for k in (2, 1, 0)][::-1]
    data = s.dataset(train=100)
    np.testing.assert_array_equal(np.concatenate([x for x, _ in backwards]), data.x)
    np.testing.assert_array_equal(np.concatenate([y for _, y in backwards]), data.y)
    assert data.x.dtype == dtype
    assert len(data.split("test")[1]) == 30
    assert not np.array_equal(data.x[:50], data.x[50:100])
    np.testing.assert_array_equal(stream(rng(), rows=130, dim=20, block_rows=50, dtype=dtype).dataset().x, data.x)
    assert not np.array_equal(stream(rng(1), rows=130, dim=20, block_rows=50, dtype=dtype).dataset().x, data.x)
    with pytest.raises(IndexError, match="there are 3"):
        s.block(3)


@pytest.mark.parametrize("make", LINEAR)
def test_the_linear_model(make: Callable[..., ds.Dataset]) -> None:
    data = make(rng(), rows=2000, test_rows=500, dim=30, dtype=np.float64)
    theta = data.extra["theta"]
    assert np.linalg.norm(theta) == pytest.approx(1)
    residual = data.y - data.x @ theta
    assert np.abs(residual).max() <= 0.1
    # Variance 0.01/3 of Unif(-0.1, 0.1): 5 standard errors of its estimate, false-alarm rate below 1e-6.
    assert residual.var() == pytest.approx(0.01 / 3, abs=5 * 0.01 * np.sqrt(4 / 45 / 2500))
    assert (len(data.split("train")[1]), len(data.split("test")[1])) == (2000, 500)
    if data.bounds is not None:
        assert np.all(data.x >= data.bounds[0])
        assert np.all(data.x <= data.bounds[1])


def test_gaussian_set_at_its_published_size() -> None:
    data = ds.make_gaussian(rng())
    assert data.x.shape == (8192 + 2048, 512)
    assert data.x.dtype == np.float32
    singular = np.linalg.svd(data.x[:200].astype(np.float64), compute_uv=False)
    assert singular[3] > 8
    assert singular[4] < 1e-3
    energy = (data.x.astype(np.float64) ** 2).sum(axis=1)  # chi-square with 4 degrees of freedom
    assert energy.mean() == pytest.approx(4, abs=5 * np.sqrt(8 / len(energy)))


def test_mlp_set_lies_near_a_surface_inside_the_cube() -> None:
    data = ds.make_mlp(rng(), rows=500, test_rows=10, dim=64)
    assert data.x.min() > 0
    assert data.x.max() < 1
    singular = np.linalg.svd(data.x - data.x.mean(axis=0), compute_uv=False)
    assert (singular[:5] ** 2).sum() > 0.9 * (singular**2).sum()


def test_uniform_set() -> None:
    data = ds.make_uniform(rng(), rows=2000, test_rows=1, dim=40)
    assert data.x.std() == pytest.approx(1 / np.sqrt(3), abs=5e-3)
    off = np.corrcoef(data.x.T) - np.eye(40)
    assert np.abs(off).max() < 0.15


def test_synthetic_h() -> None:
    data = ds.make_synthetic_h(rng(5), rows=4000, dim=300)
    assert set(np.unique(data.y)) == {-1, 1}
    assert abs(data.y.mean()) < 5 / np.sqrt(4000)
    informative = data.extra["informative"]
    assert len(informative) == 10
    others = np.delete(data.x, informative, axis=1)
    # Columns without information: means within 6 standard errors, 290 columns, false-alarm rate below 1e-6.
    assert np.abs(others.mean(axis=0)).max() < 6 / np.sqrt(4000)
    assert np.abs((others * data.y[:, None]).mean(axis=0)).max() < 6 / np.sqrt(4000)
    x, y = data.x[:, informative].astype(np.float64), data.y
    quadratic = np.column_stack([np.ones(4000), x, *(x[:, [i]] * x[:, i:] for i in range(10))])
    weights = np.linalg.lstsq(quadratic[:3000], y[:3000], rcond=None)[0]
    assert np.mean(np.sign(quadratic[3000:] @ weights) == y[3000:]) > 0.9


def test_synthetic_h_at_its_published_size_is_drawn_block_by_block() -> None:
    stream = ds.stream_synthetic_h(rng(), block_rows=64)
    assert (stream.rows, stream.dim, len(stream)) == (70000, 20000, 1094)
    x, y = stream.block(1093)
    assert x.shape == (70000 - 1093 * 64, 20000)
    assert x.dtype == np.float32
    assert len(y) == len(x)


@pytest.mark.parametrize("stream", STREAMS)
def test_arguments_are_checked(stream: Callable[..., ds.Stream]) -> None:
    for seed in (0, None, np.random.RandomState(0)):
        with pytest.raises(TypeError, match=r"numpy\.random\.Generator"):
            stream(seed, rows=10, dim=12)
    for options in ({"rows": 0}, {"dim": 0}, {"block_rows": 0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            stream(rng(), **({"rows": 10, "dim": 12} | options))


def test_shape_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="rank"):
        ds.stream_gaussian(rng(), dim=3, rank=4)
    with pytest.raises(ValueError, match="informative"):
        ds.stream_synthetic_h(rng(), dim=3)
    with pytest.raises(ValueError, match="noise"):
        ds.stream_uniform(rng(), noise=-1.0)
    with pytest.raises(ValueError, match="flip"):
        ds.stream_synthetic_h(rng(), dim=20, flip=float("nan"))
