"""What code for Opacus reaches into works here, or fails with the remedy."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from tests.torch.helpers import data, gradient, network, private, step
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.torch import BatchMemoryManager, PerLayer, PrivacyEngine, from_opacus


def engine_made(**options: Any) -> tuple[Any, Any, Any, PrivacyEngine]:
    engine, model = PrivacyEngine(), network()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=1.3,
        data_loader=DataLoader(TensorDataset(*data()), batch_size=12), **({"max_grad_norm": 0.7} | options),
    )  # fmt: skip
    return model, optimizer, loader, engine


@pytest.mark.parametrize(
    "history",
    [[(1.1, 0.01, 1000)], [(0.8, 0.02, 300), (1.5, 0.01, 500)], [(2.0, 0.9, 5)], [[3, 0.1, 7]]],
)
def test_a_history_of_opacus_beside_its_own_numbers(history: Any) -> None:
    from opacus.accountants import PRVAccountant, RDPAccountant

    plan = from_opacus(history)
    assert plan.adjacency == "add-remove"
    found = plan.epsilon(1e-5)
    for kind, room in ((RDPAccountant, 0.9), (PRVAccountant, 0.0115)):  # PRV adds its own error of 0.01
        theirs = kind()
        theirs.history = list(history)
        epsilon = float(theirs.get_epsilon(1e-5))
        assert found.lower <= epsilon <= found.upper + room
        assert from_opacus(theirs) == plan
        assert from_opacus(theirs.state_dict()) == plan
    restored = sdp.accounting.Plan.from_json(plan.to_json())
    assert restored.epsilon(1e-5).upper == found.upper
    assert any("history of an Opacus accountant is true" in one for one in sdp.privacy.assumptions_of(plan))


@pytest.mark.parametrize(
    "history",
    [[], None, 3, {"mechanism": "rdp"}, [(1.0, 0.1)], [(0.0, 0.1, 5)], [(float("nan"), 0.1, 5)], [(1.0, 1.5, 5)],
     [(1.0, 0.1, 0)], [(1.0, 0.1, 2.5)], ["abc"]],
)  # fmt: skip
def test_what_is_no_history_is_refused(history: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        from_opacus(history)


def test_the_names_of_its_optimizer() -> None:
    _, optimizer, _, _ = engine_made()
    assert isinstance(optimizer, torch.optim.SGD)
    assert (optimizer.noise_multiplier, optimizer.max_grad_norm, optimizer.expected_batch_size) == (1.3, 0.7, 12)
    assert optimizer.original_optimizer is optimizer
    assert not hasattr(optimizer, "grad_samples")
    for name, text in (
        ("grad_samples", "Clip of your own"),
        ("signal_skip_step", "physical_batch_size"),
        ("pre_step", "call optimizer.step"),
    ):
        with pytest.raises(AttributeError, match=text):
            getattr(optimizer, name)
    _, layered, _, _ = engine_made(max_grad_norm=[0.5, 0.2], clipping="per_layer")
    assert layered.privacy_.clip == PerLayer((0.5, 0.2))
    assert layered.max_grad_norm == (0.5, 0.2)


def test_schedulers_of_opacus_fail_with_the_remedy() -> None:
    from opacus.schedulers import ExponentialGradClip, ExponentialNoise

    _, optimizer, _, engine = engine_made()
    noise = ExponentialNoise(optimizer, gamma=0.9)  # its first step sets the value that is there
    with pytest.raises(ValueError, match="one phase for each scale"):
        noise.step()
    norms = ExponentialGradClip(optimizer, gamma=0.9)
    with pytest.raises(ValueError, match="Adaptive"):
        norms.step()
    assert (optimizer.noise_multiplier, optimizer.max_grad_norm) == (1.3, 0.7)
    with pytest.raises(AttributeError, match="counts its steps itself"):
        engine.accountant.get_optimizer_hook_fn(0.1)


def test_step_hooks_run_between_noise_and_step() -> None:
    model, optimizer, loader, _ = engine_made(physical_batch_size=4)
    seen: list[torch.Tensor] = []
    before = [p.detach().clone() for p in model.parameters()]

    def hook(given: Any) -> None:
        assert given is optimizer
        assert seen or all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
        seen.append(gradient(model))

    optimizer.attach_step_hook(lambda given: pytest.fail("replaced"))
    optimizer.attach_step_hook(hook)
    pieces = 0
    for x, y in loader:
        step(model, optimizer, x, y)
        pieces += 1
    assert pieces > len(seen) == optimizer.privacy_.steps == 5
    assert torch.equal(seen[-1], gradient(model))


def test_state_dicts_with_the_prefix_of_its_wrapper() -> None:
    from opacus import GradSampleModule

    model, _, _, _ = engine_made()
    wrapped = GradSampleModule(network())
    with torch.no_grad():
        for p in wrapped.parameters():
            p.add_(1.0)
    theirs = wrapped.state_dict()
    assert all(name.startswith("_module.") for name in theirs)
    model.load_state_dict(theirs)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), wrapped.parameters(), strict=True))
    assert model._module is model
    assert list(model._module.state_dict()) == list(network().state_dict()) == [n for n, _ in model.named_parameters()]
    model.load_state_dict(network().state_dict())
    with pytest.raises(RuntimeError, match="Unexpected key"):
        model.load_state_dict({"_module.0.weight": torch.zeros(4, 6), "other": torch.zeros(1)})


def test_copies_and_pickles_are_plain() -> None:
    model, optimizer, _, _ = engine_made()
    assert repr(optimizer).startswith("SGD (")
    again = pickle.loads(pickle.dumps(optimizer))
    assert type(again) is type(copy.deepcopy(optimizer)) is torch.optim.SGD
    assert again.param_groups[0]["lr"] == 0.1
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    for other in (torch.load(buffer, weights_only=False), copy.deepcopy(model)):
        assert other._module is other
        assert other.load_state_dict.__func__ is torch.nn.Module.load_state_dict
        assert torch.equal(other(data()[0]), model(data()[0]))
    torch.optim.lr_scheduler.StepLR(optimizer, 1)


def test_the_batch_memory_manager_cuts_draws() -> None:
    from opacus.utils.batch_memory_manager import BatchMemoryManager as Theirs

    for lr in (0.1,):
        model, optimizer, loader, training = private(lr=lr)
        sizes, moved = [], 0
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=5, optimizer=optimizer) as pieces:
            for _ in range(3):
                for x, y in pieces:
                    before = [p.detach().clone() for p in model.parameters()]
                    step(model, optimizer, x, y)
                    sizes.append(len(x))
                    moved += any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
        assert training.steps == moved == 15
        assert len(sizes) > 30
        assert max(sizes) <= 5
        assert max(len(x) for _ in range(3) for x, _ in _stepping(loader, model, optimizer)) > 5
        with pytest.raises(ValueError, match="is not the one"):
            BatchMemoryManager(data_loader=loader, max_physical_batch_size=5, optimizer=private()[1])
        with pytest.raises(TypeError, match="what make_private returned"):
            BatchMemoryManager(data_loader=loader.given, max_physical_batch_size=5, optimizer=optimizer)
        manager = Theirs(data_loader=loader, max_physical_batch_size=5, optimizer=optimizer)
        with pytest.raises(AttributeError, match=r"from shapedp\.torch"):
            manager.__enter__()


def _stepping(loader: Any, model: Any, optimizer: Any) -> Any:
    for x, y in loader:
        step(model, optimizer, x, y)
        yield x, y
