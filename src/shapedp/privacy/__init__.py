"""Brackets, losses, certificates and conversions."""

from shapedp.privacy.assumptions import assumptions_of
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.certificate import (
    BLANK,
    ROWS,
    Certificate,
    Deferred,
    NotCertifiedError,
    RefutedError,
    UndecidedError,
    certificate_of,
)
from shapedp.privacy.losses import AdjustedLoss, GaussianLoss, LaplaceLoss, Loss, loss_of
from shapedp.privacy.losses.base import one_relation

__all__ = [
    "BLANK",
    "ROWS",
    "AdjustedLoss",
    "Bracket",
    "Certificate",
    "Deferred",
    "GaussianLoss",
    "LaplaceLoss",
    "Loss",
    "NotCertifiedError",
    "RefutedError",
    "UndecidedError",
    "assumptions_of",
    "certificate_of",
    "loss_of",
    "one_relation",
]
