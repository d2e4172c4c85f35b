"""Models of diffprivlib, fitted to columns in [-1, 1] read from a file; what they learned as lists."""

MODELS = ("linear", "logistic", "bayes", "clusters", "components")


def fitted(task, x, y, epsilon, size):
    """The parameters of one fit."""
    import diffprivlib.models as dp

    d = x.shape[1]
    box = (-1.0, 1.0)
    if task == "linear":
        model = dp.LinearRegression(epsilon=epsilon, bounds_X=box, bounds_y=box).fit(x, y)
        return [model.coef_, [model.intercept_]]
    if task == "logistic":
        model = dp.LogisticRegression(epsilon=epsilon, data_norm=d**0.5).fit(x, y)
        return [model.coef_[0], model.intercept_]
    if task == "bayes":
        model = dp.GaussianNB(epsilon=epsilon, bounds=box).fit(x, y)
        return [*model.theta_, *model.var_, model.class_prior_]
    if task == "clusters":
        return list(dp.KMeans(size, epsilon=epsilon, bounds=box).fit(x).cluster_centers_)
    model = dp.PCA(size, epsilon=epsilon, data_norm=d**0.5, bounds=box).fit(x)
    return [model.mean_, *model.components_]


def diffprivlib_model(task, path, epsilon, size, runs):
    """diffprivlib: the parameters of several fits at epsilon."""
    import warnings

    import numpy as np

    warnings.simplefilter("ignore")
    with np.load(path) as data:
        x, y = data["x"], data["y"]
    return lambda: [[list(map(float, part)) for part in fitted(task, x, y, epsilon, size)] for _ in range(runs)]
