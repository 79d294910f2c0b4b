"""The benchmark of the diagnosis: its settings are valid, its correlations right."""

import json
import runpy
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
        searches = setting.family in ("semicircle", "escape-room")
        like = preset(setting.family, "paper" if searches else "quick")
        assert experiment.meta == like.meta
    kinds = {(setting.family, setting.relabel == "none") for setting in settings}
    assert len(kinds) == 2 * len({setting.family for setting in settings})


def rows_of(family: str, *values: tuple[float, float]) -> list[dict]:
    before = ("pairs_not_told_apart", "pairs_ambiguous", "steps_without_counterpart")
    return [
        {"name": family, "family": family, "relabel": "none"}
        | dict(zip(before, (said, -said, said / 2), strict=True))
        | {"regret": cost, "cost_of_belief": -cost}
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
    within = summary["rank_correlation"]["pairs_not_told_apart"]["cost_of_belief"]
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
    fixed = [
        f"semicircle-fixed-{n}-{x}" for n in (40, 120) for x in ("none", "rewards")
    ]
    assert made == fixed
    assert not (tmp_path / "regret.json").exists()
    call("--families", "semicircle")
    assert len(made) == len(set(made)) == 12
    assert "over 12 settings" in capsys.readouterr().out
    call("--only", "semicircle-fixed", "--seeds", "2")
    assert len(made) == 16, "other seeds are another measurement"


def test_what_never_differs_has_no_rank_correlation(benchmark, tmp_path):
    rows = rows_of("wind", (0.0, 0.1), (0.0, 0.2))
    benchmark["summarise"](rows, tmp_path)
    summary = json.loads((tmp_path / "regret.json").read_text())
    assert (
        summary["rank_correlation"]["pairs_not_told_apart"]["regret"]["over all"]
        is None
    )


def test_equal_values_share_their_rank(benchmark):
    rows = rows_of("wind", (0.0, 0.1), (0.0, 0.1), (1.0, 0.5), (1.0, 0.5))
    found = benchmark["correlation"](rows, "pairs_not_told_apart", "regret")
    assert found == {"over all": pytest.approx(1), "within families": pytest.approx(1)}
