"""What a user reads at the end: the table of a run, and the oracle's."""

import copy
import io

import pytest
from rich.console import Console

from borelax.errors import ConfigError
from borelax.report.table import print_results
from borelax.tasks.gridworld import Gridworld
from tests.tiny_run import command

RESULTS = {
    "domain": "gridworld",
    "preset": "quick",
    "relabel": "rewards",
    "exact_belief": False,
    "seeds": 2,
    "return": {
        "mean": 30.0,
        "std": 1.0,
        "per_seed": [29.0, 31.0],
        "per_episode": [[5.0, 24.0], [7.0, 24.0]],
    },
    "oracle": {
        "bayes_optimal": 40.0,
        "known_task": 44.0,
        "thompson_per_episode": 8.0,
        "thompson_per_step": 34.0,
        "exact": True,
        "on_test_tasks": 40.0,
    },
    "fraction_of_bayes_optimal": 0.75,
    "belief": {
        "posterior_error": 0.0125,
        "exact_plan_return": 36.5,
        "frozen_return": 10.0,
    },
    "wall_seconds": {"collect": 10.0, "relabel": 0.25, "belief": 100.0},
}


def table(results: dict, width: int = 80) -> list[list[str]]:
    """The rows of the printed table, cell by cell, and its plain lines."""
    out = io.StringIO()
    print_results(results, Console(file=out, width=width))
    return [
        [cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")]
        for line in out.getvalue().splitlines()
    ]


def test_returns_stand_beside_the_oracles():
    rows = table(RESULTS)
    assert rows[0] == ["gridworld, quick, relabel rewards, 2 seeds"]
    for row in (
        ["episode 1", "6.00", ""],
        ["episode 2", "24.00", ""],
        ["borelax, all episodes", "30.00", "75.0%"],
        ["Bayes-optimal", "40.00", "100.0%"],
        ["Thompson sampling, redrawn when ruled out", "34.00", "85.0%"],
        ["Thompson sampling, per episode", "8.00", "20.0%"],
        ["task known", "44.00", "110.0%"],
        ["borelax, belief frozen at the prior", "10.00", "25.0%"],
    ):
        assert row in rows
    assert "of Bayes-optimal" in rows[2]
    assert rows[-2] == [
        "Belief: 0.013 from the exact posterior; the exact plan on it returns 36.50."
    ]
    assert rows[-1] == [
        "Seconds: collect 10.0, relabel 0.2, belief 100.0; 110.2 in all."
    ]


def test_what_is_not_known_is_left_out():
    results = copy.deepcopy(RESULTS)
    unknown = dict.fromkeys(results["oracle"], None)
    results["oracle"] = unknown | {"known_task": 44.0, "exact": True}
    del results["belief"]["exact_plan_return"]
    rows = table(results)
    assert ["borelax, all episodes", "30.00", "unknown"] in rows
    assert ["task known", "44.00", "unknown"] in rows
    assert not [row for row in rows if "Thompson" in row[0] or "Bayes" in row[0]]
    results["oracle"]["bayes_optimal"] = 40.0  # of all tasks, and not all were tested
    assert ["Bayes-optimal", "40.00", "unknown"] in table(results)
    assert rows[-2] == ["Belief: 0.013 from the exact posterior."]
    exact = {"posterior_error": 0.0, "frozen_return": 10.0}
    assert table(results | {"exact_belief": True, "belief": exact})[-2] == [
        "The meta-agent was given the exact posterior."
    ]


def rows_with(oracle: dict) -> list[list[str]]:
    belief = {"prediction_error": 0.25, "frozen_return": 10.0}
    return table(RESULTS | {"oracle": oracle, "belief": belief})


def test_a_search_is_not_called_optimal_and_has_a_bound_above():
    """Shares are of what the search returns on the tasks of the test."""
    oracle = {"bayes_optimal": 41.0, "upper_bound": 42.0, "known_task": 50.0}
    rows = rows_with(oracle | {"exact": False, "on_test_tasks": 40.0})
    assert "of best search" in rows[2]
    names = [row[0] for row in rows]
    first = names.index("borelax, all episodes")
    assert rows[first : first + 5] == [
        ["borelax, all episodes", "30.00", "75.0%"],
        ["best known search", "40.00", "100.0%"],
        ["no agent can exceed", "42.00", "105.0%"],
        ["task known", "50.00", "125.0%"],
        ["borelax, belief frozen at the prior", "10.00", "25.0%"],
    ]
    assert "Bayes-optimal" not in names
    assert rows[-2] == ["Belief: its predictions are 0.250 from the exact posterior's."]


def test_what_memory_is_worth_is_shown_where_it_is_known():
    oracle = {"bayes_optimal": 40.0, "known_task": 40.0, "memoryless": 20.0}
    rows = rows_with(oracle | {"exact": True, "on_test_tasks": 40.0})
    assert ["Bayes-optimal", "40.00", "100.0%"] in rows
    assert ["without memory", "20.00", "50.0%"] in rows
    assert "no agent can exceed" not in [row[0] for row in rows]


@pytest.fixture(autouse=True)
def wide(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def oracle_rows(capsys, *flags: object) -> tuple[dict[str, list[float]], list[str]]:
    """The numbers that ``borelax oracle`` prints, by row, and its other lines."""
    assert command("oracle", "gridworld", *flags) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.strip("│").split("│") for line in lines if line.startswith("│")]
    numbers = {name.strip(): [float(x) for x in cells] for name, *cells in rows}
    return numbers, [line for line in lines if line.startswith("search")]


def test_the_oracle_of_the_papers_grid(capsys):
    rows, search = oracle_rows(capsys, "--no-recompute")
    assert rows["Bayes-optimal"][-1] == pytest.approx(37.214)
    assert rows["task known"][-1] == pytest.approx(44.286)
    for values in rows.values():
        assert len(values) == 5
        assert values[-1] == pytest.approx(sum(values[:-1]), abs=0.003)
        assert values[-1] <= rows["task known"][-1]
    assert len(search) == 4 and all(len(line.split(": ")[1]) == 15 for line in search)


def test_the_oracle_of_a_small_grid_is_solved_at_once(capsys):
    small = ("--family.size", 3, "--family.horizon", 4, "--family.episodes", 2)
    rows, search = oracle_rows(capsys, *small)
    assert [len(values) for values in rows.values()] == [3, 3, 3, 3]
    best, known = rows["Bayes-optimal"][-1], rows["task known"][-1]
    assert rows["Thompson sampling, per episode"][-1] <= best < known
    assert len(search) == 2


def test_an_oracle_that_is_too_large_says_so(capsys, monkeypatch):
    def refuse(_: Gridworld) -> None:
        raise ConfigError("Too large.")

    for solve in ("plan_search", "thompson_per_step", "thompson_per_episode"):
        monkeypatch.setattr(f"borelax.oracles.gridworld.{solve}", refuse)
    assert command("oracle", "gridworld", "--family.size", 7) == 0
    out = capsys.readouterr().out
    assert out.count("too large") == 3 * 5 and "search" not in out
    assert "task known" in out
