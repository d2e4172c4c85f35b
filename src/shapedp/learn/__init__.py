"""Estimators with the scikit-learn interface; `privacy_` holds the certificate of what `fit` released."""

from shapedp.learn.base import PublicLabelsWarning
from shapedp.learn.linear import LinearRegression

__all__ = ["LinearRegression", "PublicLabelsWarning"]
