"""A plan's file could carry fields that the reader passed over: a failure probability, another sampling scheme.

`Plan.from_json` read three fields of a step and ignored the rest, so that a description of fixed-size samples or of a
step that fails was priced as a Poisson sample that never does. The run of a repetition lost its count and its rate.
"""

import pytest

from shapedp.accounting import BareLoss, Plan, Step
from shapedp.accounting.repeat import Repetition
from shapedp.privacy import GaussianLoss


def written():
    return Plan((Step(BareLoss(1.0, 1e-6, False)), Step(GaussianLoss(0.5, 0.2), 0.1, 3))).to_json()


def test_what_is_written_is_read():
    assert Plan.from_json(written()).to_json() == written()


@pytest.mark.parametrize("name", ["schemes", "failure", "total_variation", "note"])
def test_other_fields_are_refused_at_every_level(name):
    for place in (lambda p: p, lambda p: p["steps"][0], lambda p: p["steps"][1]["subject"]):
        data = written()
        place(data)[name] = 0.5
        with pytest.raises(ValueError, match=f"not known: {name}"):
            Plan.from_json(data)


def test_a_loss_of_an_odd_type_is_refused():
    for subject in (None, [], {"loss": ["gaussian"], "mu": 1.0}, {}):
        data = written()
        data["steps"][0]["subject"] = subject
        with pytest.raises(ValueError, match="step"):
            Plan.from_json(data)


@pytest.mark.parametrize("change", [{"count": 100}, {"sampling_rate": 0.5}, {"scheme": "without-replacement"}])
def test_the_run_of_a_repetition_is_one_run(change):
    data = Repetition(GaussianLoss(0.5), 0.1).to_json()
    assert Repetition.from_json(data).to_json() == data
    data["run"].update(change)
    with pytest.raises(ValueError, match="one run"):
        Repetition.from_json(data)
