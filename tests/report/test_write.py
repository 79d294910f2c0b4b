"""Laws of reports on real (tiny) runs: written, whole, never in the way of a run."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from borelax.experiment import Experiment
from borelax.options import parse_domain
from borelax.presets import preset
from borelax.report import facts, write
from borelax.report.again import command_of, install_of
from borelax.report.frames import Frame, frame_of, spots_of
from borelax.report.meanings import METRICS
from borelax.report.run_data import Curve, read_run, thinned
from borelax.report.scenes import choose_tasks, make_scenes
from borelax.report.trained import Trained
from borelax.report.yardstick import best_by_episode
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.gridworld import Gridworld
from borelax.tasks.half_cheetah_vel import HalfCheetahVel
from tests.tiny_run import command, compiled_quickly, copy_finished, finished, run_tiny

KINDS = {"gridworld": "cells", "semicircle": "plane", "escape-room": "ring"}


@pytest.fixture
def quick():
    """As in other files: programs are shared by a process."""
    with compiled_quickly():
        yield


@pytest.mark.parametrize("domain", ["gridworld", "semicircle"])
def test_a_whole_run_is_on_one_small_page(tmp_path, quick, domain):
    path = write.write_report(finished(domain), tmp_path / "page.html")
    text = path.read_text("utf-8")
    assert path.stat().st_size < 10e6 and "Missing on this page" not in text
    for heading in ("Search, then return", "How good is it?", "Learning curves"):
        assert heading in text
    assert f"borelax run {domain} --preset tiny" in text
    best = {"gridworld": "Bayes-optimal", "semicircle": "best known search"}[domain]
    assert f"Grey: {best}, expected over all tasks." in text


@pytest.mark.parametrize("domain", ["gridworld", "semicircle"])
def test_scenes_are_the_rollouts_of_the_test(quick, domain):
    run = read_run(finished(domain))
    trained = Trained(run.folder, run.experiment)
    scenes = make_scenes(trained)
    assert scenes.frame.kind == KINDS[domain]
    seeds, tasks, episodes, horizon = scenes.reward.shape
    spots = scenes.frame.shape[0] * scenes.frame.shape[1]
    assert scenes.place.shape == (seeds, tasks, episodes, horizon + 1, 2)
    for belief in (scenes.learned, scenes.exact):
        assert belief.shape == (seeds, tasks, episodes * horizon + 1, spots)
        assert belief.min() >= 0 and belief.max() <= 1
    returns = run.results["return"]["per_episode"]
    if tasks == scenes.num_tested:
        assert scenes.reward.sum(-1).mean(1) == pytest.approx(np.array(returns))
    further = write.returns_of(trained.further())
    assert further.shape[1] > run.experiment.family.episodes


def test_the_best_agents_episodes_add_up_to_its_return():
    for domain in ("gridworld", "semicircle"):
        run = read_run(finished(domain))
        best, known = best_by_episode(run), run.results["oracle"]["bayes_optimal"]
        assert best.values.sum() == pytest.approx(known, rel=1e-6)


def test_the_best_agent_is_not_searched_for():
    run = read_run(finished())
    single = {"per_episode": [[1.0]]}
    oracle = {"bayes_optimal": 16.7, "exact": True}
    other = replace(run.experiment, family=Gridworld(size=6))
    results = {"return": single, "oracle": oracle}
    assert best_by_episode(replace(run, experiment=other)) is None
    line = best_by_episode(replace(run, experiment=other, results=results))
    assert line.values.tolist() == [[16.7]]
    unknown = results | {"oracle": oracle | {"bayes_optimal": None}}
    run = replace(run, experiment=None, results=unknown)
    assert best_by_episode(run) is None


def test_a_run_ends_with_the_path_of_its_report(tmp_path, capsys):
    folder = copy_finished(tmp_path)
    assert run_tiny(folder, "--report") == 0
    assert f"Report: {folder / 'report.html'}" in capsys.readouterr().out
    assert (folder / "report.html").exists()
    assert command("report", folder, "--out", tmp_path / "again.html") == 0
    assert (tmp_path / "again.html").read_bytes() == (
        folder / "report.html"
    ).read_bytes()


def test_a_report_that_fails_does_not_fail_the_run(tmp_path, capsys, monkeypatch):
    def fail(*_, **__):
        raise OSError("the disk is full")

    folder = copy_finished(tmp_path)
    monkeypatch.setattr(write, "read_run", fail)
    assert run_tiny(folder, "--report") == 0
    assert "Report: not written. the disk is full" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("without", "said"),
    [
        (("[2-5]-*", "results.json"), "the phase &#x27;belief&#x27; is not done"),
        (("5-*", "results.json"), "This run has no results yet"),
        (("environment.json", "status.json"), "Search, then return"),
    ],
)
def test_missing_phases_are_named(tmp_path, quick, without, said):
    folder = copy_finished(tmp_path, without=without)
    text = write.write_report(folder).read_text("utf-8")
    assert said in text and "Learning curves" in text


def test_damage_is_named_and_the_rest_is_shown(tmp_path, quick):
    folder = copy_finished(tmp_path)
    moved = folder.rename(tmp_path / "lauf ☃ <i>")
    (moved / "3-belief" / "model.safetensors").write_bytes(b"damage")
    (moved / "4-meta" / "metrics.jsonl").write_text("no json\n")
    (moved / "results.json").write_text("{")
    text = write.write_report(moved).read_text("utf-8")
    assert "The player could not be made" in text
    assert "Curves of meta could not be made" in text
    assert "lauf ☃ &lt;i&gt;" in text and "Curves of belief" not in text


def test_what_is_no_run_is_refused(tmp_path, capsys):
    assert command("report", tmp_path) == 3
    assert "is not the folder of a run" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "flags",
    [
        "",
        "--seeds 3 --seed 7",
        "--relabel none --meta.agent.lr 0.001",
        "--exact-belief --meta.agent.hidden 8 9",
        "--relabelling.meta-pieces 0.25 --meta.view.decoded --meta.view.no-latent",
    ],
)
def test_the_command_on_the_page_makes_the_same_experiment(flags):
    words = ["gridworld", "--preset", "tiny", *flags.split()]
    experiment, _ = parse_domain("run", words)
    _, _, *again = command_of(experiment).split()
    assert parse_domain("run", again)[0] == experiment


def test_the_page_says_how_to_install_and_whose_the_logs_are(tmp_path, quick):
    assert install_of(preset("wind", "quick")) == "pip install borelax"
    ant = install_of(preset("ant-semicircle", "quick"))
    assert ant == "pip install 'borelax[mujoco]'"
    folder = copy_finished(tmp_path, without=("[3-5]-*",))
    text = write.write_report(folder).read_text("utf-8")
    assert "pip install borelax\nborelax run" in text and "another run" not in text
    for name in ("numpy", "equinox", "jax"):
        assert f'<th scope="row">{name}</th>' in text
    status = json.loads((folder / "status.json").read_text())
    del status["seconds"]["collect"]
    (folder / "status.json").write_text(json.dumps(status))
    text = write.write_report(folder).read_text("utf-8")
    assert "those of another run" in text


def test_the_citation_is_whole():
    entries = re.findall(r"@(\w+)\{\w+,(.*?)\n\}", facts.BIBTEX, re.DOTALL)
    fields = {kind: set(re.findall(r"(\w+) +=", body)) for kind, body in entries}
    needed = {"author", "title", "booktitle", "year", "url"}
    assert needed <= fields["inproceedings"]
    assert {"author", "title", "version"} <= fields["software"]
    cff = (Path(__file__).parents[2] / "CITATION.cff").read_text("utf-8")
    assert "2008.02598" in facts.BIBTEX and "2008.02598" in cff


def test_own_families_and_values_have_no_command():
    assert command_of(Experiment(preset="custom")) is None
    assert command_of(preset("wind", "quick")) == "borelax run wind --preset quick"


@pytest.mark.parametrize("domain", ["gridworld", "semicircle"])
def test_every_metric_is_explained(domain):
    docs = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text("utf-8")
    for curve in read_run(finished(domain)).curves:
        assert f"{curve.phase}/{curve.metric}" in METRICS
        assert f"`{curve.metric}`" in docs and curve.phase in docs
    results = read_run(finished(domain)).results
    judged = {n for n in results["belief"] if not n.endswith("_per_seed")}
    assert "frozen_return" in judged and len(judged) > 1
    assert {"return", "fraction_of_bayes_optimal"} <= results.keys()
    for name in {"return", "fraction_of_bayes_optimal"} | judged:
        assert f"| `{name}` |" in docs


def test_thinning_keeps_means_and_the_last_point():
    values = np.arange(10.0)[:, None]
    values[3] = np.nan
    thin = thinned(Curve("meta", "q", np.arange(10) * 5.0, values), most=5)
    assert thin.done.tolist() == [5, 15, 25, 35, 45]
    assert thin.values[:, 0].tolist() == [0.5, 2.0, 4.5, 6.5, 8.5]
    assert thinned(thin, most=5) is thin


def test_tasks_reach_from_the_worst_to_the_best():
    returns = np.array([3.0, 1.0, 2.0, 9.0, 5.0])
    chosen = choose_tasks(returns, None, 3)
    assert chosen.tolist() == [1, 0, 3]
    assert choose_tasks(returns, None, 9).tolist() == [0, 1, 2, 3, 4]
    assert len(choose_tasks(np.zeros(21), Gridworld(), 3)) == 21
    assert len(choose_tasks(np.zeros(96), Gridworld(size=10), 3)) == 32


def test_what_cannot_be_drawn_says_why():
    with pytest.raises(ValueError, match="21×21 cells is too large"):
        frame_of(Gridworld(size=21))
    with pytest.raises(ValueError, match="only its speed"):
        frame_of(HalfCheetahVel())


def test_who_leaves_a_room_by_any_door_stays_in_the_picture_for_a_while():
    frame, doors = frame_of(EscapeRoom()), np.linspace(0, np.pi, 37)
    places = 2.0 * np.stack([np.cos(doors), np.sin(doors)], -1)  # as far as the centre
    assert (places > frame.low).all() and (places < frame.high).all()


def test_spots_lie_where_they_are_drawn():
    cells = Frame("cells", (-0.5, -0.5), (1.5, 1.5), (2, 2), "")
    assert spots_of(cells).tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]
    ring = spots_of(Frame("ring", (-1.0, -1.0), (1.0, 1.0), (4, 1), ""))
    assert np.degrees(np.arctan2(ring[:, 1], ring[:, 0])).tolist() == pytest.approx(
        [45, 135, -135, -45]
    )


def test_settings_of_another_version_are_shown_as_they_are(tmp_path):
    folder = copy_finished(tmp_path)
    settings = json.loads((folder / "experiment.json").read_text())
    settings["novelty"] = "ünknown"
    (folder / "experiment.json").write_text(json.dumps(settings))
    shutil.rmtree(folder / "5-evaluate")
    text = write.write_report(folder).read_text("utf-8")
    assert "ünknown" in text and "Missing on this page" in text
