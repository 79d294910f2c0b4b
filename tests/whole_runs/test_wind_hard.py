"""A whole run on the hard Wind: logs as they are, and transitions to be decoded."""

from borelax.presets import preset
from borelax.run_folder import read_experiment
from tests.tiny_run import copy_finished, finished, run_tiny, shas
from tests.whole_runs.laws import (
    check_belief,
    check_folder,
    check_relabelled,
    check_results,
    printed,
    results_of,
)

DOMAIN = "wind-hard"
TINY = preset(DOMAIN, "tiny")


def test_a_run_leaves_results_and_every_phase():
    results = results_of(finished(DOMAIN))
    check_results(results, TINY)
    check_belief(results["belief"])
    assert results["relabel"] == "none" and results["oracle"]["exact"] is True
    assert 0 < results["oracle"]["memoryless"] < results["oracle"]["bayes_optimal"]
    check_folder(DOMAIN)


def test_the_table_tells_what_memory_is_worth():
    table = printed(DOMAIN)
    assert "Bayes-optimal" in table and "without memory" in table
    assert "best known search" not in table and "no agent can exceed" not in table


def test_nothing_is_borrowed():
    assert not check_relabelled(DOMAIN).any()


def test_the_meta_agent_may_learn_from_expected_rewards_and_with_care(tmp_path):
    out = copy_finished(tmp_path, without=("[4-5]-*",), domain=DOMAIN)
    flags = ("--meta.expected-rewards", "--meta.agent.cql-weight", 1)
    assert run_tiny(out, *flags, domain=DOMAIN) == 0
    meta = read_experiment(out).meta
    assert meta.expected_rewards is True and meta.agent.cql_weight == 1
    check_results(results_of(out), TINY)
    theirs, ours = shas(finished(DOMAIN)), shas(out)
    assert {name for name in ours if ours[name] != theirs[name]} >= {
        "4-meta/agent.safetensors",
        "4-meta/metrics.jsonl",
    }
    assert ours["3-belief/model.safetensors"] == theirs["3-belief/model.safetensors"]
