"""Issue 16, second review by fresh eyes: a certificate's fields of another kind are refused when it is read."""

from __future__ import annotations

import json

import pytest

import shapedp as sdp
from shapedp.cli import main
from shapedp.privacy import Certificate

NOISE = sdp.calibrate("laplace", sdp.L1(1.0, dim=1, adjacency="replace"), epsilon=0.5, delta=0.0)
ODD = [("subject", odd) for odd in ("x", 0, 1e300, [], True)]
ODD += [(name, odd) for name in ("method", "version") for odd in (None, 1, [], {}, True)]


@pytest.mark.parametrize(("name", "odd"), ODD)
def test_a_field_of_another_kind_is_refused_in_words(tmp_path, capsys, name, odd):
    """A subject that is no object ended in an AttributeError; a method that is no text stopped a ledger's history."""
    edited = NOISE.certificate.to_json() | {name: odd}
    with pytest.raises(ValueError, match=f"{name}.* must be"):
        Certificate.from_json(edited)
    path = tmp_path / "c.json"
    path.write_text(json.dumps(edited))
    assert main(["verify", str(path)]) == 2
    assert "internal error" not in capsys.readouterr().err
