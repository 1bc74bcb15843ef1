"""What users see changes on purpose only: `python -m tests.public_api` takes a new snapshot."""

from __future__ import annotations

import json

import pytest

from tests.public_api import SNAPSHOT, described

pytest.importorskip("imblearn", reason="the samplers' signatures are those with imbalanced-learn")


def test_names_and_signatures_are_those_of_the_snapshot():
    known, found = json.loads(SNAPSHOT.read_text()), described()
    assert sorted(found) == sorted(known)
    for name, value in found.items():
        assert value == known[name], name
