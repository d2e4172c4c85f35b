"""Code written for Opacus runs with one import changed, and spends what Opacus' own accountant says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.torch.helpers import RECORDS, data, network, step
from torch.utils.data import DataLoader, TensorDataset

from shapedp.torch import Flat, PerLayer, PrivacyEngine


def arguments(model: torch.nn.Module) -> dict[str, Any]:
    return {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "data_loader": DataLoader(TensorDataset(*data()), batch_size=12),
        "max_grad_norm": 1.0,
    }


def test_a_training_with_opacus_arguments() -> None:
    from opacus.accountants import PRVAccountant

    engine = PrivacyEngine(accountant="prv", secure_mode=True)
    model, optimizer, loader = engine.make_private(**arguments(network()), noise_multiplier=1.1, batch_first=True)
    theirs = PRVAccountant()
    for _ in range(4):
        for x, y in loader:
            step(model, optimizer, x, y)
            theirs.step(noise_multiplier=1.1, sample_rate=12 / 60)
    assert engine.get_epsilon(1e-5) == pytest.approx(theirs.get_epsilon(1e-5), rel=2e-2)
    assert engine.training is not None
    assert engine.training.clip == Flat(1.0)


def test_a_target_epsilon_and_layers() -> None:
    engine = PrivacyEngine()
    options = arguments(network()) | {"max_grad_norm": [0.5, 0.2], "clipping": "per_layer"}
    options["data_loader"] = DataLoader(TensorDataset(*data()), batch_size=RECORDS)
    model, optimizer, loader = engine.make_private_with_epsilon(
        **options, target_epsilon=3.0, target_delta=1e-5, epochs=1
    )
    for x, y in loader:
        step(model, optimizer, x, y)
    assert engine.training is not None
    assert engine.training.clip == PerLayer((0.5, 0.2))
    assert 2.99 < engine.get_epsilon(1e-5) <= 3.0
    assert engine.training.certificate.verdict == "certified"


def test_what_is_not_served_is_refused() -> None:
    engine = PrivacyEngine()
    with pytest.raises(RuntimeError, match="make_private first"):
        engine.get_epsilon(1e-5)
    for options, text in (
        ({"poisson_sampling": False}, "leave it on"),
        ({"clipping": "adaptive"}, "clipping must be one of"),
        ({"max_grad_norm": [1.0, 2.0]}, "per_layer"),
        ({"noise_generator": torch.Generator()}, "noise_generator is not served"),
    ):
        with pytest.raises(ValueError, match=text):
            engine.make_private(**(arguments(network()) | {"noise_multiplier": 1.0} | options))


def test_no_delta_no_certificate() -> None:
    engine = PrivacyEngine()
    engine.make_private(**arguments(network()), noise_multiplier=1.0)
    assert engine.training is not None
    with pytest.raises(ValueError, match="no delta was named"):
        _ = engine.training.certificate
