"""A certificate shared its description with whoever read it or wrote it: an edit of the JSON it had handed out changed
its digest, and what `verify` recomputed."""

import pytest

from shapedp import L1, calibrate, certify, verify
from shapedp.privacy import Certificate


def edit(description):
    for name, value in description.items():
        if isinstance(value, dict):
            edit(value)
        else:
            description[name] = "edited"


def made(kind):
    mechanism = calibrate("laplace", L1(1.0, dim=2, adjacency="replace").of_integers(), epsilon=1.0, delta=0.0)
    own = mechanism.certificate
    return {
        "own": own,
        "other": certify(mechanism, epsilon=2.0, delta=0.0),
        "read": Certificate.from_json(own.to_json()),
    }[kind]


@pytest.mark.parametrize("kind", ["own", "other", "read"])
def test_what_was_handed_out_is_the_readers_own(kind):
    certificate = made(kind)
    digest, written = certificate.digest, certificate.to_json()
    edit(certificate.to_json())
    edit(dict(certificate.subject) if kind != "read" else certificate.to_json()["subject"])
    assert certificate.to_json() == written
    assert certificate.digest == digest
    assert verify(certificate).verdict == "certified"


def test_a_file_that_was_read_is_not_looked_at_again():
    data = made("own").to_json()
    certificate = Certificate.from_json(data)
    digest = certificate.digest
    edit(data["subject"])
    assert certificate.digest == digest
    assert verify(certificate).verdict == "certified"
