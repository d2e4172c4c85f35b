"""`transformers.Trainer` with private steps; adapters of peft are trained as any other parameters."""

from __future__ import annotations

import copy
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from shapedp.boundary.documents import read, write
from shapedp.torch.loader import PoissonLoader
from shapedp.torch.madeup import leaves, mapped
from shapedp.torch.owners import Owners
from shapedp.torch.plan import steps_of_epoch
from shapedp.torch.private import make_private
from shapedp.torch.refusals import refusal
from shapedp.torch.training import Processes, Training

try:
    from transformers import Trainer
except ImportError as missing:
    raise ImportError("shapedp.torch.hf needs transformers: pip install 'shapedp[hf]'") from missing

Losses = Callable[[Any, Tensor], Tensor]
_STATE = "privacy.json"
_OURS = ("epochs", "steps", "physical_batch_size", "loss_reduction", "progress", "gradients")
_IGNORED = -100  # the label of a token that does not count, in transformers
_RAW = ("loss", "train_loss", "grad_norm", "total_flos", "num_input_tokens_seen")  # what a log says of the records


class PrivateTrainer(Trainer):  # type: ignore[misc]
    """`transformers.Trainer` whose steps are private: another class name and `privacy=` are all that changes.

    Parameters
    ----------
    privacy : the arguments of `make_private` that say how private: clip, epsilon and delta (or noise_multiplier),
        noise, owner and per_owner, journal, rng, check_records. The number of steps comes from the training arguments.
    losses : from the model's output and the labels to one loss per record; by default the usual ones of
        classification, regression, token classification and causal language models, averaged within each record.
    others : those of `transformers.Trainer`.

    `per_device_train_batch_size` is the most records of one pass, and that times `gradient_accumulation_steps` the
    expected number of records (of persons, with owner) of a draw in each process.

    Guarantee: `trainer.privacy_.certificate` is that of the steps taken. Training losses, gradient norms and the
    number of tokens seen are neither logged nor saved: they are not private. A checkpoint holds the account.
    """

    def __init__(
        self, model: Any = None, args: Any = None, *rest: Any, privacy: Mapping[str, Any], losses: Losses | None = None,
        **others: Any,
    ) -> None:  # fmt: skip
        unknown = [name for name in _OURS if name in privacy]
        if unknown:
            raise ValueError(refusal("trainer-decides", names=", ".join(unknown)))
        taken = [name for name in ("compute_loss_func", "model_init") if others.get(name) is not None]
        if taken:
            raise ValueError(refusal("trainer-hooks", names=", ".join(taken)))
        self.privacy, self.losses = dict(privacy), losses
        self._private: PoissonLoader | None = None
        args = _checked(args)
        self._expected = args.per_device_train_batch_size * args.gradient_accumulation_steps
        args.gradient_accumulation_steps = 1  # pieces of a draw are run within one step
        super().__init__(model, args, *rest, **others)

    @property
    def privacy_(self) -> Training:
        """The private training: its certificate, its steps, the epsilon spent."""
        return self.loader_.privacy_

    @property
    def loader_(self) -> PoissonLoader:
        """The loader of draws; the first one to ask makes model and optimizer private."""
        if self._private is None:
            given = self._plain_loader()
            optimizer = super().create_optimizer()
            options = dict(self.privacy)
            if options.get("noise_multiplier") is None or self.args.max_steps > 0:
                options["steps"] = self._steps(given)
            _, optimizer, self._private = make_private(self.model, optimizer, given, loss_reduction="sum", **options)
            optimizer.register_step_pre_hook(_averaged)
        return self._private

    def create_accelerator_and_postprocess(self) -> None:
        """As ever; but the model is not wrapped for several processes, whose sums are added by the training itself."""
        super().create_accelerator_and_postprocess()
        prepare = self.accelerator.prepare_model

        def bare(model: nn.Module, device_placement: bool | None = None, evaluation_mode: bool = True) -> Any:
            return prepare(model, device_placement=device_placement, evaluation_mode=True)

        self.accelerator.prepare_model = bare

    def get_train_dataloader(self) -> Any:
        """The loader of draws."""
        return self.loader_

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """Run a draw forward and backward, in pieces; the loss is not told to anybody."""
        optimizer = getattr(self.optimizer, "optimizer", self.optimizer)
        if getattr(optimizer, "privacy_", None) is not self.privacy_ or self.model is not self.privacy_.model:
            raise RuntimeError("the trainer's model or optimizer is not the private one: make a new PrivateTrainer")
        model.train()
        batch = dict(self._prepare_inputs(inputs))
        rows = len(leaves(batch)[0])
        few = rows if "owner" in self.privacy else self.args.per_device_train_batch_size
        for start in range(0, rows, few):
            piece = mapped(batch, partial(_rows, rows=rows, start=start, few=few))
            self.loader_.recorder.show(piece)
            with self.compute_loss_context_manager():
                losses = self._record_losses(model, dict(piece))[0]
            torch.autograd.backward(losses.sum())
            del losses, piece
        return torch.zeros((), device=self.args.device)

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
        """For evaluation: the mean of the losses of single records."""
        losses, outputs = self._record_losses(model, dict(inputs))
        return (losses.mean(), outputs) if return_outputs else losses.mean()

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """What is logged beside the losses on training records, which are not private."""
        super().log({name: value for name, value in logs.items() if name not in _RAW}, *args, **kwargs)

    def floating_point_ops(self, inputs: Any) -> int:
        """None are counted: they tell how many records were drawn."""
        return 0

    def _record_losses(self, model: Any, inputs: dict[str, Any]) -> tuple[Tensor, Any]:
        labels = inputs.pop("labels", None)
        if labels is None:
            raise ValueError(refusal("trainer-losses"))
        outputs = model(**inputs)
        found = record_losses(self.model, outputs, labels) if self.losses is None else self.losses(outputs, labels)
        if found.shape != (len(labels),):
            raise ValueError(refusal("trainer-losses"))
        return found, outputs

    def _plain_loader(self) -> DataLoader[Any]:
        dataset, collate = self.train_dataset, self.data_collator
        if dataset is None:
            raise ValueError("Trainer: training requires a train_dataset")
        if hasattr(dataset, "column_names"):
            dataset = self._remove_unused_columns(dataset, description="training")
        else:
            collate = self._get_collator_with_removed_columns(collate, description="training")
        args = self.args
        return DataLoader(
            dataset, self._expected, collate_fn=Collated(collate, wants_positions(self.model)),
            drop_last=args.dataloader_drop_last, num_workers=args.dataloader_num_workers,
            pin_memory=args.dataloader_pin_memory and self.model.device.type == "cuda",
        )  # fmt: skip

    def _steps(self, given: DataLoader[Any]) -> int:
        if self.args.max_steps > 0:
            return int(self.args.max_steps)
        records: int = len(self.train_dataset)
        if "owner" in self.privacy:
            records = len(Owners.of(self.privacy["owner"], records, 1))
        each = steps_of_epoch(records, self._expected * Processes.current().count, bool(given.drop_last))
        total: int = math.ceil(self.args.num_train_epochs * each)
        return total

    # Checkpoints.

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        if self.args.should_save:
            write(Path(output_dir, _STATE), self.privacy_.state_dict())

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            self.privacy_.load_state_dict(read(Path(checkpoint, _STATE)))


@dataclass(frozen=True)
class Collated:
    """A collate function whose batches are plain dicts; `positions` adds each record's position ids, one row each."""

    collate: Callable[[list[Any]], Any]
    positions: bool

    def __call__(self, records: list[Any]) -> dict[str, Any]:
        batch = dict(self.collate(records))
        if self.positions and "position_ids" not in batch:
            ids = batch["input_ids"]
            batch["position_ids"] = torch.arange(ids.shape[1]).expand(ids.shape).clone()
        return batch


def wants_positions(model: Any) -> bool:
    """Whether a trained table of positions is looked up once for all records, unless each record brings its own."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return "position_ids" in inspect.signature(type(base).forward).parameters and any(
        isinstance(m, nn.Embedding) and m.weight.requires_grad and m.padding_idx is None
        for name, m in base.named_modules()
        if re.search(r"position|wpe", name)
    )


def record_losses(model: Any, outputs: Any, labels: Tensor) -> Tensor:
    """One loss per record, from the model's logits: each averages over the record's own tokens or classes only."""
    logits = outputs.logits
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    if logits.ndim == 3 and labels.ndim == 2:
        if type(base).__name__.endswith(("ForCausalLM", "LMHeadModel")):
            logits, labels = logits[:, :-1], labels[:, 1:]
        each = F.cross_entropy(logits.transpose(1, 2).float(), labels, ignore_index=_IGNORED, reduction="none")
        return each.sum(1) / (labels != _IGNORED).sum(1).clamp(min=1)
    if logits.ndim != 2:
        raise ValueError(refusal("trainer-losses"))
    if logits.shape[1] == 1 and labels.ndim == 1:
        return F.mse_loss(logits[:, 0].float(), labels.float(), reduction="none")
    if labels.is_floating_point():
        wrong = F.mse_loss if base.config.problem_type == "regression" else F.binary_cross_entropy_with_logits
        return wrong(logits.float(), labels.reshape(logits.shape).float(), reduction="none").mean(1)
    return F.cross_entropy(logits.float(), labels.reshape(-1), reduction="none")


def _rows(values: Tensor, rows: int, start: int, few: int) -> Tensor:
    """Some rows of what has one for each record; anything else whole."""
    return values[start : start + few] if values.ndim and len(values) == rows else values


def _averaged(optimizer: Any, args: Any, kwargs: Any) -> None:
    """The released sum over the expected number of records: learning rates mean what they mean elsewhere."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                parameter.grad /= optimizer.privacy_.expected


def _checked(args: Any) -> Any:
    """A copy of the training arguments; refuses those under which steps are not private."""
    if args is None:
        raise TypeError("args must be given: the batch sizes and the number of epochs decide the privacy")
    faults = {
        "fp16": args.fp16, "deepspeed": args.deepspeed, "fsdp": args.fsdp, "torch_compile": args.torch_compile,
        "gradient_checkpointing": getattr(args, "gradient_checkpointing", False),
        "activation_checkpointing": getattr(args, "activation_checkpointing", False),
        "auto_find_batch_size": args.auto_find_batch_size,
        "neftune_noise_alpha": getattr(args, "neftune_noise_alpha", None),
        "use_liger_kernel": getattr(args, "use_liger_kernel", False),
        "label_smoothing_factor": args.label_smoothing_factor, "several GPUs in one process": args.n_gpu > 1,
        "include_num_input_tokens_seen": args.include_num_input_tokens_seen not in (False, "no"),
    }  # fmt: skip
    found = [name for name, wrong in faults.items() if wrong]
    if found:
        raise ValueError(refusal("trainer-arguments", names=", ".join(found)))
    args = copy.copy(args)
    args.ignore_data_skip, args.max_grad_norm = True, 0.0  # each draw is a fresh one; clipping is done by record
    return args
