"""The demo tells the truth, and draws it."""

from __future__ import annotations

import numpy as np
import pytest

from safesift.faces import demo
from safesift.faces.demo_forgetting import forget
from tests.cli_files import run


@pytest.fixture(scope="module")
def findings():
    return demo.experiment()


def test_most_samples_go_and_the_model_stays(findings):
    assert findings.result.certified
    assert findings.result.kept.mean() < 0.4
    assert findings.coef_change < 1e-9
    assert findings.n_disagreements == 0


def test_margins_of_dropped_samples_are_above_one(findings):
    margins = findings.y * (findings.X @ findings.on_all)
    assert margins[~findings.result.kept].min() > 1.0
    np.testing.assert_allclose(margins, findings.margins, atol=1e-5)


def test_forgetting_gives_the_same_models():
    few = forget(n_samples=800, n_requests=12)
    assert few.n_requests == 12 and few.coef_change < 1e-3 and few.worst_gap <= 1e-6


def test_the_story_has_the_numbers(findings):
    story = demo.tell(findings)
    keep = findings.result.kept
    forgotten = findings.forgotten
    for number in (
        len(keep),
        forgotten.n_requests,
        f"{forgotten.again_seconds:.2f} s",
        keep.sum(),
        (~keep).sum(),
        f"0 of {len(keep)}",
    ):
        assert str(number) in story
    assert "proved to have no influence" in story
    assert max(map(len, story.splitlines())) <= 100


def test_command(tmp_path, findings, monkeypatch):
    monkeypatch.setattr(demo, "experiment", lambda: findings)
    result = run("demo", "--output", tmp_path / "picture.png")
    assert result.exit_code == 0, result.output
    assert f"The picture is in {tmp_path / 'picture.png'}." in result.stdout
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib(tmp_path, findings, monkeypatch, capsys):
    monkeypatch.setattr(demo, "experiment", lambda: findings)
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    demo.run(tmp_path / "picture.png")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == 'For the picture, install matplotlib:  pip install "safesift[plot]"'
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["picture.nonsense", "absent/picture.png"])
def test_a_picture_that_cannot_be_written(tmp_path, findings, monkeypatch, name):
    monkeypatch.setattr(demo, "experiment", lambda: findings)
    result = run("demo", "--output", tmp_path / name)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert not any(tmp_path.iterdir())
