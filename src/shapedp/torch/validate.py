"""What models, optimizers and loaders must not hold if records are to be told apart."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, RandomSampler, SequentialSampler

from shapedp.torch.refusals import refusal
from shapedp.torch.rules import UNIT, rule_for

_USUAL = (RandomSampler, SequentialSampler, DistributedSampler)


def check_model(model: nn.Module) -> None:
    """Raise ValueError with cause and remedy for each module that cannot be trained privately."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch Module, got {type(model).__name__}")
    faults = [f"{name or 'the model'}: {fault}" for name, m in model.named_modules() if (fault := fault_of(m))]
    trained = {name: p.dtype for name, p in model.named_parameters() if p.requires_grad}
    coarse = {name: kind for name, kind in trained.items() if kind not in (torch.float32, torch.float64)}
    faults += [refusal("coarse-parameter", name=name, kind=kind) for name, kind in coarse.items()]
    if faults:
        raise ValueError("the model cannot be trained privately: " + "; ".join(faults))


def fault_of(module: nn.Module) -> str | None:
    """Why a module is refused, or None."""
    if isinstance(module, DistributedDataParallel | DataParallel):
        return "pass the bare model; the processes of torch.distributed are found by make_private"
    wrapped = type(module).__module__.startswith("torch.distributed.fsdp")
    if wrapped or any(hasattr(p, "full_tensor") for p in module.parameters(recurse=False)):
        return refusal("sharded")
    if isinstance(module, LazyModuleMixin) and module.has_uninitialized_params():
        return f"{type(module).__name__} has no parameters yet; run the model once on an input of zeros first"
    if isinstance(module, _InstanceNorm) and module.track_running_stats:
        return "set track_running_stats=False: running statistics are not private"
    if isinstance(module, _BatchNorm):
        return refusal("batch-norm", kind=type(module).__name__)
    if isinstance(module, nn.RNNBase):
        return f"{type(module).__name__} hides its steps; use the layers of opacus.layers (DPLSTM, DPGRU, DPRNN)"
    if isinstance(module, nn.Embedding | nn.EmbeddingBag) and (
        module.max_norm is not None or module.scale_grad_by_freq or module.sparse
    ):
        return refusal("embedding-options", kind=type(module).__name__)
    if isinstance(module, nn.MultiheadAttention) and not module.batch_first:
        return "build MultiheadAttention with batch_first=True: the record must be the first axis"
    if rule_for(module) is UNIT and any(p.requires_grad for p in module.parameters(recurse=False)):
        rates = [m.p for m in module.modules() if isinstance(m, nn.modules.dropout._DropoutNd)]
        if any(isinstance(rate, float) and rate > 0 for rate in (*rates, vars(module).get("dropout"))):
            return refusal("dropout-inside", kind=type(module).__name__)
    return None


def check_optimizer(optimizer: Any, model: nn.Module) -> None:
    """Raise where the optimizer cannot be made private, or holds parameters that are not the model's."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer must be a torch Optimizer, got {type(optimizer).__name__}")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("LBFGS evaluates the loss inside its step: use a first-order optimizer")
    if hasattr(optimizer, "privacy_"):
        raise ValueError("this optimizer is private already: make a new one")
    known = {id(parameter) for parameter in model.parameters()}
    if any(id(p) not in known for group in optimizer.param_groups for p in group["params"]):
        raise ValueError("the optimizer holds parameters that are not the model's: they would be trained without noise")


def checked_loader(loader: Any) -> tuple[int, int]:
    """(records, batch size) of a loader whose batches can be drawn anew; refuses others."""
    if not isinstance(loader, DataLoader):
        raise TypeError(f"loader must be a torch DataLoader, got {type(loader).__name__}")
    if isinstance(loader.dataset, IterableDataset):
        raise ValueError("an IterableDataset cannot be Poisson-sampled: use a dataset with __len__ and __getitem__")
    if loader.batch_size is None:
        raise ValueError("the loader must have a batch_size: it is the expected size of the Poisson batches")
    if not isinstance(loader.sampler, _USUAL):
        raise ValueError(refusal("sampler", kind=type(loader.sampler).__name__))
    records = len(loader.dataset)  # type: ignore[arg-type]
    if not 0 < loader.batch_size <= records:
        raise ValueError(f"batch_size must lie between 1 and the number of records {records}, got {loader.batch_size}")
    return records, loader.batch_size
