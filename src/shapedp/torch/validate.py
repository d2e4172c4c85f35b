"""What a model must not hold if its records are to be told apart."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parallel import DataParallel, DistributedDataParallel

from shapedp.torch.rules import UNIT, rule_for


def check_model(model: nn.Module) -> None:
    """Raise ValueError with cause and remedy for each module that cannot be trained privately."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch Module, got {type(model).__name__}")
    faults = [f"{name or 'the model'}: {fault}" for name, m in model.named_modules() if (fault := fault_of(m))]
    faults += [
        f"{name} is {str(p.dtype).removeprefix('torch.')}: keep trainable parameters in float32 or float64 and run the "
        "forward pass under torch.autocast for speed"
        for name, p in model.named_parameters()
        if p.requires_grad and p.dtype not in (torch.float32, torch.float64)
    ]
    if faults:
        raise ValueError("the model cannot be trained privately: " + "; ".join(faults))


def _rate(module: nn.Module) -> bool:
    """Whether an attribute `dropout` of the module is a rate above zero."""
    rate = vars(module).get("dropout", 0.0)
    return isinstance(rate, float) and rate > 0


def fault_of(module: nn.Module) -> str | None:
    """Why a module is refused, or None."""
    if isinstance(module, DistributedDataParallel | DataParallel):
        return "pass the bare model; the processes of torch.distributed are found by make_private"
    if isinstance(module, LazyModuleMixin) and module.has_uninitialized_params():
        return f"{type(module).__name__} has no parameters yet; run the model once on an input of zeros first"
    if isinstance(module, _InstanceNorm):
        return (
            "set track_running_stats=False: running statistics are not private" if module.track_running_stats else None
        )
    if isinstance(module, _BatchNorm):
        return (
            f"{type(module).__name__} mixes the records of a batch; replace it by nn.GroupNorm (or nn.LayerNorm), "
            "for instance with opacus.validators.ModuleValidator.fix"
        )
    if isinstance(module, nn.RNNBase):
        return f"{type(module).__name__} hides its steps; use the layers of opacus.layers (DPLSTM, DPGRU, DPRNN)"
    if isinstance(module, nn.Embedding | nn.EmbeddingBag) and (
        module.max_norm is not None or module.scale_grad_by_freq or module.sparse
    ):
        return (
            f"{type(module).__name__} with max_norm (which changes the weights of the rows it sees, without noise), "
            "scale_grad_by_freq or sparse gradients mixes records; leave these off"
        )
    if isinstance(module, nn.MultiheadAttention) and not module.batch_first:
        return "build MultiheadAttention with batch_first=True: the record must be the first axis"
    if rule_for(module) is UNIT and any(p.requires_grad for p in module.parameters(recurse=False)):
        noisy = [m for m in module.modules() if isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0]
        if noisy or _rate(module):
            return (
                f"{type(module).__name__} owns parameters and drops out at random inside: its records cannot be run "
                "again alone; set dropout to 0 there, or move the parameters into layers of their own"
            )
    return None
