"""Plots and pages."""

from shapedp.report.estimators import MODELS, Fitted
from shapedp.report.page import Page
from shapedp.report.pages import of, of_json
from shapedp.report.register import claims_page

__all__ = ["MODELS", "Fitted", "Page", "claims_page", "of", "of_json"]
