"""Checks differential-privacy certificates with rigorous interval arithmetic; shares no code with the library.

Read in this order: balls, files, sets, pairs, staircase, radial, compose, additive, subjects, verdict.
"""

from shapedp_check.canonical import canonical, digest
from shapedp_check.verdict import Answer, check

__all__ = ["Answer", "canonical", "check", "digest"]
__version__ = "1.0.0"
