"""Audits: empirical lower bounds, the fit of the noise to its law, replay on neighbouring data, bit patterns,
membership inference."""

from shapedp.audit.adapters import diffprivlib, opacus, opendp
from shapedp.audit.empirical import AuditResult, Witness, mechanism
from shapedp.audit.fit import Check, DistributionResult, distribution
from shapedp.audit.gauge import gauge, moved
from shapedp.audit.lowbits import bits
from shapedp.audit.membership import MembershipResult, epsilon_bound, likelihood_ratio_attack, shadow_attack
from shapedp.audit.neighbouring import neighbours
from shapedp.audit.sizes import PowerRow, power
from shapedp.audit.transcript import Finding, ReplayResult, replay

__all__ = [
    "AuditResult",
    "Check",
    "DistributionResult",
    "Finding",
    "MembershipResult",
    "PowerRow",
    "ReplayResult",
    "Witness",
    "bits",
    "diffprivlib",
    "distribution",
    "epsilon_bound",
    "gauge",
    "likelihood_ratio_attack",
    "mechanism",
    "moved",
    "neighbours",
    "opacus",
    "opendp",
    "power",
    "replay",
    "shadow_attack",
]
