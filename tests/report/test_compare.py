"""Laws of the page that puts runs side by side."""

from dataclasses import replace

import numpy as np
import pytest

from borelax.report.compare import comparison, names_of
from borelax.report.page import Pictures, document
from borelax.report.player import player_html
from borelax.report.run_data import read_run
from tests.report.made import ant_scenes, bare_run, grid_scenes, pictures
from tests.tiny_run import command, copy_finished, finished

SIZES = (("some", 3_000_000), ("all", 6_000_000))


@pytest.fixture
def runs(tmp_path):
    rows = [{"done": 1, "q_mean": [1.0]}, {"done": 2, "q_mean": [None]}]
    return [bare_run(tmp_path / name, rows) for name in ("mit ☃", "<ohne>")]


def test_players_move_together(runs, opened, tmp_path):
    found = [pictures(grid_scenes())] * 2
    path = tmp_path / "page.html"
    path.write_text(comparison(runs, found), "utf-8")
    opened.open(path)
    told = "[...document.querySelectorAll('.readout')].map(e => e.textContent)"
    opened.eval("document.querySelector('.time').focus()")
    opened.press("End", 35)
    first, second = opened.eval(told)
    assert first == second and "Episode 2 of 2, step 3 of 3" in first
    opened.eval("document.querySelector('.together').click()")
    opened.press("Home", 36)
    first, second = opened.eval(told)
    assert "Episode 1 of 2, step 0" in first and "step 3 of 3" in second
    assert opened.errors == []


def test_three_runs_of_ants_shape_stay_under_ten_megabytes(tmp_path):
    runs = [bare_run(tmp_path / name) for name in "abc"]
    text = comparison(runs, [pictures(ant_scenes(seeds=2))] * 3)
    assert len(text.encode()) < 10e6
    assert text.count("Shown: 2 of 1,000 test tasks, 1 of 2 seeds.") == 3


def test_a_player_that_cannot_be_made_is_named(runs, monkeypatch):
    monkeypatch.setattr("borelax.report.compare.MOST_BYTES", 100)
    text = comparison(runs, [pictures(grid_scenes())] * 2)
    assert text.count("The player could not be made: one rollout alone") == 2
    for name in ("mit ☃", "&lt;ohne&gt;"):
        assert f"Missing on this page, of {name}:" in text


def test_players_with_other_tasks_left_out_still_show_the_same(runs, opened, tmp_path):
    """Tasks are known by their number, not by their place among those shown."""
    some, all_of_them = (player_html(ant_scenes(), n, b, 2) for n, b in SIZES)
    box = '<input type="checkbox" class="together" checked>'
    path = tmp_path / "page.html"
    path.write_text(document("t", box + some + all_of_them), "utf-8")
    opened.open(path)
    shown = "[...document.querySelectorAll('.task')].map(s => s.value)"
    change = "(s => {s.value = %s; s.dispatchEvent(new Event('change'))})"
    assert opened.eval(shown) == ["2", "2"]
    first, second = (f"document.querySelectorAll('.task')[{i}]" for i in (0, 1))
    opened.eval(f"{change % 5}({first})")
    assert opened.eval(shown) == ["5", "5"]
    opened.eval(f"{change % 1}({second})")
    assert opened.eval(shown) == ["5", "1"], "one player does not have this task"
    assert opened.errors == []


def test_runs_that_were_given_the_posterior_say_so(runs):
    runs[1].settings["exact_belief"] = True
    text = comparison(runs, [pictures(grid_scenes())] * 2)
    assert text.count("given the exact posterior") == 2  # in the table, and above


@pytest.mark.parametrize("seed", [0, 1])
def test_other_test_tasks_are_not_called_the_same(runs, seed):
    runs[0].settings["seed"], runs[1].settings["seed"] = 0, seed
    text = comparison(runs, [pictures(grid_scenes())] * 2)
    assert ("The same task, side by side" in text) == (seed == 0)
    assert ("Not all of these runs were tested on the same tasks" in text) == seed
    text = comparison(runs, [Pictures(), pictures(grid_scenes())])
    assert "The same task, side by side" in text, "of those that are shown"


def test_logs_without_their_rollouts_are_missed_by_name(tmp_path):
    folder = copy_finished(tmp_path)
    for shard in (folder / "1-logs").glob("rollouts-*.npz"):
        shard.unlink()
    out = tmp_path / "side.html"
    assert command("compare", finished(), folder, "--out", out) == 0
    text = out.read_text("utf-8")
    assert "could not be made: the logged rollouts are not in" in text


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


def test_the_best_agent_and_the_end_of_training_are_marked():
    runs = [read_run(finished())] * 2
    text = comparison(runs, [pictures(grid_scenes())] * 2)
    assert "Bayes-optimal: Mean return by episode: 4.0, 11.1, 11.1, 11.1." in text
    assert 'class="line c6"' in text and "Right of the dashed line" not in text
    longer = replace(pictures(grid_scenes()), further=np.ones((1, 8)))
    text = comparison(runs, [longer] * 2)
    assert text.count('<line class="edge"') == 1 and "Right of the dashed line" in text


@pytest.mark.parametrize("words", [[], ["only-one"]])
def test_one_run_is_not_compared(capsys, words):
    assert command("compare", *words) == 2
    assert "needs the folders of runs" in capsys.readouterr().err


def test_what_is_no_run_is_named(tmp_path, capsys):
    assert command("compare", finished(), tmp_path) == 3
    assert "is not the folder of a run" in capsys.readouterr().err
