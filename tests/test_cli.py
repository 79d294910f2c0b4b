"""Laws of the command line: what each command does, and every failure a sentence."""

import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

import borelax
from borelax.cli import COMMANDS, main, run_command
from borelax.collect.collect import Collect
from borelax.presets import PRESETS
from tests.tiny_run import (
    FLAGS,
    command,
    copy_finished,
    finished,
    run_tiny,
    shas,
)


def sentence(capsys) -> str:
    """The one line that a failure prints, and nothing else."""
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("borelax: ")
    assert said.err.count("\n") == 1, said.err
    return said.err


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_the_commands(capsys, words):
    assert command(*words) == 0
    out = capsys.readouterr().out
    assert all(f"borelax {name} " in out for name in COMMANDS)
    assert f"Domains: {', '.join(PRESETS)}." in " ".join(out.split())


def test_version_and_exit_codes(capsys):
    assert command("--version") == 0
    assert capsys.readouterr().out == f"borelax {borelax.__version__}\n"
    with pytest.raises(SystemExit) as ended:
        main(["fly"])
    assert ended.value.code == 2
    assert "no command 'fly'; choose from run, collect" in sentence(capsys)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(capsys, name):
    assert command(name, "--help") == 0
    out = capsys.readouterr().out
    own = {
        "reproduce": "Names of cells",
        "diagnose": "Steps to ask about",
        "report": "figures for a paper",
        "compare": "The page.",
    }
    known = own.get(name, "Steps per episode (H).")
    assert f"usage: borelax {name} " in out and known in out


def test_help_is_of_the_domain(capsys):
    assert command("oracle", "semicircle", "--help") == 0
    out = capsys.readouterr().out
    assert "usage: borelax oracle semicircle " in out
    assert "--family.goal-radius" in out and "--family.size" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run moon", "no domain called 'moon'; choose from gridworld, semicircle,"),
        ("collect moon", "no domain called 'moon'"),
        ("oracle moon", "no domain called 'moon'"),
        ("run gridworld --preset huge", "no preset called 'huge'; choose from quick,"),
        ("run", "`borelax run` needs a domain, for example: borelax run gridworld"),
        ("belief", "`borelax belief` needs the folder of a run"),
        ("diagnose", "`borelax diagnose` needs the folder of a run, or of logs"),
        ("diagnose x --plot x.txt", "A picture's name ends in .png, .svg, .pdf"),
        ("run --preset tiny gridworld", "needs a domain"),
        ("collect gridworld --logs x", "takes no --logs"),
    ],
)
def test_unknown_words_are_refused(capsys, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    assert command(*words.split()) == 2
    assert said in sentence(capsys)
    assert not list(tmp_path.iterdir())


def test_one_by_one_the_phases_give_the_same_bits(tmp_path, capsys):
    folder, quiet = tmp_path / "run", "--no-deterministic"
    assert command("collect", "gridworld", *FLAGS, "--out", folder) == 0
    assert "21 tasks × 5 rollouts" in capsys.readouterr().out
    for phase, needs in (("meta", "belief"), ("evaluate", "belief")):
        assert command(phase, folder, quiet, "--meta.updates", 7) == 3
        assert f"run `borelax {needs} {folder}` first" in sentence(capsys)
    for phase in ("belief", "meta"):
        assert command(phase, folder, quiet) == 0
        assert capsys.readouterr().out == f"{phase}: done, in {folder}\n"
    assert command("evaluate", folder, quiet) == 0
    assert "Bayes-optimal" in capsys.readouterr().out
    assert shas(folder) == shas(finished())
    assert (folder / "experiment.json").read_bytes() == (
        finished() / "experiment.json"
    ).read_bytes()


@pytest.mark.parametrize("phase", ["belief", "meta", "evaluate"])
def test_a_run_that_is_not_there_is_named(tmp_path, capsys, phase):
    assert command(phase, tmp_path / "gone") == 3
    assert f"{tmp_path / 'gone'} is not the folder of a run" in sentence(capsys)
    assert not list(tmp_path.iterdir())


def test_training_that_diverges_ends_with_4(tmp_path, capsys):
    folder = copy_finished(tmp_path, without=("[4-5]-*", "results.json"))
    assert run_tiny(folder, "--meta.agent.lr", 1e30) == 4
    assert "became NaN or infinite by update" in sentence(capsys)
    assert not (folder / "results.json").exists()


def test_ctrl_c_between_the_loops_ends_with_130(tmp_path, capsys, monkeypatch):
    def press_ctrl_c(*_, **__) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Collect, "__call__", press_ctrl_c)
    assert run_tiny(tmp_path / "out") == 130
    assert sentence(capsys) == "borelax: stopped.\n"


@pytest.mark.parametrize("words", [["--help"], ["oracle", "semicircle"]])
def test_a_reader_who_has_seen_enough_ends_it_quietly(words):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "borelax", *words]
    ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_an_out_folder_that_cannot_be_written_is_named(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("mine")
    assert run_tiny(tmp_path / "file") == 3
    assert "file" in sentence(capsys) and (tmp_path / "file").read_text() == "mine"
    assert run_tiny(tmp_path / "file" / "inside") == 3
    assert "file/inside" in sentence(capsys)

    def read_only(*_, **__) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", read_only)
    assert run_tiny(tmp_path / "out") == 3
    said = sentence(capsys)
    assert "experiment.json could not be written: Read-only file system" in said


def test_gpus_are_deterministic_unless_told_otherwise():
    flag = "--xla_gpu_deterministic_ops="
    for words, before, expected in (
        (("oracle", "gridworld", "--help"), "", f"{flag}true"),
        (("oracle", "gridworld", "--help"), f"{flag}false", f"{flag}false"),
        (("run", "gridworld", "--no-deterministic", "--help"), "", None),
        (("run", "gridworld", "--no_deterministic", "--help"), "", None),
    ):
        with mock.patch.dict(os.environ, {"XLA_FLAGS": before}):
            assert run_command(list(words)) == 0
            flags = os.environ["XLA_FLAGS"].split()
            assert [x for x in flags if x.startswith(flag)] == [expected][
                : bool(expected)
            ]
            assert "--xla_gpu_enable_triton_gemm=false" in flags
