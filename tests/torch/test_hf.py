"""transformers.Trainer and adapters, private: the sums, the account, the logs, the checkpoints, two processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import UserDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.torch.texts import Texts, adapted, bert, gpt2, padded, trainer
from torch import nn
from torch.nn import functional as F

from shapedp.torch import BudgetError, RecordError
from shapedp.torch.loader import Part

pytest.importorskip("transformers", reason="transformers is not installed (the extra hf)")
pytest.importorskip("peft", reason="peft is not installed (the extra hf)")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

from shapedp.torch.hf import PrivateTrainer, record_losses  # noqa: E402

ROOT = Path(__file__).parents[2]


class LowRank(nn.Module):
    """A frozen linear layer with a trained product of two thin ones beside it."""

    def __init__(self, given: nn.Linear, rank: int) -> None:
        super().__init__()
        self.given = given.requires_grad_(False)
        self.down, self.up = nn.Linear(given.in_features, rank, bias=False), nn.Linear(rank, given.out_features)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.given(x) + self.up(self.down(x))
        return out


def with_own_adapters(model: Any) -> nn.Module:
    """Low-rank adapters of a few lines, without peft."""
    model.requires_grad_(False)
    model.classifier.requires_grad_(True)
    for layer in model.bert.encoder.layer:
        layer.attention.self.query = LowRank(layer.attention.self.query, 2)
    found: nn.Module = model
    return found


MODELS = {
    "bert": bert,
    "gpt2": gpt2,
    "bert with peft": lambda dropout=0.1: adapted(bert(dropout)),
    "gpt2 with peft": lambda dropout=0.1: adapted(gpt2(dropout)),
    "bert with own adapters": lambda dropout=0.1: with_own_adapters(bert(dropout)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_trainer_is_private(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    before = {key: p.detach().clone() for key, p in model.named_parameters()}
    names = list(model.state_dict())
    run = trainer(model, tmp_path, {"clip": 1.0, "epsilon": 4.0, "delta": 1e-3})
    run.train()
    training = run.privacy_
    assert (training.steps, training.planned.steps, training.expected) == (6, 6, 20)
    assert training.certificate.verdict == "certified"
    assert training.certificate.secure is True
    assert 3.9 < training.epsilon().upper <= 4.0
    for key, p in model.named_parameters():
        assert p.requires_grad == (not torch.equal(p, before[key])) or "dense" in key, key
    assert list(model.state_dict()) == names
    assert np.isfinite(run.evaluate()["eval_loss"])


def summed(run: Any, rows: list[int]) -> torch.Tensor:
    """The sum to which a step on these records would add noise."""
    loader = run.loader_
    data = run.train_dataset
    loader.privacy_.receive(Part(len(rows), True))
    run.training_step(run.model, loader.given.collate_fn([data[k] for k in rows]))
    loader.privacy_.flush()
    found: torch.Tensor = loader.privacy_.total
    loader.privacy_._drop()
    return found


@pytest.mark.parametrize("name", MODELS)
def test_a_record_moves_the_sum_by_the_clip_at_most(name: str, tmp_path: Path) -> None:
    """Whoever leaves, the longest text included; and the sum is that of a loop over single records."""
    run = trainer(MODELS[name](dropout=0.0), tmp_path, per_device_train_batch_size=20, gradient_accumulation_steps=1)
    rows, radius = list(range(12)), run.loader_.privacy_.mechanism.sensitivity.radius
    whole = summed(run, rows)
    for out in rows:
        rest = summed(run, [k for k in rows if k != out])
        assert (whole - rest).norm() <= radius
    one = sum(summed(run, [k]) for k in rows)
    assert (one - whole).norm() <= 1e-5 * whole.norm()
    layout, loop = run.loader_.privacy_.layout, torch.zeros_like(whole)
    model = run.model.eval()
    for k in rows:
        batch = padded([run.train_dataset[k]])
        loss = F.cross_entropy(model(**{n: v for n, v in batch.items() if n != "labels"}).logits, batch["labels"])
        trained = dict(model.named_parameters())
        flat = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, [trained[n] for n in layout.names])])
        loop += (flat * min(1.0, 0.5 / float(flat.norm()))).double()
    assert (loop - whole).norm() <= 1e-5 * whole.norm()


def test_pieces_of_a_draw_have_the_sum_of_the_whole(tmp_path: Path) -> None:
    whole = trainer(bert(0.0), tmp_path, per_device_train_batch_size=20, gradient_accumulation_steps=1)
    cut = trainer(bert(0.0), tmp_path, per_device_train_batch_size=3, gradient_accumulation_steps=7)
    assert cut.loader_.privacy_.expected == 21
    one, two = summed(whole, list(range(14))), summed(cut, list(range(14)))
    assert (one - two).norm() <= 1e-5 * one.norm()


@pytest.mark.parametrize("kind", [dict, UserDict])
def test_padding_that_mixes_records_is_refused(kind: Any, tmp_path: Path) -> None:
    """Without a mask a text is read with the filling that the longest brings; tokenizers return no dict."""
    run = trainer(bert(), tmp_path, data_collator=lambda records: kind(padded(records, masked=False)))
    with pytest.raises(RecordError, match="collate_fn"):
        run.train()
    assert run.privacy_.steps == 0
    run = trainer(bert(), tmp_path, data_collator=lambda records: kind(padded(records)), max_steps=1)
    run.train()
    assert run.privacy_.steps == 1


def test_the_collator_of_transformers_is_taken(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models
    from transformers import DataCollatorWithPadding, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({f"w{k}": k for k in range(50)}, unk_token="w1"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0", unk_token="w1")

    class Tokens(Texts):
        def __getitem__(self, k: int) -> dict[str, Any]:
            found = super().__getitem__(k)
            return found | {"attention_mask": [1] * len(found["input_ids"])}

    run = trainer(
        bert(), tmp_path, data_collator=DataCollatorWithPadding(tokenizer), max_steps=2, train_dataset=Tokens(60)
    )
    run.train()
    assert run.privacy_.steps == 2
    assert run.loader_.recorder._probe.waiting is False


def test_masks_of_dropout_do_not_follow_the_seed(tmp_path: Path) -> None:
    """Attention's dropout included; the caller's own generator goes on as if nothing had been drawn."""
    sums, after = [], []
    for _ in range(2):
        run = trainer(bert(0.5), tmp_path, per_device_train_batch_size=20, gradient_accumulation_steps=1)
        summed(run, [0, 1, 2])  # the check on made-up records
        torch.manual_seed(7)
        sums.append(summed(run, list(range(8))))
        after.append(torch.rand(3))
    torch.manual_seed(7)
    assert not torch.allclose(sums[0], sums[1], rtol=1e-2)
    assert torch.equal(after[0], after[1])
    assert torch.equal(after[0], torch.rand(3))


def test_neither_logs_nor_files_tell_of_losses_on_records(tmp_path: Path) -> None:
    run = trainer(bert(), tmp_path, save_strategy="steps", save_steps=3, logging_steps=1, eval_strategy="epoch")
    run.train()
    text = Path(tmp_path, "checkpoint-6", "trainer_state.json").read_text()
    state = json.loads(text)
    assert len(state["log_history"]) >= 6
    for entry in state["log_history"]:
        assert not {"loss", "grad_norm", "train_loss", "total_flos"} & set(entry)
    assert any("eval_loss" in entry for entry in state["log_history"])
    assert state["total_flos"] == 0
    assert state["num_input_tokens_seen"] == 0


def test_a_checkpoint_holds_the_account(tmp_path: Path) -> None:
    claim = {"clip": 1.0, "epsilon": 4.0, "delta": 1e-3}
    first = trainer(bert(), tmp_path, claim, save_strategy="steps", save_steps=4)
    first.train()
    assert first.privacy_.steps == 6
    later = trainer(bert(), tmp_path, claim)
    later.train(resume_from_checkpoint=str(Path(tmp_path, "checkpoint-4")))
    assert later.privacy_.steps == 6
    assert later.privacy_.epsilon().upper <= 4.0
    with pytest.raises(BudgetError):
        later.train()


def test_persons_in_a_trainer(tmp_path: Path) -> None:
    """Texts of one author are clipped together, and run in one pass."""
    authors = [k // 3 for k in range(60)]
    privacy = {"clip": 1.0, "epsilon": 4.0, "delta": 1e-2, "owner": authors, "per_owner": 2}
    run = trainer(adapted(bert()), tmp_path, privacy, per_device_train_batch_size=2, gradient_accumulation_steps=2)
    run.train()
    planned = run.privacy_.planned
    assert (planned.records, planned.batch_size, planned.per_owner, run.privacy_.steps) == (20, 4, 2, 10)
    assert "per person" in run.privacy_.certificate.scope


def test_losses_are_averaged_within_each_record() -> None:
    """As the model's own loss on the record alone, whatever the batch."""
    model = gpt2(0.0, causal=True)
    ids = torch.randint(2, 50, (4, 9))
    labels = ids.clone()
    labels[0, 5:] = labels[1, 2:] = -100
    found = record_losses(model, model(input_ids=ids), labels)
    alone = [model(input_ids=ids[k : k + 1], labels=labels[k : k + 1]).loss for k in range(4)]
    assert torch.allclose(found, torch.stack(alone), atol=1e-5)
    assert not torch.isclose(found.mean(), model(input_ids=ids, labels=labels).loss, rtol=5e-4)  # mixes records


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    for options, text in (
        ({"gradient_checkpointing": True}, "gradient_checkpointing"),
        ({"auto_find_batch_size": True}, "auto_find_batch_size"),
        ({"label_smoothing_factor": 0.1}, "label_smoothing_factor"),
        ({"neftune_noise_alpha": 5.0}, "neftune_noise_alpha"),
    ):
        with pytest.raises(ValueError, match=text):
            trainer(bert(), tmp_path, **options)
    with pytest.raises(ValueError, match="num_train_epochs"):
        trainer(bert(), tmp_path, {"clip": 1.0, "epsilon": 1.0, "delta": 1e-3, "epochs": 3})
    with pytest.raises(TypeError, match="args must be given"):
        PrivateTrainer(bert(), privacy={"clip": 1.0})
    for name in ("compute_loss_func", "model_init"):
        with pytest.raises(ValueError, match=f"takes no {name}"):
            PrivateTrainer(bert(), trainer(bert(), tmp_path).args, privacy={"clip": 1.0}, **{name: bert})
    run = trainer(bert(), tmp_path)
    run.losses = lambda outputs, labels: F.cross_entropy(outputs.logits, labels)
    with pytest.raises(ValueError, match="one loss per record"):
        run.train()


def test_a_model_put_in_after_it_was_made_private_is_not_trained(tmp_path: Path) -> None:
    """It would be trained without noise."""
    run = trainer(bert(), tmp_path)
    assert run.loader_ is not None
    run.model = run.model_wrapped = bert()
    before = [p.detach().clone() for p in run.model.parameters()]
    with pytest.raises(RuntimeError, match="not the private one"):
        run.train()
    assert all(torch.equal(a, b) for a, b in zip(before, run.model.parameters(), strict=True))
    run = trainer(bert(), tmp_path)
    assert run.loader_ is not None
    run.optimizer = torch.optim.SGD(run.model.parameters(), lr=0.1)
    with pytest.raises(RuntimeError, match="not the private one"):
        run.train()


@pytest.mark.parametrize("name", ["bert", "gpt2 with peft"])
def test_half_precision_takes_a_sum(name: str, tmp_path: Path) -> None:
    run = trainer(MODELS[name](), tmp_path, bf16=True, max_steps=2)
    run.train()
    assert run.privacy_.steps == 2
    assert run.privacy_.mean is False


def test_a_sharded_model_is_refused() -> None:
    class Sharded(nn.Parameter):
        def full_tensor(self) -> None: ...

    model = nn.Linear(2, 1)
    model.weight = Sharded(model.weight.detach())
    from shapedp.torch.validate import check_model

    with pytest.raises(ValueError, match="FSDP"):
        check_model(model)


def test_two_processes_train_one_model(tmp_path: Path) -> None:
    """Both end with the same weights; the noise is drawn in the first alone; the certificate is of the whole."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = Path(__file__).with_name("two_trainers.py")
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(script), str(tmp_path)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {
                "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
            },
        )
        for rank in range(2)
    ]  # fmt: skip
    answers = []
    for process in running:
        out, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
        answers.append(json.loads(out.splitlines()[-1]))
    first, second = answers
    assert first["weights"] == second["weights"] != first["start"]
    assert first["epsilon"] == second["epsilon"]
    assert (first["batch"], first["records"], first["steps"]) == (16, 60, 4)
    assert first["noise"] > 0
    assert second["noise"] == 0
    assert not set(first["drawn"]) & set(second["drawn"])
    assert len(set(first["drawn"])) > 5
    assert sorted(first["ranks"] + second["ranks"]) == [0, 1]


def to_twelve(records: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Texts filled up to twelve words, whoever else is there."""
    return {
        name: F.pad(rows, (0, 12 - rows.shape[1])) if rows.ndim > 1 else rows for name, rows in padded(records).items()
    }


class Averaged(nn.Module):
    """Words averaged under their mask, which is always there."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(50, 8), nn.Linear(8, 2)

    def forward(self, input_ids: Any, attention_mask: Any, labels: Any = None) -> Any:
        from transformers.modeling_outputs import SequenceClassifierOutput

        there = attention_mask[..., None].float()
        logits: Any = self.head((self.words(input_ids) * there).sum(1) / there.sum(1).clamp(min=1.0))
        return SequenceClassifierOutput(logits=logits)


INDEPENDENT = {"clip": 1.0, "epsilon": 4.0, "delta": 1e-3, "independent": True}


def test_independent_records_in_texts_of_one_length(tmp_path: Path) -> None:
    run = trainer(Averaged(), tmp_path, INDEPENDENT, data_collator=to_twelve)
    run.train()
    assert run.privacy_.steps == 6
    assert run.privacy_.planned.independent
    assert "values of other rows" in run.privacy_.certificate.assumptions[0]


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_mask_that_is_dropped_where_nothing_is_padded_is_no_independence(name: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="which operations"):
        trainer(MODELS[name](), tmp_path, INDEPENDENT, data_collator=to_twelve).train()
