"""A whole run on Ant-Semi-circle: MuJoCo, rewards relabelled, a known posterior."""

import jax
import numpy as np
import pytest

from borelax import manifest, store
from borelax.errors import ConfigError
from borelax.experiment import Experiment
from borelax.logs import read_episodes
from borelax.oracles.exact_belief import exact_belief
from borelax.oracles.oracle import oracle_of
from borelax.pipeline import Pipeline
from borelax.presets import preset
from borelax.progress import Quiet
from borelax.report.frames import spots_of
from borelax.report.scenes import make_scenes
from borelax.report.trained import Trained
from borelax.run_folder import NAMES, read_experiment
from borelax.simulate import mujoco_engine
from tests.tiny_run import command, copy_finished, finished, run_tiny, shas
from tests.whole_runs.laws import check_belief, printed, results_of

DOMAIN = "ant-semicircle"
TINY = preset(DOMAIN, "tiny")


def test_a_run_leaves_results_and_every_phase():
    results, folder = results_of(finished(DOMAIN)), finished(DOMAIN)
    assert results["domain"] == DOMAIN and results["relabel"] == "rewards"
    assert np.shape(results["return"]["per_episode"]) == (1, 2)
    assert results["fraction_of_bayes_optimal"] is None
    assert results["oracle"] == {
        "bayes_optimal": None,
        "known_task": None,
        "exact": False,
        "on_test_tasks": None,
    }
    check_belief(results["belief"])
    assert read_experiment(folder) == TINY
    assert all(manifest.is_sealed(folder / name) for name in NAMES.values())


def test_the_table_shows_no_oracle():
    table = printed(DOMAIN)
    assert "borelax, all episodes" in table and "frozen at the prior" in table
    assert "unknown" not in table and "None" not in table
    assert "from the exact posterior's" in table


def test_pictures_show_the_posterior_beside_the_belief():
    folder = finished(DOMAIN)
    scenes = make_scenes(Trained(folder, TINY))
    assert scenes.learned.shape == scenes.exact.shape and len(scenes.labels) == 3
    assert (scenes.exact >= 0).all() and (scenes.exact <= 1).all()
    apex = np.argmin(np.linalg.norm(spots_of(scenes.frame) - [0.0, 1.0], axis=1))
    chance = 4 * np.arcsin(0.1) / np.pi  # that a goal is within 0.2 of a place
    np.testing.assert_allclose(scenes.exact[0, :, 0, apex], chance, atol=0.02)
    assert not scenes.exact[0, :, 0, 0].any(), "no goal is in the corner"


def test_agents_see_by_the_scale_of_their_random_rollouts_and_rollouts_of_pieces():
    assert TINY.collect.standardise and TINY.relabel.belief_pieces == 1
    scale = Pipeline(TINY, finished(DOMAIN), Quiet()).logs.policies.state.standardise
    assert scale.mean.shape == (3, 29) and (scale.mean != 0).all(axis=0).any()


def test_the_test_starts_in_the_middle_and_the_logs_do_not():
    tested = read_episodes(finished(DOMAIN) / "5-evaluate" / "rollouts.npz").obs
    assert tested.shape == (1, 3, 1, 2, 11, 29)
    assert not np.any(tested[..., 0, :2]) and (tested[..., 0, 2] == 0.75).all()
    logged = Pipeline(TINY, finished(DOMAIN), Quiet()).logs.episodes.obs
    assert np.all(np.any(logged[..., 0, :2] != 0, axis=-1))


def test_relabelled_rewards_are_those_of_their_task():
    folder = finished(DOMAIN)
    made = store.load_arrays(folder / "2-relabelled" / "provenance.npz")
    steps = read_episodes(folder / "2-relabelled" / "sample.npz").transitions()
    tasks = Pipeline(TINY, folder, Quiet()).train_tasks()[made["task"]]
    of_steps = jax.vmap(TINY.family.reward, in_axes=(None, 0))
    paid = jax.jit(jax.vmap(of_steps))(tasks, steps)
    np.testing.assert_allclose(paid, steps.reward, atol=1e-6)
    assert (made["maker"] != made["task"][:, None]).any()


def test_phases_called_again_give_the_same_bits(tmp_path, capsys):
    out = copy_finished(tmp_path, without=("[45]-*",), domain=DOMAIN)
    assert run_tiny(out, domain=DOMAIN) == 0
    assert shas(out) == shas(finished(DOMAIN))


def test_logs_of_another_mujoco_are_refused(tmp_path, monkeypatch, capsys):
    out = copy_finished(tmp_path, domain=DOMAIN)
    monkeypatch.setattr(mujoco_engine, "mujoco_version", lambda: "9.9.9")
    assert run_tiny(out, domain=DOMAIN) == 2
    assert "-> MuJoCo 9.9.9" in capsys.readouterr().err
    assert run_tiny(tmp_path / "new", "--logs", out, domain=DOMAIN) == 2
    assert "-> MuJoCo 9.9.9" in capsys.readouterr().err


def test_without_mujoco_a_sentence_says_what_to_install(tmp_path, monkeypatch, capsys):
    def missing() -> str:
        raise ConfigError("pip install borelax[mujoco]")

    monkeypatch.setattr(mujoco_engine, "mujoco_version", missing)
    assert run_tiny(tmp_path / "out", domain=DOMAIN) == 2
    assert "pip install borelax[mujoco]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("domain", [DOMAIN, "half-cheetah-vel"])
def test_there_is_no_oracle(domain, capsys):
    assert oracle_of(preset(domain, "tiny").family).policy() is None
    assert command("oracle", domain) == 2
    assert "There is no oracle for" in capsys.readouterr().err


def test_half_cheetahs_exact_belief_is_refused():
    tiny = preset("half-cheetah-vel", "tiny")
    with pytest.raises(ConfigError, match=r"exact posterior.* is not known"):
        Experiment(**{**vars(tiny), "exact_belief": True})
    with pytest.raises(ConfigError, match=r"exact posterior.* is not known"):
        exact_belief(tiny.family, 1)


def test_a_meta_agent_can_be_given_the_exact_posterior(tmp_path, capsys):
    out = copy_finished(tmp_path, without=("[345]-*", "results.json"), domain=DOMAIN)
    given = ("--exact-belief", "--logs", out)
    assert run_tiny(tmp_path / "exact", *given, domain=DOMAIN) == 0
    assert "was given the exact posterior" in capsys.readouterr().out
    assert results_of(tmp_path / "exact")["belief"]["prediction_error"] == 0
    assert not (tmp_path / "exact" / "3-belief").exists()
    assert command("report", tmp_path / "exact") == 0
    page = (tmp_path / "exact" / "report.html").read_text()
    assert "<figcaption>exact posterior" in page
    assert "<figcaption>learned belief" not in page
    assert "could not be made" not in page


def test_half_cheetah_runs_through_every_phase(tmp_path, capsys):
    assert run_tiny(tmp_path / "run", domain="half-cheetah-vel") == 0
    results = results_of(tmp_path / "run")
    assert results["relabel"] == "none" and results["belief"].keys() == {
        "frozen_return"
    }
    per_episode = results["return"]["per_episode"]
    assert np.shape(per_episode) == (1, 2) and np.max(per_episode) < 0
    assert "are not known here" in capsys.readouterr().out
    logs = Pipeline(preset("half-cheetah-vel", "tiny"), tmp_path / "run", Quiet()).logs
    assert logs.episodes.obs.shape == (3, 4, 2, 11, 18)
    speed, target = logs.episodes.obs[..., 1:, -1], np.asarray(logs.tasks)
    cost = 0.05 * np.square(logs.episodes.action).sum(-1)
    expected = -np.abs(speed - target[:, None, None, None]) - cost
    np.testing.assert_allclose(logs.episodes.reward, expected, rtol=1e-5)
