"""Per-record gradients by Opacus' grad samplers: the same numbers by another route."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from shapedp.torch.pieces import Dense
from shapedp.torch.recorder import Recorder, RecordError
from shapedp.torch.rules import Parts, Rule, bare, unit_forward


class OpacusRecorder(Recorder):
    """Records as our own route does, and asks Opacus for the gradients of each layer.

    Opacus' own hooks would leave inputs on the layers and gradients of records on the parameters.
    """

    def attach(self) -> None:
        """Start recording."""
        try:
            import opacus.grad_sample  # noqa: F401
        except ImportError:
            raise ImportError("gradients='opacus' needs opacus: pip install 'shapedp[torch]'") from None
        super().attach()

    def rule(self, module: nn.Module) -> Rule:
        """Opacus' gradients of a module."""
        return _RULE


def _pieces(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], grad: torch.Tensor) -> Parts:
    from opacus.grad_sample import GradSampleModule
    from opacus.grad_sample.functorch import ft_compute_per_sample_gradient

    if kwargs:
        raise RecordError("gradients='opacus' takes a layer's inputs by position: call it so, or use gradients='fast'")
    sampler = GradSampleModule.GRAD_SAMPLERS.get(type(module), ft_compute_per_sample_gradient)
    try:
        with torch.enable_grad(), bare(module):
            found = sampler(module, list(args), grad)
    finally:
        vars(module).pop("ft_compute_sample_grad", None)
    names = {id(p): name for name, p in module.named_parameters() if p.requires_grad}
    return {names[id(p)]: Dense(value.detach()) for p, value in found.items() if id(p) in names}


_RULE = Rule(unit_forward, _pieces, fresh=False)
