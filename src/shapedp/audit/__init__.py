"""Audits: empirical lower bounds, goodness of fit of the noise, replay on neighbouring data, bit patterns."""

from shapedp.audit.empirical import AuditResult, Witness, mechanism

__all__ = ["AuditResult", "Witness", "mechanism"]
