"""Laws of the page that puts runs side by side."""

import pytest

from borelax.report.compare import comparison, names_of
from borelax.report.page import Pictures
from tests.report.chromium import browser, chromium
from tests.report.made import bare_run, grid_scenes, pictures
from tests.tiny_run import command, copy_finished, finished


@pytest.fixture
def runs(tmp_path):
    rows = [{"done": 1, "q_mean": [1.0]}, {"done": 2, "q_mean": [None]}]
    return [bare_run(tmp_path / name, rows) for name in ("mit ☃", "<ohne>")]


def test_players_move_together(runs, tmp_path):
    program = chromium()
    if program is None:
        pytest.skip("no Chromium on this machine: install the package `chromium`")
    found = [pictures(grid_scenes())] * 2
    path = tmp_path / "page.html"
    path.write_text(comparison(runs, found), "utf-8")
    with browser(program) as tab:
        tab.open(path)
        told = "[...document.querySelectorAll('.readout')].map(e => e.textContent)"
        tab.eval("document.querySelector('.time').focus()")
        tab.press("End", 35)
        first, second = tab.eval(told)
        assert first == second and "Episode 2 of 2, step 3 of 3" in first
        tab.eval("document.querySelector('.together').click()")
        tab.press("Home", 36)
        first, second = tab.eval(told)
        assert "Episode 1 of 2, step 0" in first and "step 3 of 3" in second
        assert tab.errors == []


def test_runs_without_anything_can_be_compared(runs):
    text = comparison(runs, [Pictures(), Pictures()])
    assert text.count("no results yet") == 2 and "&lt;ohne&gt;" in text
    assert "<ohne>" not in text


def test_names_tell_runs_apart(tmp_path):
    runs = [bare_run(tmp_path / name / "run") for name in "ab"]
    assert names_of(runs) == ["a/run", "b/run"]


def test_the_command_writes_what_differs(tmp_path, capsys):
    other = copy_finished(tmp_path, without=("[4-5]-*", "results.json"))
    out = tmp_path / "side.html"
    assert command("compare", finished(), other, "--out", out) == 0
    assert capsys.readouterr().out == f"Comparison: {out}\n"
    text = out.read_text("utf-8")
    assert "no results yet" in text and "Nothing in the settings" in text


@pytest.mark.parametrize("words", [[], ["only-one"]])
def test_one_run_is_not_compared(capsys, words):
    assert command("compare", *words) == 2
    assert "needs the folders of runs" in capsys.readouterr().err


def test_what_is_no_run_is_named(tmp_path, capsys):
    assert command("compare", finished(), tmp_path) == 3
    assert "is not the folder of a run" in capsys.readouterr().err
