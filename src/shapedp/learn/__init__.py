"""Estimators with the scikit-learn interface; `privacy_` holds the certificate of what `fit` released."""

from shapedp.learn.base import PublicLabelsWarning
from shapedp.learn.classifiers import HuberSVC, LogisticRegression
from shapedp.learn.pca import PCA
from shapedp.learn.regressors import Lasso, LinearRegression, Ridge
from shapedp.learn.select import PrivateSearch
from shapedp.learn.solvers.covariance import subspace_error

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
