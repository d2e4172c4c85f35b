"""Estimators with the scikit-learn interface; `privacy_` holds the certificate of what `fit` released."""

from shapedp.learn.base import PublicLabelsWarning
from shapedp.learn.linear import LinearRegression
from shapedp.learn.logistic import LogisticRegression
from shapedp.learn.pca import PCA
from shapedp.learn.penalized import Lasso, Ridge
from shapedp.learn.select import PrivateSearch
from shapedp.learn.solvers.covariance import subspace_error
from shapedp.learn.svm import HuberSVC

__all__ = [
    "PCA",
    "HuberSVC",
    "Lasso",
    "LinearRegression",
    "LogisticRegression",
    "PrivateSearch",
    "PublicLabelsWarning",
    "Ridge",
    "subspace_error",
]
