"""Laws of whole runs: what they leave behind, once, and always the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import borelax
from borelax import manifest, store
from borelax.belief.fit import FitBelief
from borelax.belief.view import FrozenBelief
from borelax.collect.collect import Collect
from borelax.evaluate.evaluate import Evaluate
from borelax.logs import read_episodes
from borelax.meta.fit import FitMeta
from borelax.meta.policy import BeliefPolicy
from borelax.pipeline import Pipeline
from borelax.progress import Quiet
from borelax.run_folder import NAMES, RunFolder, read_experiment
from tests.tiny_run import (
    EXPERIMENT,
    compiled_quickly,
    copy_finished,
    finished,
    note_tests,
    run_tiny,
    shas,
    work_out,
)


def results_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text())


def check_schema(results: dict[str, Any], *, seeds: int, exact_belief: bool) -> None:
    assert list(results) == [
        "domain",
        "preset",
        "relabel",
        "exact_belief",
        "seeds",
        "tested_on",
        "return",
        "oracle",
        "fraction_of_bayes_optimal",
        "belief",
        "wall_seconds",
    ]
    assert (results["domain"], results["preset"]) == ("gridworld", "tiny")
    assert (results["seeds"], results["exact_belief"]) == (seeds, exact_belief)
    returns = results["return"]
    table = np.asarray(returns["per_episode"])
    assert table.shape == (seeds, 4)
    np.testing.assert_allclose(returns["per_seed"], table.sum(axis=1), rtol=1e-6)
    assert returns["mean"] == pytest.approx(np.mean(returns["per_seed"]))
    assert returns["std"] == pytest.approx(np.std(returns["per_seed"]))
    oracle = results["oracle"]
    assert set(oracle) == {
        "bayes_optimal",
        "known_task",
        "thompson_per_episode",
        "thompson_per_step",
        "exact",
        "on_test_tasks",
    }
    assert oracle["on_test_tasks"] == oracle["bayes_optimal"], "all tasks are tested"
    share = returns["mean"] / oracle["bayes_optimal"]
    assert results["fraction_of_bayes_optimal"] == pytest.approx(share)
    assert results["belief"]["posterior_error"] >= 0
    assert np.isfinite(results["belief"]["frozen_return"])
    assert all(seconds >= 0 for seconds in results["wall_seconds"].values())


def test_a_run_leaves_results_and_every_phase():
    results = results_of(finished())
    check_schema(results, seeds=1, exact_belief=False)
    assert results["relabel"] == "rewards"
    assert len(results["belief"]["posterior_error_per_seed"]) == 1
    assert list(results["wall_seconds"]) == list(NAMES)
    for phase in NAMES.values():
        assert manifest.open_sealed(finished() / phase)["settings"]
    assert read_experiment(finished()) == EXPERIMENT
    assert store.read_json(finished() / "environment.json")["jax"] == jax.__version__
    assert not list(finished().rglob("*.partial"))
    assert not list(finished().rglob("checkpoint.safetensors"))


def test_a_second_run_trains_nothing_and_touches_nothing(tmp_path, monkeypatch):
    folder = copy_finished(tmp_path)
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in files_of(folder)}
    results = (folder / "results.json").read_bytes()

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a finished phase was worked on again")

    for phase in (Collect, FitBelief, FitMeta):
        monkeypatch.setattr(phase, "__call__", never)
    monkeypatch.setattr(RunFolder, "_make", never)
    assert run_tiny(folder) == 0
    after = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in files_of(folder)}
    assert after == before
    assert (folder / "results.json").read_bytes() == results


def files_of(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("[1-5]-*/**/*") if p.is_file())


def test_equal_seeds_equal_bytes_and_other_seeds_others(tmp_path):
    work_out(tmp_path / "again")
    assert shas(tmp_path / "again") == shas(finished())
    work_out(tmp_path / "other", replace(EXPERIMENT, seed=1))
    theirs, ours = shas(tmp_path / "other"), shas(finished())
    same = {name for name in ours if theirs[name] == ours[name]}
    assert same <= {"1-logs/tasks.safetensors", "5-evaluate/rollouts.npz"}


def test_the_public_api_runs_and_returns_the_results(tmp_path):
    folder = copy_finished(tmp_path, without=("5-evaluate", "results.json"))
    with compiled_quickly():
        results = borelax.run(EXPERIMENT, folder, display=Quiet())
    assert results == results_of(folder)
    assert results["return"] == results_of(finished())["return"]


def test_logs_of_another_run_are_used_bit_for_bit(tmp_path, capsys):
    _ = finished()
    out = tmp_path / "second"
    assert run_tiny(out, "--logs", finished(), "--relabel", "none", "--seeds", 2) == 0
    logs = {k: v for k, v in shas(finished()).items() if k.startswith("1-logs")}
    assert logs.items() <= shas(out).items()
    results = results_of(out)
    check_schema(results, seeds=2, exact_belief=False)
    assert results["relabel"] == "none" and "collect" not in results["wall_seconds"]
    assert results["return"]["per_seed"] and "2 seeds" in capsys.readouterr().out
    made = store.load_arrays(out / "2-relabelled" / "provenance.npz")
    assert (made["maker"] == made["task"][:, None]).all()
    capsys.readouterr()
    other = ("--collect.explore-last", 0.2, "--seed", 3)
    assert run_tiny(tmp_path / "third", "--logs", finished(), *other) == 2
    sentence = capsys.readouterr().err
    assert "seed: 0 -> 3; collect.explore_last: 0.1 -> 0.2" in sentence
    assert not (tmp_path / "third" / "1-logs").exists()


def test_logs_that_are_not_there_or_damaged_are_refused(tmp_path, capsys):
    assert run_tiny(tmp_path / "out", "--logs", tmp_path / "nothing") == 3
    assert "nothing/1-logs is not complete" in capsys.readouterr().err
    other = copy_finished(tmp_path)
    shard = other / "1-logs" / "rollouts-000.npz"
    shard.write_bytes(shard.read_bytes()[::-1])
    assert run_tiny(tmp_path / "out", "--logs", other) == 3
    assert f"{shard} is damaged" in capsys.readouterr().err


def test_the_exact_belief_needs_no_learned_one(tmp_path, capsys):
    out = copy_finished(tmp_path, without=("3-belief", "4-meta", "5-evaluate"))
    assert run_tiny(out, "--exact-belief") == 0
    results = results_of(out)
    check_schema(results, seeds=1, exact_belief=True)
    assert results["belief"].keys() == {"posterior_error", "frozen_return"}
    assert results["belief"]["posterior_error"] == 0
    assert not (out / "3-belief").exists()
    assert "given the exact posterior" in capsys.readouterr().out


def test_the_frozen_return_is_that_of_the_same_agents_at_the_prior(
    tmp_path, monkeypatch
):
    tests = note_tests(monkeypatch)
    with compiled_quickly():
        pipeline = Pipeline(EXPERIMENT, copy_finished(tmp_path), Quiet())
        results = pipeline.results()
    (frozen,) = (asked for asked, _ in tests if isinstance(asked, BeliefPolicy))
    assert isinstance(frozen.belief, FrozenBelief)
    unfrozen = replace(frozen, belief=frozen.belief.belief)
    assert eqx.tree_equal(unfrozen, pipeline.policies)
    assert results["belief"]["frozen_return"] == 4 * 15


def test_some_goals_are_not_worth_what_all_goals_are(tmp_path, capsys):
    """A mean over a part of a finite family is no expectation: nothing to divide by."""
    folder = copy_finished(tmp_path, without=("5-evaluate",))
    assert run_tiny(folder, "--evaluate.num-tasks", 5) == 0
    results = results_of(folder)
    assert results["oracle"]["on_test_tasks"] is None
    assert results["fraction_of_bayes_optimal"] is None
    assert "unknown" in capsys.readouterr().out


def test_relabelled_rollouts_come_with_their_makers():
    folder, family = finished() / "2-relabelled", EXPERIMENT.family
    made = store.load_arrays(folder / "provenance.npz")
    task, maker = made["task"], made["maker"]
    assert task.shape == (100,) and maker.shape == (100, 4)
    borrowed = maker != task[:, None]
    assert (borrowed.sum(axis=1) == 2).all()  # half of the four episodes
    assert (maker.max(axis=1) < 21).all() and (maker >= 0).all()
    rollouts = read_episodes(folder / "sample.npz")
    goals = family.all_tasks()[jnp.asarray(task)]
    rewards = jax.vmap(lambda g, s: jax.vmap(lambda x: family.reward(g, x))(s))
    expected = rewards(goals, rollouts.transitions())
    assert (expected.reshape(rollouts.reward.shape) == rollouts.reward).all()


def test_evaluation_covers_every_task_from_the_fixed_start():
    rollouts = read_episodes(finished() / "5-evaluate" / "rollouts.npz")
    assert rollouts.reward.shape == (1, Evaluate().num_tasks, 1, 4, 15)
    assert (rollouts.obs[..., 0, :].argmax(axis=-1) == 0).all()
