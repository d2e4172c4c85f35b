"""Adult, as a person would fit it: the example of docs/classification.md on the real records."""

import io
import os
from pathlib import Path

import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import StandardScaler

from shapedp import learn
from shapedp.papers.datasets.files import read
from shapedp.papers.datasets.tables import ADULT_CATEGORIES, ADULT_COLUMNS

ADULT = Path(os.environ.get("SHAPEDP_DATA", "shared/data")) / "adult" / "adult.data.gz"
NUMBERS = ["age", "education-num", "hours-per-week", "capital-gain", "capital-loss"]
MODEL = learn.LogisticRegression(epsilon=1.0, delta=1e-6, feature_bound=3.0, classes=["<=50K", ">50K"])


def table(part):
    raw = io.BytesIO(read(f"adult/adult.{part}.gz", None))
    return pd.read_csv(raw, names=[*ADULT_COLUMNS, "income"][:15], skipinitialspace=True, comment="|")


@pytest.mark.skipif(not ADULT.is_file(), reason="needs the Adult files (SHAPEDP_DATA)")
@pytest.mark.filterwarnings("ignore::shapedp.learn.RepeatedFitsWarning")
def test_a_search_over_a_pipeline_on_adult():
    people, test, words = table("data"), table("test"), dict(ADULT_CATEGORIES)
    scaled = ("numbers", learn.PublicScaler(0, [100, 16, 100, 20_000, 3_000]), NUMBERS)
    columns = ColumnTransformer([scaled, ("words", learn.PublicOneHot(words), list(words))])
    tried = {"logisticregression__regularization": [1e-3, 1e-2]}
    search = learn.PrivateSearch(
        learn.make_pipeline(columns, MODEL), tried, epsilon=1.0, delta=1e-6, repeats=2.0, random_state=0
    )
    search.fit(people, people["income"])
    common = (test["income"] == "<=50K.").mean()
    assert search.score(test, test["income"].str.rstrip(".")) > common + 0.02
    assert (search.privacy_.verdict, search.privacy_.epsilon, search.privacy_.delta) == ("certified", 1.0, 1e-6)
    assert learn.certificate_of(search.best_estimator_).epsilon == 1.0


def test_a_standard_scaler_in_it_is_refused_with_the_remedy():
    columns = ColumnTransformer([("numbers", StandardScaler(), NUMBERS)])
    with pytest.raises(ValueError, match=r"StandardScaler\) learns .* use shapedp.learn.PublicScaler\(low, high\)"):
        learn.make_pipeline(columns, MODEL)
