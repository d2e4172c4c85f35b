"""A training plan: made without a model, printed, saved, loaded, certified, and refused where it does not hold."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.torch.helpers import data, network, private, step
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.torch import (
    Adaptive,
    AngleWindows,
    Auto,
    Clip,
    Flat,
    GaussianNoise,
    LaplaceNoise,
    Layout,
    PerLayer,
    PerValue,
    PublishedProductNoise,
    RadialNoise,
    TensorNoise,
    TrainingPlan,
    attach,
)

LAYOUT = Layout(("a.weight", "a.bias", "b.weight"), ((4, 6), (4,), (5, 4)), (0, 0, 1))


def given(**options: Any) -> TrainingPlan:
    settings: dict[str, Any] = {"clip": Flat(1.0), "scale": 1.0, "delta": 1e-5} | options
    return TrainingPlan(settings.pop("layout", LAYOUT), records=60, batch_size=60, **settings)


def parts(batch_size: int = 60, records: int = 60) -> tuple[Any, ...]:
    model = network()
    loader = DataLoader(TensorDataset(*data(records)), batch_size=batch_size)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), loader


def test_a_plan_without_a_model_says_what_make_private_says() -> None:
    plan = TrainingPlan(Layout.of(network()), 60, 60, Flat(1.0), epsilon=2.0, delta=1e-5, steps=5)
    *_, training = private(epsilon=2.0, epochs=5, batch_size=60)
    assert plan == training.planned
    assert plan.certificate.verdict == "certified"
    assert plan.certificate.to_json() == training.certificate.to_json()
    assert plan.certificate.bracket.lower > 0.98e-5


def test_the_size_alone_decides_a_flat_plan() -> None:
    flat = replace(given(layout=Layout.single(48)), steps=3).certificate
    assert flat.bracket == replace(given(), steps=3).certificate.bracket


@pytest.mark.parametrize(
    ("clip", "noise"),
    [
        (Flat(0.5), GaussianNoise("spr")),
        (Auto(0.5, 0.1), RadialNoise(b=1.5)),
        (PerLayer([0.5, 0.25]), GaussianNoise("proportional")),
        (PerValue(1.0, p=1.0), LaplaceNoise(1 / 3)),
        (Adaptive([0.5, 0.25], quantile=0.75), GaussianNoise()),
        (AngleWindows(1.0, half_widths=[0.5] * 47), GaussianNoise()),
        (Flat(1.0), TensorNoise({"a.weight": [np.diag([1.0, 2.0, 1.0, 1.0]), 6]})),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_plan_is_saved_and_loaded_whole(clip: Clip, noise: Any, tmp_path: Path) -> None:
    plan = given(clip=clip, noise=noise, steps=7, check_records=False, gpu_noise=True)
    plan.save(tmp_path / "plan.json")
    found = TrainingPlan.load(tmp_path / "plan.json")
    assert found.to_json() == plan.to_json() == json.loads(json.dumps(plan.to_json()))
    assert found.mechanism.to_json() == plan.mechanism.to_json()
    assert (found.steps, found.scale, found.check_records, found.gpu_noise) == (7, 1.0, False, True)
    assert isinstance(noise, TensorNoise) or found == plan


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"kind": "Plan"},
        {"other": 1},
        {"clip": {"kind": "Path", "radius": 1.0}},
        {"clip": {"kind": "Flat", "radius": 1.0, "most": 2.0}},
        {"clip": {"kind": "Flat", "radius": -1.0}},
        {"noise": {"kind": "Flat"}},
        {"records": 59},
        {"scale": -1.0},
        {"scale": 0.0, "epsilon": 1.0, "steps": 3},
        {"check_records": "no"},
    ],
    ids=str,
)
def test_what_is_no_plan_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        TrainingPlan.from_json(given().to_json() | change)


def test_parts_stay_in_their_places() -> None:
    with pytest.raises(TypeError, match="clip"):
        given(clip=GaussianNoise())
    with pytest.raises(TypeError, match="noise"):
        given(noise=Flat(1.0))


def test_a_plan_trains_a_model_and_no_other() -> None:
    model, optimizer, loader = parts()
    plan = TrainingPlan(Layout.of(model), 60, 60, Flat(1.0), epsilon=2.0, delta=1e-5, steps=5)
    model, optimizer, batches = attach(plan, model, optimizer, loader, rng=np.random.default_rng(0))
    for features, labels in batches:
        step(model, optimizer, features, labels)
    assert optimizer.privacy_.steps == 1  # type: ignore[attr-defined]
    for other in (parts(batch_size=59), parts(batch_size=59, records=59)):
        with pytest.raises(ValueError, match="other parameters, records or batches"):
            attach(plan, *other)
    with pytest.raises(ValueError, match="other parameters, records or batches"):
        attach(replace(plan, layout=LAYOUT), *parts())


def test_a_file_cannot_lower_the_noise_of_its_claim() -> None:
    model, optimizer, loader = parts()
    plan = TrainingPlan(Layout.of(model), 60, 60, Flat(1.0), epsilon=2.0, delta=1e-5, steps=5)
    weaker = TrainingPlan.from_json(plan.to_json() | {"scale": plan.scale / 2})
    assert weaker.certificate.verdict == "refuted"
    with pytest.raises(sdp.RefutedError):
        attach(weaker, model, optimizer, loader)
    assert not hasattr(optimizer, "privacy_")


def test_a_published_plan_has_the_claim_of_its_paper_and_is_refused() -> None:
    layout = Layout.of(network())
    plan = TrainingPlan(layout, 60, 60, Flat(1.0), PublishedProductNoise(0.3, 40_000), steps=3)
    assert plan.epsilon is not None
    assert plan.certificate.verdict == "refuted"
    assert TrainingPlan.from_json(plan.to_json()) == plan
    with pytest.raises(sdp.RefutedError):
        attach(plan, *parts())
    with pytest.raises(ValueError, match="its own scale and claim"):
        TrainingPlan.from_json(plan.to_json() | {"epsilon": plan.epsilon / 2})
    _, optimizer, _ = attach(plan, *parts(), unsafe=True)
    assert optimizer.privacy_.certificate.verdict == "refuted"  # type: ignore[attr-defined]


def test_a_plan_prints_what_was_planned() -> None:
    shown = str(given(epsilon=2.0, steps=5))
    for words in ("48 parameters", "5 steps", "60 of 60 records", "Flat(radius=1.0)", "epsilon 2 at delta 1e-05"):
        assert words in shown


def test_a_clip_of_your_own_plans_but_is_not_saved() -> None:
    @dataclass(frozen=True)
    class Own(Flat):
        pass

    plan = given(clip=Own(1.0), steps=2)
    assert any("outside this library" in words for words in plan.certificate.assumptions)
    with pytest.raises(TypeError, match="cannot be saved"):
        plan.to_json()
