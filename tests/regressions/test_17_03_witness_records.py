"""Sketches as published were refuted by data that their stated sizes do not allow.

The witnesses behind the lower ends are data with X^T X = l C^2 I: with n rows of norm at most C and d columns l is at
most n/d. Two rows in two columns never pass a threshold of 3 (but with probability e^-50), so noise is always added,
and delta is nearly nothing; the lower end was 0.6.
"""

import math

from shapedp.papers.gaussian_mixing.recipes import ModifiedGaussMix
from shapedp.papers.gaussian_mixing.sheffet import ThresholdMixing


def test_a_threshold_out_of_reach_refutes_nothing():
    few = ThresholdMixing(100, 1.0, 3.0, 0.5, 0.05, 1e6, 1.0, 1e-3, "zero-out", 2, 2)
    silent = 0.5 * math.exp(-2.5 / 0.05)  # l is at most 1
    assert few.loss.delta(1.0).lower <= silent
    assert few.certificate.verdict != "refuted"
    many = ThresholdMixing(100, 1.0, 3.0, 0.5, 0.05, 1e6, 1.0, 1e-3, "zero-out", 200, 2)
    assert many.certificate.verdict == "refuted"


def test_an_eigenvalue_out_of_reach_refutes_nothing():
    few = ModifiedGaussMix(10, 1.0, 100.0, 0.5, 5.0, 0.1, 1e-3, "zero-out", 20, 10)
    assert few.loss.delta(0.1).lower == 0.0
    many = ModifiedGaussMix(10, 1.0, 100.0, 0.5, 5.0, 0.1, 1e-3, "zero-out", 2000, 10)
    assert many.certificate.verdict == "refuted"
