"""Audits: empirical lower bounds, the fit of the noise to its law, replay on neighbouring data, bit patterns."""

from shapedp.audit.adapters import diffprivlib, opacus, opendp
from shapedp.audit.empirical import AuditResult, Witness, mechanism
from shapedp.audit.fit import Check, DistributionResult, distribution
from shapedp.audit.gauge import gauge, moved
from shapedp.audit.lowbits import bits
from shapedp.audit.neighbouring import neighbours
from shapedp.audit.sizes import PowerRow, power
from shapedp.audit.transcript import Finding, ReplayResult, replay

__all__ = [
    "AuditResult",
    "Check",
    "DistributionResult",
    "Finding",
    "PowerRow",
    "ReplayResult",
    "Witness",
    "bits",
    "diffprivlib",
    "distribution",
    "gauge",
    "mechanism",
    "moved",
    "neighbours",
    "opacus",
    "opendp",
    "power",
    "replay",
]
