"""Code written for Opacus runs with one import changed, and spends what Opacus' own accountant says."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.torch.helpers import RECORDS, data, empty_step, gradient, network, step
from torch.utils.data import DataLoader, TensorDataset

from shapedp.torch import Flat, PerLayer, PrivacyEngine
from shapedp.torch.loader import Part


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
        ({"batch_first": False}, "first axis"),
        ({"wrap_model": False}, "your model itself"),
        ({"grad_sample_mode": "ghost_fsdp"}, "grad_sample_mode must be one of"),
        ({"grad_sample_mode": "ghost", "criterion": torch.nn.MSELoss(reduction="sum")}, "reduction = 'mean'"),
        ({"clipping": "adaptive"}, "clipping must be one of"),
        ({"max_grad_norm": [1.0, 2.0]}, "per_layer"),
        ({"noise_generator": torch.Generator()}, "pass rng="),
    ):
        with pytest.raises(ValueError, match=text):
            engine.make_private(**(arguments(network()) | {"noise_multiplier": 1.0} | options))


def test_no_delta_no_certificate() -> None:
    engine = PrivacyEngine()
    engine.make_private(**arguments(network()), noise_multiplier=1.0)
    assert engine.training is not None
    with pytest.raises(ValueError, match="no delta was named"):
        _ = engine.training.certificate


def test_accountants_have_names() -> None:
    for name in ("prv", "rdp", "gdp"):
        PrivacyEngine(accountant=name)
    with pytest.raises(ValueError, match="accountant must be one of"):
        PrivacyEngine(accountant="nonsense")


def trained(engine: PrivacyEngine, steps: int, noise_multiplier: float) -> tuple[Any, Any]:
    model, optimizer, _ = engine.make_private(**arguments(network()), noise_multiplier=noise_multiplier)
    for _ in range(steps):
        empty_step(optimizer.privacy_, optimizer)
    return model, optimizer


def test_an_engine_counts_all_its_trainings() -> None:
    """Also the steps that an earlier training takes after a later one was made."""
    from opacus.accountants import PRVAccountant

    engine, theirs = PrivacyEngine(), PRVAccountant()
    _, first = trained(engine, 20, 0.6)
    alone = engine.get_epsilon(1e-5)
    _, second = trained(engine, 0, 2.0)
    assert engine.get_epsilon(1e-5) == alone
    for optimizer in (second, first):
        for _ in range(5):
            empty_step(optimizer.privacy_, optimizer)
    for sigma, steps in ((0.6, 25), (2.0, 5)):
        for _ in range(steps):
            theirs.step(noise_multiplier=sigma, sample_rate=12 / 60)
    assert engine.get_epsilon(1e-5) == pytest.approx(theirs.get_epsilon(1e-5), rel=2e-2)
    assert len(engine.accountant) == 30
    with pytest.raises(ValueError, match="spent privacy already"):
        engine.make_private_with_epsilon(**arguments(network()), target_epsilon=3.0, target_delta=1e-5, epochs=1)


def test_checkpoints(tmp_path: Path) -> None:
    engine = PrivacyEngine()
    trained(engine, 3, 0.8)
    model, optimizer = trained(engine, 2, 1.5)
    engine.save_checkpoint(path=tmp_path / "a.pt", module=model, optimizer=optimizer, checkpoint_dict={"epoch": 7})
    buffer = io.BytesIO()
    engine.save_checkpoint(path=buffer, module=model)
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]

    later = PrivacyEngine()
    with pytest.raises(RuntimeError, match="make_private first"):
        later.load_checkpoint(path=tmp_path / "a.pt", module=model)
    new, sgd = trained(later, 0, 1.5)
    found = later.load_checkpoint(path=tmp_path / "a.pt", module=new, optimizer=sgd)
    assert found["epoch"] == 7
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), new.parameters(), strict=True))
    assert later.get_epsilon(1e-5) == pytest.approx(engine.get_epsilon(1e-5), rel=1e-9)
    assert len(later.accountant) == 5
    with pytest.raises(ValueError, match="before the first step"):
        later.load_checkpoint(path=tmp_path / "a.pt", module=new)
    last = PrivacyEngine()
    new, sgd = trained(last, 0, 1.5)
    buffer.seek(0)
    with pytest.warns(UserWarning, match="none was loaded"):
        last.load_checkpoint(path=buffer, module=new, optimizer=sgd)
    with pytest.raises(ValueError, match="schedulers"):
        last.save_checkpoint(path=buffer, module=new, noise_scheduler=1)
    with pytest.raises(TypeError, match="torch_load_kwargs"):
        last.load_checkpoint(path=buffer, module=new, torch_save_kwargs={})


def test_a_checkpoint_of_opacus_is_taken_over(tmp_path: Path) -> None:
    from opacus.accountants import PRVAccountant

    theirs = PRVAccountant()
    for _ in range(30):
        theirs.step(noise_multiplier=1.0, sample_rate=0.2)
    engine, given = PrivacyEngine(), network()
    model, optimizer = trained(engine, 0, 1.0)
    weights = {f"_module.{name}": value for name, value in given.state_dict().items()}
    states = {"module_state_dict": weights, "privacy_accountant_state_dict": theirs.state_dict()}
    torch.save(states, tmp_path / "theirs.pt")
    engine.load_checkpoint(path=tmp_path / "theirs.pt", module=model)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), given.parameters(), strict=True))
    assert len(engine.accountant) == 30
    for _ in range(5):
        empty_step(optimizer.privacy_, optimizer)
        theirs.step(noise_multiplier=1.0, sample_rate=12 / 60)
    assert engine.get_epsilon(1e-5) == pytest.approx(theirs.get_epsilon(1e-5), rel=2e-2)
    assert optimizer.privacy_.account.secure is False
    del states["privacy_accountant_state_dict"]["history"]
    torch.save(states, tmp_path / "neither.pt")
    anew = PrivacyEngine()
    model, _ = trained(anew, 0, 1.0)
    with pytest.raises(ValueError, match="neither one of shapedp nor one of Opacus"):
        anew.load_checkpoint(path=tmp_path / "neither.pt", module=model)


def test_a_target_counts_the_steps_that_opacus_took(tmp_path: Path) -> None:
    """A claim that held for the planned steps alone is refused where Opacus' steps come on top."""
    from opacus.accountants import RDPAccountant

    theirs = RDPAccountant()
    theirs.step(noise_multiplier=0.5, sample_rate=0.2)
    engine = PrivacyEngine()
    model, optimizer, _ = engine.make_private_with_epsilon(
        **arguments(network()), target_epsilon=1.0, target_delta=1e-5, epochs=2
    )
    states = {"module_state_dict": model.state_dict(), "privacy_accountant_state_dict": theirs.state_dict()}
    torch.save(states, tmp_path / "theirs.pt")
    with pytest.raises(RuntimeError, match="refuted"):
        engine.load_checkpoint(path=tmp_path / "theirs.pt", module=model)
    assert optimizer.privacy_.steps == 0


def test_models_are_judged_and_mended() -> None:
    engine = PrivacyEngine()
    bad = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8))
    assert not engine.is_compatible(module=bad, optimizer=None, data_loader=None)
    with pytest.raises(ValueError, match="GroupNorm"):
        engine.validate(module=bad, optimizer=None, data_loader=None)
    good = engine.get_compatible_module(bad)
    assert engine.is_compatible(module=good)
    given = arguments(network())
    rest = {"module": given["module"], "data_loader": given["data_loader"]}
    assert engine.is_compatible(**rest, optimizer=given["optimizer"])
    assert not engine.is_compatible(**rest, optimizer=torch.optim.LBFGS(given["module"].parameters()))
    assert not engine.is_compatible(
        module=given["module"], data_loader=DataLoader(TensorDataset(*data()), batch_size=99)
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_ghost_mode_returns_a_criterion_with_the_values_of_opacus(reduction: str) -> None:
    import opacus

    x, y = data()
    weights = torch.tensor([1.0, 50.0, 1.0, 1.0, 1.0])
    for given, target, shape in (
        (torch.nn.CrossEntropyLoss(weight=weights, reduction=reduction), y[:9], None),
        (torch.nn.CrossEntropyLoss(reduction=reduction, ignore_index=1), y[:12], (4, 3, 5)),
    ):
        values = []
        for engine in (opacus.PrivacyEngine(), PrivacyEngine()):
            model, _, criterion, _ = engine.make_private(
                **arguments(network()), noise_multiplier=1.0, criterion=given, loss_reduction=reduction,
                grad_sample_mode="ghost", wrap_model=True, rand_on_empty=True,
            )  # fmt: skip
            values.append(float(criterion(model(x[: len(target)]), target, shape=shape).detach()))
        assert values[0] == pytest.approx(values[1], rel=1e-5)
        assert given.reduction == reduction


def test_the_criterion_of_ghost_mode_keeps_class_weights_within_their_records() -> None:
    """Its mean divides by the records: one record moves the sum by the clip at most, and not through the others."""
    x, y = data()
    weights = torch.tensor([1.0, 1000.0, 1.0, 1.0, 1.0])
    sums = []
    for rows in (range(12), range(1, 12)):
        loss = torch.nn.CrossEntropyLoss(weight=weights)
        model, optimizer, criterion, _ = PrivacyEngine().make_private(
            **arguments(network()), noise_multiplier=1e-6, criterion=loss, grad_sample_mode="ghost"
        )
        optimizer.privacy_.receive(Part(len(rows), True))
        criterion(model(x[list(rows)]), y[list(rows)]).backward()
        optimizer.step()
        sums.append(gradient(model) * 12)
    assert (sums[0] - sums[1]).norm() <= 1.0001
