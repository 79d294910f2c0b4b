"""Logs from anywhere: what is read, what is then known, and what is refused."""

import json
import os

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from borelax.any_logs import open_logs
from borelax.errors import DataError
from borelax.logs import TaskLogs, write_episodes, write_logs
from tests.ambiguity.two_rooms import EXPERTS, VISITORS
from tests.tiny_run import FLAGS, command, shas

FEW = ("--diagnose.asked", 400, "--diagnose.compared", 1_200)


def said(capsys, code: int, *words: object) -> str:
    assert command("diagnose", *words) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return " ".join((out if code == 0 else err).split())


def test_a_run_is_known_in_full_and_left_as_it_is(tmp_path, capsys):
    run = tmp_path / "run"
    assert command("collect", "gridworld", *FLAGS, "--out", run) == 0
    capsys.readouterr()
    before = shas(run), sorted(os.listdir(run))
    material = open_logs(run)
    assert material.logs.num_tasks == 21 and material.start == "uniform"
    assert material.reward is not None and material.can_replay
    out = said(capsys, 0, run, *FEW)
    assert "as logged" in out and "reward function is not known" not in out
    assert (shas(run), sorted(os.listdir(run))) == before


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_steps_alone_are_enough(tmp_path, capsys, kind):
    path = tmp_path / "own.npz"
    if kind == "file":
        np.savez(path, obs=EXPERTS.obs, action=EXPERTS.action, reward=EXPERTS.reward)
    else:
        write_logs(tmp_path, TaskLogs(jnp.arange(2), EXPERTS))
        path = tmp_path
    assert open_logs(path).reward is None
    out = said(capsys, 0, path, *FEW)
    assert "Ambiguous: 100% of the pairs" in out
    assert "The reward function is not known" in out


def test_json_and_picture(tmp_path, capsys):
    write_episodes(tmp_path / "logs.npz", VISITORS)
    picture = tmp_path / "pairs.png"
    flags = ("--json", "--plot", picture)
    found = json.loads(said(capsys, 0, tmp_path / "logs.npz", *FEW, *flags))
    assert found["verdict"] == "told apart" and found["pairs"][0][0] is None
    assert found["knows"] == {"rewards": False, "policies": False}
    assert found["coverage"]["unsolved"] == [] and found["sentences"]
    with Image.open(picture) as image:
        assert image.size[0] > 1_000 and len(image.convert("L").getcolors()) > 50


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"obs": EXPERTS.obs[..., 1:, :]}, "obs [2, 12, 1, 4, 3], which does not fit"),
        ({"action": EXPERTS.action[:1]}, "action [1, 12, 1, 4], which does not fit"),
        ({"reward": EXPERTS.reward[..., :-1]}, "which does not fit"),
        ({"reward": EXPERTS.reward + jnp.nan}, "NaN or infinity in reward"),
        ({name: getattr(EXPERTS, name)[0] for name in ("obs", "action", "reward")},
         "must be [tasks, rollouts, episodes, steps]"),
        ({name: getattr(EXPERTS, name)[:1] for name in ("obs", "action", "reward")},
         "These logs hold one task"),
    ],
)  # fmt: skip
def test_bad_files_end_with_3_and_a_sentence(tmp_path, capsys, change, sentence):
    arrays = {name: getattr(EXPERTS, name) for name in ("obs", "action", "reward")}
    np.savez(tmp_path / "bad.npz", **(arrays | change))
    assert sentence in said(capsys, 3, tmp_path / "bad.npz", *FEW)


def test_what_is_not_there_is_named(tmp_path, capsys):
    with pytest.raises(DataError, match="holds no logs: give the folder of a run"):
        open_logs(tmp_path)
    np.savez(tmp_path / "other.npz", obs=np.zeros(3))
    assert "has no action, reward: not a log file" in said(
        capsys, 3, tmp_path / "other.npz"
    )
    assert "gone.npz" in said(capsys, 3, tmp_path / "gone.npz")
