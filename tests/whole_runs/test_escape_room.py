"""A whole run on Escape-Room: policies replayed where tasks differ in transitions."""

import numpy as np

from borelax.presets import preset
from borelax.run_folder import read_experiment
from tests.tiny_run import command, copy_finished, finished, shas
from tests.whole_runs.laws import (
    check_belief,
    check_folder,
    check_relabelled,
    check_results,
    printed,
    results_of,
)

DOMAIN = "escape-room"
TINY = preset(DOMAIN, "tiny")


def test_a_run_leaves_results_and_every_phase():
    results = results_of(finished(DOMAIN))
    check_results(results, TINY)
    check_belief(results["belief"])
    assert results["relabel"] == "policies" and results["oracle"]["exact"] is False
    assert "best known search" in printed(DOMAIN)
    check_folder(DOMAIN)


def test_half_of_each_rollout_is_a_visitors_at_least():
    borrowed = check_relabelled(DOMAIN)
    assert ((borrowed.sum(axis=1) == 1) | borrowed.all(axis=1)).all()


def test_phases_called_again_replay_the_same_visits(tmp_path, capsys):
    out = copy_finished(tmp_path, without=("[2-5]-*",), domain=DOMAIN)
    for phase in ("belief", "meta"):
        assert command(phase, out, "--no-deterministic") == 0
    assert read_experiment(out) == TINY
    assert shas(out).items() < shas(finished(DOMAIN)).items()


def test_visits_begin_where_the_logs_do():
    made = np.load(finished(DOMAIN) / "2-relabelled" / "sample.npz")["obs"]
    assert TINY.collect.start == "uniform"
    begun = np.linalg.norm(made[..., 0, :], axis=-1)
    assert (begun > 0).all() and (begun < 1).all()
