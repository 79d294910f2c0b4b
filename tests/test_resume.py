"""The law of interruption: stop a run anywhere, start it again, get the same bits."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from borelax.errors import StoppedError
from borelax.journal import FolderJournal
from tests.tiny_run import (
    command,
    copy_finished,
    finished,
    run_tiny,
    shas,
    start_tiny,
    work_out,
)

CHUNKS = 3
"""In each of the three phases that train."""
TRAINING = ("collect", "belief", "meta")


def times_until_done(folder: Path, interruption: type[BaseException]) -> int:
    """Start the run again and again until nothing interrupts it."""
    for starts in range(1, 50):
        try:
            work_out(folder)
        except interruption:
            continue
        return starts
    raise AssertionError("the run never ends")


class Crash(BaseException):
    """What a killed process does: nothing after it runs, except ``finally``."""


@pytest.mark.parametrize("moment", ["record", "save"])
def test_a_crash_after_each_chunk(tmp_path, monkeypatch, moment):
    """Before the checkpoint is written (the chunk is lost) and right after it."""
    method = getattr(FolderJournal, moment)
    crashed: set[tuple[str, int]] = set()

    def crash_once(self: FolderJournal, *args) -> None:
        method(self, *args)
        done = args[0] if moment == "record" else args[1]
        if (self.label, done) not in crashed:
            crashed.add((self.label, done))
            raise Crash

    monkeypatch.setattr(FolderJournal, moment, crash_once)
    starts = times_until_done(tmp_path / "run", Crash)
    # After a phase's last chunk nothing is saved: what follows is writing the output.
    chunks = CHUNKS if moment == "record" else CHUNKS - 1
    assert starts == len(TRAINING) * chunks + 1 == len(crashed) + 1
    assert shas(tmp_path / "run") == shas(finished())


def test_ctrl_c_after_each_chunk_saves_and_goes_on(tmp_path, monkeypatch):
    record, stopped = FolderJournal.record, set()

    def press_ctrl_c_once(self: FolderJournal, done: int, metrics) -> None:
        record(self, done, metrics)
        if (self.label, done) not in stopped:
            stopped.add((self.label, done))
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(FolderJournal, "record", press_ctrl_c_once)
    starts = times_until_done(tmp_path / "run", StoppedError)
    assert starts == len(TRAINING) * CHUNKS + 1
    assert shas(tmp_path / "run") == shas(finished())


WRITES = [
    "1-logs/about.json",
    "1-logs/checkpoints/checkpoint.safetensors",
    "1-logs/rollouts-000.npz",
    "1-logs/manifest.json",
    "2-relabelled/provenance.npz",
    "3-belief/model.safetensors",
    "3-belief/manifest.json",
    "4-meta/checkpoints/checkpoint.safetensors",
    "4-meta/agent.safetensors",
    "5-evaluate/manifest.json",
    "status.json",
    "experiment.json",
]


@pytest.mark.parametrize("name", WRITES)
def test_a_crash_in_the_middle_of_a_write(tmp_path, monkeypatch, name):
    """The temporary file is there, the file is not, and nobody tidies up."""
    number = int(name[0]) if name[0].isdigit() else 5
    later = tuple(f"{i}-*" for i in range(number, 6))
    folder = copy_finished(tmp_path, without=later)
    replace = os.replace

    def crash(old: Path, new: Path) -> None:
        if Path(new) == folder / name:
            raise Crash
        replace(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(Crash):
            work_out(folder)
    assert list(folder.rglob("*.partial"))
    work_out(folder)
    assert shas(folder) == shas(finished())
    assert not list(folder.glob("[1-5]-*/**/*.partial"))


def wait_for(process, path: Path) -> None:
    while not path.exists() and process.poll() is None:
        time.sleep(0.005)
    assert process.poll() is None, process.stderr.read()


def test_kill_9_in_each_phase(tmp_path):
    """A real process, killed while it trains its belief and then its meta-agent."""
    folder = copy_finished(tmp_path, without=("[3-5]-*", "results.json"))
    for phase in ("3-belief", "4-meta"):
        process = start_tiny(folder)
        wait_for(process, folder / phase / "metrics.jsonl")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not (folder / "results.json").exists()
    assert run_tiny(folder) == 0
    assert shas(folder) == shas(finished())


def test_sigint_stops_with_130_and_a_sentence(tmp_path):
    process = start_tiny(tmp_path / "run")
    wait_for(process, tmp_path / "run" / "1-logs" / "metrics.jsonl")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    last = err.splitlines()[-1]
    assert last.startswith("borelax: ") and "stopped" in last.lower()
    assert "Traceback" not in err
    assert run_tiny(tmp_path / "run") == 0
    assert shas(tmp_path / "run") == shas(finished())


def test_a_phase_stopped_by_the_user_tells_how_to_go_on(tmp_path, monkeypatch, capsys):
    folder = copy_finished(tmp_path, without=("[4-5]-*",))
    record = FolderJournal.record

    def press_ctrl_c(self: FolderJournal, done: int, metrics) -> None:
        record(self, done, metrics)
        signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(FolderJournal, "record", press_ctrl_c)
        assert command("meta", folder, "--no-deterministic") == 130
    assert "run the same command to continue" in capsys.readouterr().err
    assert (folder / "4-meta" / "checkpoints" / "checkpoint.safetensors").exists()
    assert command("meta", folder, "--no-deterministic") == 0
    shutil.rmtree(folder / "4-meta" / "checkpoints")
    assert shas(folder).items() < shas(finished()).items()
