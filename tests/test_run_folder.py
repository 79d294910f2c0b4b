"""Laws of a run's folder: made once, refused when changed, never silently damaged."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from borelax import files, manifest, store
from borelax.errors import ConfigError, DataError
from borelax.experiment import Experiment
from borelax.progress import Quiet
from borelax.run_folder import (
    NAMES,
    SETTINGS,
    Phase,
    RunFolder,
    read_experiment,
    require_done,
)
from tests.damage import flipped
from tests.tiny_run import (
    EXPERIMENT,
    FLAGS,
    command,
    copy_finished,
    finished,
    run_tiny,
    shas,
)


def opened(path: Path, experiment: Experiment = EXPERIMENT) -> RunFolder:
    return RunFolder(path, experiment, Quiet(), seconds_between_saves=0.0)


def phase(name: str, *inputs: str, value: int = 1, fails: bool = False) -> Phase:
    """A phase that makes a number, in one chunk and with one checkpoint."""

    def make(journal) -> int:
        journal.resume({})
        journal.save({}, 1)
        if fails:
            raise KeyboardInterrupt
        return value

    def write(folder: Path, value: int) -> list[str]:
        store.write_json(folder / "value.json", {"value": value})
        return ["value.json"]

    return Phase(
        name, inputs, make, write, lambda f: store.read_json(f / "value.json")["value"]
    )


def test_every_setting_belongs_to_a_phase():
    parts = {part for parts in SETTINGS.values() for part in parts}
    assert SETTINGS.keys() == NAMES.keys()
    assert parts == EXPERIMENT.to_json().keys() - {"kind", "preset"}


def test_a_phase_is_made_once_and_then_read(tmp_path):
    assert opened(tmp_path).run(phase("collect", value=1)) == 1
    assert opened(tmp_path).run(phase("collect", value=2)) == 1
    assert not store.has_checkpoint(tmp_path / "1-logs" / "checkpoints")
    assert set(opened(tmp_path).seconds()) == {"collect"}


def test_an_interrupted_phase_goes_on_and_its_seconds_add_up(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        opened(tmp_path).run(phase("collect", fails=True))
    assert not opened(tmp_path).done("collect")
    first = opened(tmp_path).seconds()["collect"]
    assert store.has_checkpoint(tmp_path / "1-logs" / "checkpoints")
    assert opened(tmp_path).run(phase("collect", value=2)) == 2
    assert opened(tmp_path).seconds()["collect"] >= first


def test_a_phase_whose_input_changed_is_refused(tmp_path):
    opened(tmp_path).run(phase("collect"))
    opened(tmp_path).run(phase("relabel", "collect"))
    shutil.rmtree(tmp_path / "1-logs")
    with pytest.raises(DataError, match="1-logs is not complete"):
        opened(tmp_path).run(phase("relabel", "collect"))
    opened(tmp_path).run(phase("collect"))  # the same again: all is well
    assert opened(tmp_path).run(phase("relabel", "collect")) == 1
    shutil.rmtree(tmp_path / "1-logs")
    opened(tmp_path).run(phase("collect", value=2))
    with pytest.raises(ConfigError, match=r"2-relabelled was begun.*inputs\.collect: "):
        opened(tmp_path).run(phase("relabel", "collect"))


def test_a_checkpoint_of_unknown_origin_is_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        opened(tmp_path).run(phase("collect", fails=True))
    about = tmp_path / "1-logs" / "about.json"
    whole = about.read_bytes()
    about.write_bytes(flipped(whole, len(whole) // 2, 1))
    with pytest.raises(
        DataError, match=r"about\.json is damaged.*start the phase over"
    ):
        opened(tmp_path)
    about.unlink()
    with pytest.raises(
        DataError, match=r"about\.json is missing.*start the phase over"
    ):
        opened(tmp_path)
    shutil.rmtree(tmp_path / "1-logs")
    assert opened(tmp_path).run(phase("collect")) == 1


def test_a_checkpoint_that_outlived_its_phase_is_removed(tmp_path):
    opened(tmp_path).run(phase("collect"))
    checkpoints = tmp_path / "1-logs" / "checkpoints"
    store.save_checkpoint(checkpoints, {}, {"done": 1})
    opened(tmp_path).run(phase("collect"))
    assert not store.has_checkpoint(checkpoints)


def test_another_runs_output_is_adopted_with_its_identity(tmp_path):
    opened(tmp_path / "a").run(phase("collect"))
    opened(tmp_path / "b").adopt("collect", tmp_path / "a")
    assert shas(tmp_path / "a") == shas(tmp_path / "b")
    assert opened(tmp_path / "b").run(phase("collect", value=2)) == 1
    opened(tmp_path / "b").adopt("collect", tmp_path / "gone")  # it has its own now
    other = replace(EXPERIMENT, seed=1)
    with pytest.raises(ConfigError, match="seed: 0 -> 1"):
        opened(tmp_path / "c", other).adopt("collect", tmp_path / "a")


def test_what_was_made_from_other_inputs_is_not_adopted(tmp_path):
    for name, value in (("a", 1), ("b", 2)):
        opened(tmp_path / name).run(phase("collect", value=value))
    opened(tmp_path / "a").run(phase("relabel", "collect"))
    ours = opened(tmp_path / "b")
    with pytest.raises(ConfigError, match=r"a/2-relabelled.*\(collect: .*Adopt"):
        ours.adopt("relabel", tmp_path / "a")
    assert not (tmp_path / "b" / "2-relabelled").exists()
    ours = opened(tmp_path / "c")
    ours.adopt("collect", tmp_path / "a")
    ours.adopt("relabel", tmp_path / "a")
    assert ours.run(phase("relabel", "collect", value=2)) == 1


def test_what_to_run_first_is_said(tmp_path):
    with pytest.raises(DataError, match="borelax collect moon --out"):
        require_done(tmp_path, ("collect", "belief"), "moon")
    opened(tmp_path).run(phase("collect"))
    with pytest.raises(DataError, match=f"run `borelax belief {tmp_path}` first"):
        require_done(tmp_path, ("collect", "belief"), "moon")


def test_anyone_can_read_the_experiment_of_a_run():
    content = json.loads((finished() / "experiment.json").read_text())
    assert Experiment.from_json(content) == EXPERIMENT == read_experiment(finished())


def test_the_experiment_of_another_version_is_refused(tmp_path):
    content = EXPERIMENT.to_json() | {"colour": "blue"}
    files.write_hashed_json(tmp_path / "experiment.json", content)
    with pytest.raises(DataError, match=r"another version.*has no colour"):
        read_experiment(tmp_path)


@pytest.mark.parametrize(
    ("flags", "difference"),
    [
        (("--seed", 1), "1-logs was begun with other settings (seed: 0 -> 1)"),
        (("--relabel", "none"), "relabel.kind: RelabelRewards -> KeepAsIs"),
        (
            ("--belief.lr", 1e-3, "--seeds", 2),
            "num_seeds: 1 -> 2; belief.lr: 0.0003 ->",
        ),
        (("--exact-belief",), "4-meta was begun with other settings (exact_belief: F"),
        (("--evaluate.repeats", 2), "evaluate.repeats: 1 -> 2"),
        (("--family.step-reward", -0.2), "family.step_reward: -0.1 -> -0.2"),
    ],
)
def test_a_changed_configuration_is_refused(tmp_path, capsys, flags, difference):
    folder = copy_finished(tmp_path)
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert run_tiny(folder, *flags) == 2
    said = capsys.readouterr()
    assert difference in said.err and said.err.count("\n") == 1 and said.out == ""
    after = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert after == before


def test_phases_that_have_not_begun_may_change(tmp_path):
    folder = copy_finished(tmp_path, without=("5-evaluate",))
    assert run_tiny(folder, "--evaluate.episodes", 2) == 0
    results = json.loads((folder / "results.json").read_text())
    assert len(results["return"]["per_episode"][0]) == 2
    assert read_experiment(folder).evaluate.episodes == 2


WRITTEN_ANEW = {"results.json", "environment.json", "experiment.json"}
"""By each `borelax run`, from what it knows better."""


def damaged(path: Path) -> list[bytes | None]:
    """What flipping one bit, cutting the end off and deleting make of a file."""
    data = path.read_bytes()
    return [flipped(data, len(data) // 2, 1), data[: len(data) * 2 // 3], None]


def test_damage_to_any_file_is_named_or_repaired(tmp_path, capsys):
    folder = copy_finished(tmp_path)
    everything = {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    for path, whole in everything.items():
        for data in damaged(path):
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            code, err = run_tiny(folder), capsys.readouterr().err
            gone = path.name in ("manifest.json", "status.json") and data is None
            if path.name in WRITTEN_ANEW or gone:
                # A phase without its manifest is worked out again, to the same bits.
                assert code == 0 and err == "", f"{path} {err}"
                assert shas(folder) == shas(finished())
            else:
                assert code == 3 and err.count("\n") == 1, f"{path} {code} {err}"
                assert err.startswith("borelax: ") and str(path) in err
            path.write_bytes(whole)
    assert shas(folder) == shas(finished())


def test_a_damaged_experiment_is_named_by_the_phases(tmp_path, capsys):
    folder = copy_finished(tmp_path)
    path = folder / "experiment.json"
    whole = path.read_bytes()
    for data in damaged(path):
        path.unlink()
        if data is not None:
            path.write_bytes(data)
        assert command("evaluate", folder, "--no-deterministic") == 3
        err = capsys.readouterr().err
        assert str(path) in err and err.count("\n") == 1
        assert f"borelax run DOMAIN --out {folder}" in err
    assert command("run", "gridworld", *FLAGS, "--out", folder) == 0
    assert path.read_bytes() == whole
    assert manifest.is_sealed(folder / "5-evaluate")
