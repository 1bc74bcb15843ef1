"""The examples run, and say what they promise."""

import runpy
from pathlib import Path

import pytest
from matplotlib import pyplot

pytestmark = pytest.mark.slow

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


# what pyplot.show says where there is a screen that it may not use
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pyplot.switch_backend("Agg")  # matplotlib has read the variable when it was imported
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    pyplot.close("all")
    printed = capsys.readouterr().out
    assert printed.strip()
    assert "FAILED" not in printed
