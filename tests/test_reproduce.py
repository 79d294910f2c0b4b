"""Laws of ``borelax reproduce table1``: cells differ in one thing, share the rest."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from borelax.belief.fit import FitBelief
from borelax.collect.collect import Collect
from borelax.experiment import differences
from borelax.locks import alone_in
from borelax.meta.fit import FitMeta
from borelax.pipeline import Pipeline
from borelax.presets import PRESETS
from borelax.reproduce import CELLS, SHARED, Cell, maker_of
from borelax.run_folder import NAMES, SETTINGS
from tests.tiny_run import command, shas

CELL = {cell.name: cell for cell in CELLS}
FLAGS = ("--preset", "tiny", "--meta-updates", "3", "--no-deterministic")
TWO = ("--cells", "ant-uniform-cql", "ant-uniform-sac")


def changed(old: str, new: str) -> list[str]:
    """What differs between the experiments of two cells."""
    jsons = [CELL[name].experiment("gpu").to_json() for name in (old, new)]
    return list(differences(*jsons))


def test_cells_differ_in_what_their_names_say():
    cql = ["meta.agent.cql_states: 0 -> 32", "meta.agent.cql_weight: 0.0 -> 0.1"]
    for start in ("uniform", "excluding", "fixed"):
        assert sorted(changed(f"ant-{start}-sac", f"ant-{start}-cql")) == cql
    fixed = ["collect.start: uniform -> fixed"]
    assert changed("ant-uniform-sac", "ant-fixed-sac") == fixed
    for name in ("ant-uniform-sac", "half-cheetah-sac"):
        assert "relabel.kind: RelabelRewards -> KeepAsIs" in changed(
            name, f"{name}-raw"
        )
        assert all(x.startswith("relabel.") for x in changed(name, f"{name}-raw"))


def test_the_published_numbers_are_the_papers():
    assert {
        name: (cell.published.mean, cell.published.std)
        for name, cell in CELL.items()
        if cell.published is not None
    } == {
        "ant-uniform-sac": (171.8, 7.0),
        "ant-uniform-cql": (176.0, 10.2),
        "ant-excluding-sac": (102.8, 32.7),
        "ant-excluding-cql": (116.6, 19.9),
        "ant-fixed-sac": (99.2, 27.4),
        "ant-fixed-cql": (112.4, 31.3),
        "half-cheetah-sac": (-50.9, None),
        "half-cheetah-sac-raw": (-50.9, None),
    }
    varibad = CELL["half-cheetah-sac"].published
    assert sum(varibad.per_episode) == pytest.approx(varibad.mean)


def settings(phase: str, cell: Cell, preset: str) -> dict:
    experiment = cell.experiment(preset).to_json()
    return {part: experiment[part] for part in SETTINGS[phase]}


@pytest.mark.parametrize("preset", PRESETS["ant-semicircle"])
def test_what_is_shared_has_one_maker_and_the_same_settings(preset):
    makers = {
        phase: Counter(maker_of(phase, x).name for x in CELLS) for phase in SHARED
    }
    assert makers["collect"] == {
        "ant-uniform-sac": 3,
        "ant-excluding-sac": 2,
        "ant-fixed-sac": 2,
        "half-cheetah-sac": 2,
    }
    alone = {"ant-uniform-sac-raw": 1, "half-cheetah-sac-raw": 1}
    shared = {"ant-uniform-sac": 2, "half-cheetah-sac": 1}
    assert makers["belief"] == makers["relabel"] == makers["collect"] | shared | alone
    for phase in SHARED:
        for cell in CELLS:
            maker = maker_of(phase, cell)
            assert settings(phase, cell, preset) == settings(phase, maker, preset)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> tuple[Path, Counter]:
    """Two cells, stopped before the second's meta-agent and then continued.

    Returns their folder and how often each phase was worked out.
    """
    out, made = tmp_path_factory.mktemp("table") / "table1", Counter()

    def noting(kind: type, stopped: bool):
        work = kind.__call__

        def call(self, *args, **kwargs):
            made[kind.__name__] += 1
            if stopped and kind is FitMeta and self.agent.cql_weight:
                raise KeyboardInterrupt
            return work(self, *args, **kwargs)

        return call

    for stopped, code in ((True, 130), (False, 0)):
        with pytest.MonkeyPatch.context() as patch:
            for kind in (Collect, FitBelief, FitMeta):
                patch.setattr(kind, "__call__", noting(kind, stopped))
            assert command("reproduce", "table1", *FLAGS, *TWO, "--out", out) == code
        so_far = json.loads((out / "table1.json").read_text())["cells"]
        assert len(so_far) == (1 if stopped else 2)
    return out, made


def test_each_phase_is_worked_out_once_for_all_who_share_it(table):
    out, made = table
    assert made == {"Collect": 1, "FitBelief": 1, "FitMeta": 3}  # one was stopped
    sac, cql = shas(out / "ant-uniform-sac"), shas(out / "ant-uniform-cql")
    assert sac.keys() == cql.keys()
    for name in sac:
        assert (sac[name] == cql[name]) == (name[0] in "123"), name


def test_the_json_holds_every_cell_that_is_done(table):
    out, _ = table
    content = json.loads((out / "table1.json").read_text())
    assert content.keys() == {
        "preset",
        "cql_weight",
        "meta_updates",
        "cells",
        "missing",
    }
    assert content["meta_updates"] == 3
    assert content["preset"] == "tiny" and content["cql_weight"] == 0.1
    done = {cell["cell"]: cell for cell in content["cells"]}
    assert list(done) == ["ant-uniform-sac", "ant-uniform-cql"]
    assert [*done, *content["missing"]] == [cell.name for cell in CELLS]
    for name, cell in done.items():
        results = json.loads((out / name / "results.json").read_text())
        assert cell["return"] == results["return"] and cell["seeds"] == 1
        assert cell["frozen_return"] == results["belief"]["frozen_return"]
        assert (cell["domain"], cell["start"]) == ("ant-semicircle", "uniform")
        assert (cell["agent"], cell["relabel"]) == (name[-3:], "rewards")
        assert cell["environment"]["devices"]
    assert done["ant-uniform-sac"]["wall_seconds"].keys() == NAMES.keys()
    assert done["ant-uniform-cql"]["wall_seconds"].keys() == {"meta", "evaluate"}
    assert done["ant-uniform-cql"]["published"] == {
        "method": "BOReL with CQL",
        "mean": 176.0,
        "std": 10.2,
        "per_episode": None,
        "seeds": 3,
    }


def test_cells_that_are_done_are_read(table, monkeypatch, capsys):
    out, _ = table
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}

    def refuse(*_, **__) -> None:
        raise AssertionError("nothing was left to do")

    monkeypatch.setattr(Pipeline, "__init__", refuse)
    words = ("--cells", "ant-uniform-sac")
    assert command("reproduce", "table1", *FLAGS, *words, "--out", out) == 0
    shown = capsys.readouterr()
    assert "171.8 ± 7.0" in shown.out and "ant-uniform-cql" in shown.out
    assert "Not done yet: ant-excluding-sac" in shown.out and shown.err == ""
    assert "trained for 3 updates" in shown.out
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before


def test_a_cell_does_not_work_where_another_process_does(table, tmp_path, capsys):
    out = Path(shutil.copytree(table[0], tmp_path / "table1"))
    shutil.rmtree(out / "ant-uniform-cql")
    shutil.rmtree(out / "ant-uniform-sac" / "3-belief")
    words = (*FLAGS, "--cells", "ant-uniform-cql", "--out", out)
    with alone_in(out / "ant-uniform-sac" / "3-belief"):
        assert command("reproduce", "table1", *words) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "Another process is at work in" in said and "3-belief. Wait until" in said
    assert command("reproduce", "table1", *words) == 0


def test_results_that_were_lost_are_judged_again(table, tmp_path):
    out = Path(shutil.copytree(table[0], tmp_path / "table1"))
    for name in ("results.json", "environment.json"):
        (out / "ant-uniform-cql" / name).unlink()
    shutil.rmtree(out / "ant-uniform-sac")  # what it made for others, they have
    words = ("--cells", "ant-uniform-cql")
    assert command("reproduce", "table1", *FLAGS, *words, "--out", out) == 0
    done = json.loads((out / "table1.json").read_text())["cells"]
    assert [cell["cell"] for cell in done] == ["ant-uniform-cql"]
    of_before = json.loads((table[0] / "table1.json").read_text())["cells"][1]
    assert done[0]["return"] == of_before["return"]


def test_all_cells_in_one_command(table, tmp_path, capsys):
    out = Path(shutil.copytree(table[0], tmp_path / "table1"))
    assert command("reproduce", "table1", *FLAGS, "--out", out) == 0
    assert "Not done yet" not in capsys.readouterr().out
    content = json.loads((out / "table1.json").read_text())
    assert [row["cell"] for row in content["cells"]] == list(CELL)
    assert content["missing"] == []
    for row in content["cells"]:
        cell, inputs = CELL[row["cell"]], shas(out / row["cell"])
        assert (row["start"], row["relabel"]) == (cell.start, cell.relabel)
        logs = shas(out / maker_of("collect", cell).name)
        assert {n: logs[n] for n in logs if n[0] == "1"}.items() <= inputs.items()
    returns = {row["cell"]: row["return"]["mean"] for row in content["cells"]}
    assert returns["half-cheetah-sac"] != returns["half-cheetah-sac-raw"]
    assert returns["ant-uniform-sac"] != returns["ant-excluding-sac"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--seed 1", "ant-uniform-sac was begun with other settings (seed: 0 -> 1)"),
        ("--cql-weight 2", "ant-uniform-cql was begun with other settings (meta.agent"),
        (
            "--meta-updates 2",
            "(meta.updates: 3 -> 2; meta.agent.decay_updates: 3 -> 2)",
        ),
        ("--preset quick", "was begun with other settings (preset: tiny -> quick; "),
    ],
)
def test_one_folder_is_one_table(table, capsys, words, said):
    out, _ = table
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    code = command("reproduce", "table1", *FLAGS, *words.split(), "--out", out)
    assert code == 2 and said in capsys.readouterr().err
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("table1 --cells ant-sac", f"'ant-sac'; choose from {', '.join(CELL)}."),
        ("table2", "no table called 'table2'; choose table1"),
        ("", "needs the name of a table, for example: borelax reproduce table1"),
        ("table1 --preset huge", "no preset called 'huge'; choose from quick, gpu,"),
        ("table1 --seeds 0", "At least one seed"),
        ("table1 --seed -1", "seed must lie in"),
        ("table1 --meta-updates 0", "meta_updates must be above zero"),
        ("table1 --cql-weight 0", "cql_weight must be above zero"),
        ("table1 --checkpoint-seconds -1", "checkpoint_seconds must not be negative"),
    ],
)
def test_what_cannot_be_reproduced_is_refused(
    tmp_path, monkeypatch, capsys, words, said
):
    monkeypatch.chdir(tmp_path)
    assert command("reproduce", *words.split()) == 2
    shown = capsys.readouterr()
    assert said in " ".join(shown.err.split()) and shown.out == ""
    assert not list(tmp_path.iterdir())
