"""Small texts, models made by config, and trainers for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

WORDS = 50


class Texts(Dataset[Any]):
    """Lists of word numbers of 3 to 11 words; label 1 where word 7 is among them."""

    def __init__(self, n: int) -> None:
        draw = np.random.default_rng(0)
        self.texts = [draw.integers(2, WORDS, size=int(draw.integers(3, 12))).tolist() for _ in range(n)]
        for k in range(0, n, 2):
            self.texts[k][0] = 7

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, k: int) -> dict[str, Any]:
        return {"input_ids": self.texts[k], "label": int(7 in self.texts[k])}


def padded(records: list[dict[str, Any]], masked: bool = True) -> dict[str, torch.Tensor]:
    """Texts filled up to the longest of them."""
    longest = max(len(one["input_ids"]) for one in records)
    sizes = torch.tensor([len(one["input_ids"]) for one in records])
    ids = torch.tensor([one["input_ids"] + [0] * (longest - len(one["input_ids"])) for one in records])
    batch = {"input_ids": ids, "labels": torch.tensor([one["label"] for one in records])}
    return batch | ({"attention_mask": (torch.arange(longest) < sizes[:, None]).long()} if masked else {})


def bert(dropout: float = 0.1) -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=WORDS, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
            max_position_embeddings=32, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
        )
    )  # fmt: skip


def gpt2(dropout: float = 0.1, causal: bool = False) -> nn.Module:
    from transformers import GPT2Config, GPT2ForSequenceClassification, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=WORDS, n_embd=16, n_layer=1, n_head=2, n_positions=32, pad_token_id=0, bos_token_id=1,
        eos_token_id=1, resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout,
    )  # fmt: skip
    return GPT2LMHeadModel(config) if causal else GPT2ForSequenceClassification(config)


def adapted(model: nn.Module) -> nn.Module:
    """With adapters of peft."""
    from peft import LoraConfig, TaskType, get_peft_model

    targets = ["c_attn"] if type(model).__name__.startswith("GPT2") else ["query", "value"]
    found: nn.Module = get_peft_model(model, LoraConfig(task_type=TaskType.SEQ_CLS, r=2, target_modules=targets))
    return found


def trainer(model: nn.Module, folder: Path, privacy: dict[str, Any] | None = None, **options: Any) -> Any:
    from transformers import TrainingArguments

    from shapedp.torch.hf import PrivateTrainer

    given = {"data_collator": padded, "train_dataset": Texts(60), "eval_dataset": Texts(20)}
    given |= {name: options.pop(name) for name in list(given) if name in options}
    settings = {
        "per_device_train_batch_size": 5, "gradient_accumulation_steps": 4, "num_train_epochs": 2, "report_to": [],
        "use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "logging_steps": 1, "learning_rate": 1e-3,
        "remove_unused_columns": False,
    }  # fmt: skip
    settings |= options
    private = {"clip": 0.5, "noise_multiplier": 1.0, "delta": 1e-3} if privacy is None else privacy
    return PrivateTrainer(model, TrainingArguments(output_dir=str(folder), **settings), privacy=private, **given)
