"""Steps of an earlier run counted as those of the run that went on, from a checkpoint or a journal, and what only the
earlier one assumed (its check was switched off) was in no certificate any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
from shapedp.privacy.assumptions import SENTENCES


def private(**options: Any) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.rand(40, 3), torch.arange(40) % 2), batch_size=8)
    return sdp.torch.make_private(model, optimizer, loader, clip=1.0, noise_multiplier=2.0, delta=1e-5, **options)


def epoch(model: Any, optimizer: Any, loader: Any) -> Any:
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return optimizer.privacy_


def test_a_checkpoint_brings_its_assumptions() -> None:
    state = epoch(*private(check_records=False)).state_dict()
    after = private()
    after[1].privacy_.load_state_dict(state)
    found = epoch(*after)
    assert found.steps == 10
    assert {SENTENCES["unchecked"], SENTENCES["records"]} <= set(found.certificate.assumptions)
    again = private()
    again[1].privacy_.load_state_dict(found.state_dict())
    assert SENTENCES["unchecked"] in again[1].privacy_.certificate.assumptions


@pytest.mark.parametrize("checked", [True, False])
def test_a_journal_counts_for_one_set_of_assumptions(tmp_path: Path, checked: bool) -> None:
    journal = tmp_path / "steps"
    epoch(*private(check_records=checked, journal=journal))
    with pytest.raises(ValueError, match="rest on other assumptions"):
        private(check_records=not checked, journal=journal)
    assert epoch(*private(check_records=checked, journal=journal)).steps == 10


def test_a_journal_of_before_is_read(tmp_path: Path) -> None:
    """Its first line has three words."""
    journal = tmp_path / "steps"
    epoch(*private(journal=journal))
    head, _, steps = journal.read_bytes().partition(b"\n")
    journal.write_bytes(b" ".join(head.split()[:3]) + b"\n" + steps)
    assert private(journal=journal)[1].privacy_.steps == 5
