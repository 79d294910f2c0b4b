"""What holds of every finished tiny run of a domain in the plane."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.random as jr
import numpy as np
import pytest

from borelax import manifest, store
from borelax.experiment import Experiment
from borelax.logs import read_episodes
from borelax.pipeline import Pipeline
from borelax.presets import preset
from borelax.progress import Quiet
from borelax.run_folder import NAMES, read_experiment
from tests.tiny_run import finished


def results_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text())


def check_results(results: dict[str, Any], experiment: Experiment) -> None:
    """Everything a run says of itself, and that it is consistent."""
    assert results["domain"] == experiment.family.name
    assert results["relabel"] == experiment.relabel.name
    returns, oracle = results["return"], results["oracle"]
    assert np.shape(returns["per_episode"]) == (1, experiment.family.episodes)
    share = returns["mean"] / oracle["on_test_tasks"]
    assert results["fraction_of_bayes_optimal"] == pytest.approx(share)
    longest = experiment.family.horizon * experiment.family.episodes
    assert 0 < oracle["on_test_tasks"] < longest
    assert 0 <= results["belief"]["frozen_return"] < longest
    in_order = [oracle["bayes_optimal"], oracle["known_task"]]
    if not oracle["exact"]:
        in_order.insert(1, oracle["upper_bound"])
    assert in_order == sorted(in_order) and in_order[0] > 0


def check_belief(belief: dict[str, Any]) -> None:
    """A belief of hardly any training errs, by the mean of its seeds."""
    errors = belief["prediction_error_per_seed"]
    assert len(errors) == 1 and 0 < errors[0] < 10
    assert belief["prediction_error"] == pytest.approx(np.mean(errors))
    assert belief.keys() == {
        "prediction_error",
        "prediction_error_per_seed",
        "frozen_return",
    }


def check_folder(domain: str) -> None:
    """All phases are there; the test began at the start, with tasks held out."""
    folder, experiment = finished(domain), preset(domain, "tiny")
    assert read_experiment(folder) == experiment
    assert all(manifest.is_sealed(folder / name) for name in NAMES.values())
    rollouts = read_episodes(folder / "5-evaluate" / "rollouts.npz")
    family, tested = experiment.family, experiment.evaluate.num_tasks
    assert rollouts.reward.shape == (1, tested, 1, family.episodes, family.horizon)
    assert not np.any(rollouts.obs[..., 0, :])
    pipeline = Pipeline(experiment, folder, Quiet())
    assert not np.isin(pipeline.test_tasks(), pipeline.train_tasks()).any()


def check_relabelled(domain: str) -> np.ndarray:
    """Every step of phase 2 could have happened in its task, and paid what it says.

    Returns which episodes another task's agent made [draws, E].
    """
    folder, experiment = finished(domain), preset(domain, "tiny")
    made = store.load_arrays(folder / "2-relabelled" / "provenance.npz")
    sample = read_episodes(folder / "2-relabelled" / "sample.npz")
    tasks = Pipeline(experiment, folder, Quiet()).train_tasks()[made["task"]]
    steps, family = sample.transitions(), experiment.family

    @jax.jit
    @jax.vmap
    def again(task, steps):
        one = lambda s: family.step(task, s.obs, s.action, key=jr.key(0))  # noqa: E731
        paid = jax.vmap(lambda s: family.reward(task, s))(steps)
        return jax.vmap(one)(steps), paid

    moved, paid = again(tasks, steps)
    np.testing.assert_allclose(moved, steps.next_obs, atol=1e-5)
    np.testing.assert_array_equal(paid, steps.reward)
    return made["maker"] != made["task"][:, None]


def printed(domain: str) -> str:
    """What the run printed."""
    return (finished(domain).parent / "printed.txt").read_text()
