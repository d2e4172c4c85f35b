"""IMDb by `transformers` and LoRA on a GPU: `PrivateTrainer`, per record and per person, against `Trainer`."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from typing import Any

import numpy as np

from _harness import Result, Timing, ratio
from gpu_noise import without_gpu
from shapedp.papers.datasets import MissingDataError

LENGTH, WORDS, BATCH, EPOCHS = 256, 10_000, 500, 3
TEXTS = 5  # of one person


def _reviews(most: int) -> tuple[Any, Any]:
    """Training and test reviews as datasets of fixed-length token rows."""
    import torch
    from torch.utils.data import Dataset

    from shapedp.papers.datasets import load_imdb

    imdb = load_imdb(length=LENGTH, words=WORDS)
    x, y = torch.from_numpy(imdb.x.astype(np.int64)), torch.from_numpy(imdb.y.astype(np.int64))
    order = np.random.default_rng(0).permutation(25_000)[:most]

    class Reviews(Dataset[Any]):
        def __init__(self, rows: Any) -> None:
            self.rows = rows

        def __len__(self) -> int:
            return len(self.rows)

        def __getitem__(self, k: int) -> dict[str, Any]:
            words = x[self.rows[k]]
            return {"input_ids": words, "attention_mask": (words > 0).long(), "label": y[self.rows[k]]}

    return Reviews(order), Reviews(25_000 + order)


def _classifier() -> Any:
    """Four layers of BERT at random weights, with LoRA of rank 8 on queries and values."""
    import torch
    from peft import LoraConfig, TaskType, get_peft_model
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=WORDS + 1, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
    )
    adapters = LoraConfig(task_type=TaskType.SEQ_CLS, r=8, target_modules=["query", "value"])
    return get_peft_model(BertForSequenceClassification(config), adapters)


def _trained(privacy: dict[str, Any] | None, train: Any, test: Any, epochs: int) -> tuple[float, float, str]:
    """Seconds of an epoch, accuracy on the test reviews, and what is certified."""
    import torch
    from transformers import Trainer, TrainingArguments

    from shapedp.torch.hf import PrivateTrainer

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=BATCH,
            per_device_eval_batch_size=BATCH,
            num_train_epochs=epochs,
            learning_rate=1e-2,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer: Any = (
            Trainer(_classifier(), arguments, train_dataset=train)
            if privacy is None
            else PrivateTrainer(_classifier(), arguments, train_dataset=train, privacy=privacy)
        )
        torch.cuda.synchronize()
        start = time.perf_counter()
        trainer.train()
        torch.cuda.synchronize()
        took = (time.perf_counter() - start) / epochs
        found = trainer.predict(test)
        right = float((found.predictions.argmax(1) == found.label_ids).mean())
    if privacy is None:
        return took, right, "no privacy"
    made = trainer.privacy_
    return (
        took,
        right,
        f"{made.certificate.verdict} at ({privacy['epsilon']:g}, {privacy['delta']:g}), {made.steps} steps",
    )


def run(quick: bool) -> Result:
    try:
        import torch
    except ImportError:
        return without_gpu("gpu_imdb")
    if not torch.cuda.is_available() or importlib.util.find_spec("peft") is None:
        return without_gpu("gpu_imdb")
    try:
        train, test = _reviews(2_000 if quick else 25_000)
    except MissingDataError as why:
        return Result("gpu_imdb", what=f"not run: {why}")
    import transformers

    epochs = 1 if quick else EPOCHS
    result = Result(
        "gpu_imdb",
        what=f"{len(train):,} reviews of {LENGTH} tokens, batches of {BATCH}, {epochs} epochs, BERT of 4 layers with "
        f"LoRA of rank 8; {torch.cuda.get_device_name()}",
        peers={"torch": torch.__version__, "transformers": transformers.__version__},
    )
    people = [k // TEXTS for k in range(len(train))]
    kinds: dict[str, dict[str, Any] | None] = {
        "Trainer": None,
        "PrivateTrainer": {"clip": 1.0, "epsilon": 8.0, "delta": 1e-5},
        f"PrivateTrainer, persons of {TEXTS} texts": {
            "clip": 1.0,
            "epsilon": 8.0,
            "delta": 1e-5,
            "owner": people,
            "per_owner": TEXTS,
        },
    }
    _trained(None, train, test, 1)  # compiles and caches
    for name, privacy in kinds.items():
        took, right, said = _trained(privacy, train, test, epochs)
        result.timings[name] = Timing((took,), 1)
        result.figure(f"{name}: accuracy on {len(test):,} other reviews", right)
        result.notes.append(f"{name}: {said}.")
    for name in list(kinds)[1:]:
        result.ratio(f"{name} / Trainer, an epoch", ratio(result.timings, name, "Trainer"))
    result.notes.append("Weights start at random: accuracy is not what a pretrained model would reach.")
    return result
