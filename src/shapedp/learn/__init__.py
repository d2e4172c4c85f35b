"""Estimators with the scikit-learn interface; `privacy_` holds the certificate of what `fit` released."""

from shapedp.learn.base import PublicLabelsWarning
from shapedp.learn.lasso import Lasso
from shapedp.learn.linear import LinearRegression
from shapedp.learn.logistic import LogisticRegression
from shapedp.learn.ridge import Ridge
from shapedp.learn.svm import HuberSVC

__all__ = ["HuberSVC", "Lasso", "LinearRegression", "LogisticRegression", "PublicLabelsWarning", "Ridge"]
