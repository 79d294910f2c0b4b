"""A whole run on Semi-circle: rewards relabelled, SAC, and the best known search."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from borelax.journal import FolderJournal
from borelax.oracles.search_policy import SearchPolicy
from borelax.pipeline import Pipeline, held_out_tasks
from borelax.presets import preset
from borelax.progress import Quiet
from borelax.relabel.rewards import RelabelRewards
from borelax.report.facts import subtitle
from borelax.report.run_data import read_run
from borelax.report.trained import Trained
from borelax.run_folder import read_experiment
from tests.tiny_run import (
    compiled_quickly,
    copy_finished,
    finished,
    note_tests,
    run_tiny,
    shas,
    work_out,
)
from tests.whole_runs.laws import (
    check_belief,
    check_folder,
    check_relabelled,
    check_results,
    printed,
    results_of,
)

ROOT = Path(__file__).parents[2]
DOMAIN = "semicircle"
TINY = preset(DOMAIN, "tiny")


def test_a_run_leaves_results_and_every_phase():
    results = results_of(finished(DOMAIN))
    check_results(results, TINY)
    check_belief(results["belief"])
    assert results["relabel"] == "rewards" and results["oracle"]["exact"] is False
    check_folder(DOMAIN)


def test_the_table_names_a_search_and_what_none_can_exceed():
    table = printed(DOMAIN)
    assert "best known search" in table and "no agent can exceed" in table
    assert "Bayes-optimal" not in table and "without memory" not in table
    assert "Belief: its predictions are" in table


def test_a_picture_sets_the_belief_along_the_arc_beside_the_posterior():
    arc = runpy.run_path(str(ROOT / "benchmarks" / "arc_pictures.py"))
    folder = finished(DOMAIN)
    trained = Trained(folder, read_experiment(folder))
    maps = arc["beliefs"](trained, 0, 0)
    steps = TINY.family.horizon * TINY.family.episodes
    assert maps["learned"].shape == maps["exact"].shape == (steps + 1, 180)
    chance = 4 * np.arcsin(0.1) / np.pi  # that a goal is within 0.2 of a place
    np.testing.assert_allclose(maps["exact"][0, 60:120], chance, atol=0.01)
    places = np.array([[0.0, 1.0], [-0.6, 0.6], [0.1, 0.1]])
    np.testing.assert_allclose(arc["own_angle"](places), [90, 135, np.nan])
    assert arc["draw_beliefs"](trained).startswith(b"\x89PNG")
    assert arc["draw_paths"](trained).startswith(b"\x89PNG")


def test_the_best_search_is_sent_after_the_tasks_of_the_test(tmp_path, monkeypatch):
    tests = note_tests(monkeypatch)
    with compiled_quickly():
        folder = copy_finished(tmp_path, domain=DOMAIN)
        pipeline = Pipeline(TINY, folder, Quiet())
        results = pipeline.results()
    (sent,) = (tasks for policy, tasks in tests if isinstance(policy, SearchPolicy))
    np.testing.assert_array_equal(sent, pipeline.test_tasks())
    assert results["oracle"]["on_test_tasks"] == 2 * 60


def test_settings_can_be_chosen_on_tasks_that_are_not_the_tests(tmp_path, capsys):
    folder = copy_finished(tmp_path, without=("5-evaluate",), domain=DOMAIN)
    assert run_tiny(folder, "--evaluate.validation", domain=DOMAIN) == 0
    assert "1 seed, validation tasks" in " ".join(capsys.readouterr().out.split())
    chosen, tested = results_of(folder), results_of(finished(DOMAIN))
    assert (chosen["tested_on"], tested["tested_on"]) == ("validation", "test")
    tasks, others = (
        held_out_tasks(read_experiment(f)) for f in (folder, finished(DOMAIN))
    )
    assert not set(np.asarray(tasks).ravel()) & set(np.asarray(others).ravel())
    assert subtitle(read_run(folder)).endswith("· validation tasks")


def test_half_of_a_rollout_is_anothers_or_pieces_are():
    relabel = TINY.relabel
    assert isinstance(relabel, RelabelRewards) and relabel.meta_pieces == 0.8
    each = relabel.pieces // 2
    borrowed = check_relabelled(DOMAIN).reshape(-1, 2, each)
    halves = borrowed.all(axis=2)
    halved = (halves.sum(axis=1) == 1) & (borrowed.sum(axis=(1, 2)) == each)
    assert abs(halved.mean() - 0.2) < 4 * (0.16 / len(halved)) ** 0.5


class Crash(BaseException):
    """What a killed process does."""


@pytest.mark.parametrize("moment", ["record", "save"])
def test_interrupted_anywhere_it_ends_with_the_same_bits(tmp_path, monkeypatch, moment):
    """Before a checkpoint is written and right after it, once in each chunk."""
    method, crashed = getattr(FolderJournal, moment), set()

    def crash_once(self: FolderJournal, *args) -> None:
        method(self, *args)
        place = self.label, args[0] if moment == "record" else args[1]
        if place not in crashed:
            crashed.add(place)
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(FolderJournal, moment, crash_once)
        while len(crashed) < (6 if moment == "record" else 3):
            with pytest.raises(Crash):
                work_out(tmp_path / "run", TINY)
    assert {phase for phase, _ in crashed} == {"collect", "belief", "meta"}
    work_out(tmp_path / "run", TINY)
    assert shas(tmp_path / "run") == shas(finished(DOMAIN))


def test_the_exact_belief_needs_no_learned_one(tmp_path, capsys):
    out = copy_finished(tmp_path, without=("[3-5]-*",), domain=DOMAIN)
    assert run_tiny(out, "--exact-belief", domain=DOMAIN) == 0
    results = results_of(out)
    check_results(results, TINY)
    assert results["exact_belief"] is True
    assert results["belief"].keys() == {"prediction_error", "frozen_return"}
    assert results["belief"]["prediction_error"] == 0
    assert not (out / "3-belief").exists()
    assert "given the exact posterior" in capsys.readouterr().out
