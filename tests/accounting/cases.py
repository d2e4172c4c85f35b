"""The losses every accounting test runs over: add a row for a new loss type."""

from __future__ import annotations

import numpy as np
from tests.reference.pairs import ScalarLaplace

from shapedp.accounting import BareLoss, SubsampledLoss, compose
from shapedp.privacy import GaussianLoss, LaplaceLoss, Loss

LOSSES: dict[str, Loss] = {
    "gaussian": GaussianLoss(0.3),
    "laplace, one coordinate": LaplaceLoss(0.2, np.array([0.2]), worst=True),
    "scalar laplace": ScalarLaplace(0.2),
    "pure": BareLoss(0.1),
    "approximate": BareLoss(0.1, 1e-7),
    "poisson gaussian": SubsampledLoss(GaussianLoss(1.0), 0.1),
    "poisson laplace": SubsampledLoss(ScalarLaplace(0.5), 0.2),
    "fixed-size gaussian": SubsampledLoss(GaussianLoss(1.0), 0.1, "without-replacement"),
    "shifted": GaussianLoss(0.3).shift(1e-3),
    "with failure": GaussianLoss(0.3).with_failure(1e-9, total_variation=1e-12),
    "grid": GaussianLoss(0.3).discretize(nodes=2000),
    "composed": compose([(BareLoss(0.05), 2), GaussianLoss(0.1)]),
}
