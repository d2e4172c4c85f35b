"""Estimators with the scikit-learn interface; `privacy_` holds the certificate of what `fit` released."""

from shapedp.learn.base import PublicLabelsWarning
from shapedp.learn.linear import LinearRegression
from shapedp.learn.logistic import LogisticRegression
from shapedp.learn.svm import HuberSVC

__all__ = ["HuberSVC", "LinearRegression", "LogisticRegression", "PublicLabelsWarning"]
