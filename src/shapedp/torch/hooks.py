"""Per-record gradients by Opacus' hooks: the same numbers by another route."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from shapedp.torch.layout import Layout
from shapedp.torch.pieces import Dense
from shapedp.torch.probe import Probe
from shapedp.torch.recorder import RecordError, check_precision, leave_tf32, sites_of
from shapedp.torch.sums import Gradients


@dataclass(eq=False)
class OpacusRecorder:
    """Hands over the `grad_sample` that Opacus' GradSampleModule leaves on each parameter."""

    model: nn.Module
    layout: Layout
    mean: bool
    on_pass: Callable[[int, Gradients, float], None]
    probe: bool = True
    real: Callable[[], bool] = lambda: True
    _handles: list[Any] = field(default_factory=list)

    def attach(self) -> None:
        """Add Opacus' hooks to the model's layers."""
        try:
            from opacus.grad_sample import GradSampleModule
        except ImportError:
            raise ImportError("gradients='opacus' needs opacus: pip install 'shapedp[torch]'") from None
        leave_tf32(self.mean, next(self.model.parameters()).device)
        reduction = "mean" if self.mean else "sum"
        self._wrapped = GradSampleModule(self.model, batch_first=True, loss_reduction=reduction)
        self._handles.append(self.model.register_forward_pre_hook(self._begin))
        layers = [(site.name, site.module) for site in sites_of(self.model, self.layout)]
        self._probe = Probe(self.model, layers, self.real)
        if self.probe:
            self._probe.attach(guard=True)

    def detach(self) -> None:
        """Remove the hooks."""
        self._probe.detach()
        self._wrapped.remove_hooks()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _begin(self, model: nn.Module, args: Any) -> None:
        if self.model.training and torch.is_grad_enabled():
            self.flush()
            device = next(self.model.parameters()).device
            half = [torch.get_autocast_dtype(device.type)] if torch.is_autocast_enabled(device.type) else []
            check_precision(self.mean, device, *half)

    def flush(self) -> None:
        """Hand over the pass that was run backward, if one was."""
        named = dict(self.model.named_parameters())
        found: Gradients = {}
        for place, name in enumerate(self.layout.names):
            parameter: Any = named[name]
            value = getattr(parameter, "grad_sample", None)
            if value is not None:
                if not isinstance(value, torch.Tensor):
                    raise RecordError("a batch was run backward twice: each record may add its gradient once a step")
                found[place] = Dense(value.detach())
                parameter.grad_sample = parameter.grad = None
        if not found:
            return
        sizes = {len(piece.dense()) for piece in found.values()}
        if len(sizes) > 1:
            raise RecordError(f"layers of one pass saw different numbers of records: {sorted(sizes)}")
        with torch.no_grad(), torch.autocast(next(self.model.parameters()).device.type, enabled=False):
            self.on_pass(sizes.pop(), found, 1.0)
