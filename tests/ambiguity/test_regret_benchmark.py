"""The benchmark of the diagnosis: its settings are valid, its correlations right."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from borelax.presets import preset

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def benchmark():
    return runpy.run_path(str(ROOT / "benchmarks" / "ambiguity_regret.py"))


def test_every_setting_is_an_experiment_of_its_own(benchmark):
    settings = benchmark["SETTINGS"]
    assert len({setting.name for setting in settings}) == len(settings) >= 12
    for setting in settings:
        experiment = setting.experiment()
        assert experiment.relabel.name == setting.relabel
        assert experiment.collect.iterations == setting.iterations
        assert experiment.collect.start == setting.start
        assert experiment.collect.explore_iterations == setting.iterations // 2
        assert experiment.meta == preset(setting.family, "quick").meta
    kinds = {(setting.family, setting.relabel == "none") for setting in settings}
    assert len(kinds) == 2 * len({setting.family for setting in settings})


def rows_of(family: str, *values: tuple[float, float]) -> list[dict]:
    before = ("pairs_not_told_apart", "pairs_ambiguous", "steps_without_counterpart")
    more = ("pairs_at_risk", "pairs_without_a_way")
    return [
        {"name": family, "family": family, "relabel": "none"}
        | dict(zip(before, (said, -said, said / 2), strict=True))
        | dict.fromkeys(more, said)
        | {"regret": cost}
        for said, cost in values
    ]


def test_families_may_differ_without_hiding_what_holds_within_them(
    benchmark, tmp_path, capsys
):
    easy = rows_of("wind", (0.8, 0.01), (0.9, 0.02), (0.95, 0.03))
    hard = rows_of("semicircle", (0.0, 0.5), (0.1, 0.6))
    found = benchmark["correlation"](easy + hard, "pairs_not_told_apart", "regret")
    assert found["within families"] == pytest.approx(1)
    assert found["over all"] == pytest.approx(-0.5)
    benchmark["summarise"](easy + hard, tmp_path)
    summary = json.loads((tmp_path / "regret.json").read_text())
    within = summary["rank_correlation"]["pairs_ambiguous"]
    assert within["within families"] == pytest.approx(-1)
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    assert "over 5 settings" in capsys.readouterr().out


def test_parts_are_measured_apart_and_once(benchmark, tmp_path, monkeypatch, capsys):
    """Processes that measure some settings each, then one that sums up."""
    made, main = [], benchmark["main"]

    def measure(setting, seeds, out):
        made.append(setting.name)
        (row,) = rows_of(setting.family, (len(made), 2.0 * len(made)))
        return row | {"name": setting.name}

    monkeypatch.setitem(main.__globals__, "measure", measure)

    def call(*words):
        monkeypatch.setattr("sys.argv", ["regret", "--out", str(tmp_path), *words])
        main()

    call("--only", "semicircle-fixed")
    assert made == [f"semicircle-fixed-40-{x}" for x in ("none", "rewards")]
    assert not (tmp_path / "regret.json").exists()
    call("--families", "semicircle")
    assert len(made) == len(set(made)) == 6
    assert "over 6 settings" in capsys.readouterr().out
    call("--only", "semicircle-fixed", "--seeds", "2")
    assert len(made) == 8, "other seeds are another measurement"


def test_a_setting_is_diagnosed_trained_and_tested(benchmark, tmp_path, monkeypatch):
    """On the logs that settings of other relabellings use, too."""
    kind = benchmark["Setting"]

    def experiment(setting):
        relabel = benchmark["RELABEL"][setting.relabel]
        return replace(preset("gridworld", "tiny"), relabel=relabel)

    monkeypatch.setattr(kind, "experiment", experiment)
    made = {}
    for relabel in ("none", "rewards"):
        setting = kind("gridworld", relabel, "uniform", 3)
        row = made[relabel] = benchmark["measure"](setting, 1, tmp_path)
        results = json.loads((tmp_path / setting.name / "results.json").read_text())
        assert row["name"] == setting.name and results["seeds"] == 1
        assert row["regret"] == pytest.approx(1 - results["fraction_of_bayes_optimal"])
        assert row["pairs_ambiguous"] <= row["pairs_not_told_apart"] <= 1
        risks = (row["pairs_not_told_apart"], row["pairs_without_a_way"])
        assert row["pairs_at_risk"] == max(risks)
    logs = {
        (path / "1-logs" / "manifest.json").read_bytes()
        for path in tmp_path.iterdir()
        if path.is_dir()
    }
    assert len(logs) == 1, "one set of logs, under three names"
    fewer = made["rewards"]["steps_without_counterpart"]
    assert fewer < made["none"]["steps_without_counterpart"]


def test_what_never_differs_has_no_rank_correlation(benchmark, tmp_path):
    rows = rows_of("wind", (0.0, 0.1), (0.0, 0.2))
    benchmark["summarise"](rows, tmp_path)
    summary = json.loads((tmp_path / "regret.json").read_text())
    assert summary["rank_correlation"]["pairs_not_told_apart"]["over all"] is None


def test_equal_values_share_their_rank(benchmark):
    rows = rows_of("wind", (0.0, 0.1), (0.0, 0.1), (1.0, 0.5), (1.0, 0.5))
    found = benchmark["correlation"](rows, "pairs_not_told_apart", "regret")
    assert found == {"over all": pytest.approx(1), "within families": pytest.approx(1)}
