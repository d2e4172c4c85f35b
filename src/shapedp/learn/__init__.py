"""Estimators with the scikit-learn interface; `privacy_` holds the certificate of what `fit` released."""

from shapedp.learn.base import PublicLabelsWarning
from shapedp.learn.classifiers import HuberSVC, LogisticRegression
from shapedp.learn.columns import PrivateImputer, PrivateScaler
from shapedp.learn.elastic import ElasticNet
from shapedp.learn.glm import GammaRegressor, PoissonRegressor
from shapedp.learn.kmeans import KMeans
from shapedp.learn.naive_bayes import GaussianNB
from shapedp.learn.pca import PCA
from shapedp.learn.pipelines import PrivatePipeline, certificate_of, make_pipeline
from shapedp.learn.public import PublicOneHot, PublicScaler
from shapedp.learn.register import Fits, RepeatedFitsWarning, fits
from shapedp.learn.regressors import Lasso, LinearRegression, Ridge
from shapedp.learn.select import PrivateSearch
from shapedp.learn.solvers.covariance import subspace_error

__all__ = [
    "PCA",
    "ElasticNet",
    "Fits",
    "GammaRegressor",
    "GaussianNB",
    "HuberSVC",
    "KMeans",
    "Lasso",
    "LinearRegression",
    "LogisticRegression",
    "PoissonRegressor",
    "PrivateImputer",
    "PrivatePipeline",
    "PrivateScaler",
    "PrivateSearch",
    "PublicLabelsWarning",
    "PublicOneHot",
    "PublicScaler",
    "RepeatedFitsWarning",
    "Ridge",
    "certificate_of",
    "fits",
    "make_pipeline",
    "subspace_error",
]
