"""One Mechanism: every shipped class satisfies the protocol, and goes from its claim to a release in one way."""

import numpy as np
import pytest
from tests.mechanisms.one_mechanism import CLASSES, some

from shapedp import Mechanism, Release
from shapedp.mechanisms.base import KINDS, Claimed
from shapedp.mechanisms.watch import watching


@pytest.mark.parametrize("mechanism", some(), ids=lambda m: m.kind)
def test_an_instance_is_a_mechanism_and_its_release_is_seen_and_marked(mechanism):
    assert isinstance(mechanism, Mechanism)
    seen = []

    def watcher(found, x, draw):
        seen.append(found)
        return draw()

    asked = {"objective": (np.zeros(2), lambda b: b), "mixing": (np.ones((4, 2)),), "mean-angles": (np.ones((4, 3)),)}
    asked |= dict.fromkeys(("selection", "keys", "quantiles"), (np.array([5, 0, 30]),))
    given = asked.get(mechanism.kind, (np.zeros(3),))
    with watching(watcher):
        release = mechanism.release(*given, rng=np.random.default_rng(0), unsafe=True)
    assert isinstance(release, Release)
    assert len(seen) == 1
    assert release.certificate.secure is False
    assert release.unsafe is (mechanism.certificate.verdict != "certified")
    assert np.asarray(release).shape == np.shape(release.value)


def test_the_way_to_a_release_is_written_once():
    for one in CLASSES:
        assert issubclass(one, Claimed)
        assert one.certificate is Claimed.certificate
        assert one._drawn is Claimed._drawn
        assert KINDS[one.kind] is one


def test_a_release_without_error_bars_says_so():
    release = some()[1].release(np.ones((4, 2)), rng=np.random.default_rng(0), unsafe=True)
    with pytest.raises(ValueError, match="no error bars"):
        release.interval(0.9)
