"""Laws of the command line: every setting is a flag, every failure a sentence."""

import os
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from unittest import mock

import pytest

import borelax
from borelax.cli import COMMANDS, main, run_command
from borelax.collect.collect import Collect
from borelax.options import Options, Settings, parse_domain
from tests.tiny_run import (
    EXPERIMENT,
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


def boxed(capsys) -> str:
    """What the flag parser prints in its box, as running text."""
    said = capsys.readouterr()
    assert said.out == "" and "Traceback" not in said.err
    return re.sub(r"[\s│╭╮╰╯─]+", " ", said.err)


def flags_of(part, prefix: str = ""):
    """Every flag that a dataclass stands for, with its value and its field."""
    for f in fields(part):
        value, path = getattr(part, f.name), f"{prefix}{f.name}".replace("_", "-")
        if is_dataclass(value):
            yield from flags_of(value, f"{path}.")
        else:
            yield path, value


PARTS = ("family", "collect", "belief", "meta", "evaluate")
HYPER = dict(pair for p in PARTS for pair in flags_of(getattr(EXPERIMENT, p), f"{p}."))
OWN = {f.name.replace("_", "-") for f in fields(Options)} - set(PARTS)


def help_of(capsys, *words: str) -> dict[str, str]:
    """The help text of each flag that ``--help`` lists, without its default."""
    assert command(*words, "--help") == 0
    texts: dict[str, str] = {}
    flag = None
    for line in capsys.readouterr().out.splitlines():
        inside = line.strip("│| ")
        if found := re.match(r"--([a-z][\w.-]*)", inside):
            flag = found[1]
            texts[flag] = ""
        elif flag and inside and inside != line:
            texts[flag] += f"{inside} "
        else:
            flag = None
    return {name: text.split("(default:")[0].strip() for name, text in texts.items()}


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_the_commands(capsys, words):
    assert command(*words) == 0
    out = capsys.readouterr().out
    assert all(f"borelax {name} " in out for name in COMMANDS)


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
    assert f"usage: borelax {name} " in out and "Cells per side." in out


def test_every_setting_is_a_flag_with_help(capsys):
    texts = help_of(capsys, "run", "gridworld")
    assert texts.keys() == HYPER.keys() | OWN
    for flag, text in texts.items():
        assert re.fullmatch(r"[A-Z].{5,}\.", text), f"--{flag} has no help: {text!r}"
    phase = help_of(capsys, "belief")
    assert phase.keys() == texts.keys() - {"preset", "out", "logs"}


def test_flags_reach_the_experiment():
    words = "gridworld --preset=paper --preset tiny --seeds 2 --exact-belief"
    words += " --no-deterministic --meta.no-standardise --meta.view.decoded"
    words += " --meta.view.no-latent --belief.decoder.hidden 4 5 --belief.lr 1e-2"
    experiment, options = parse_domain("run", words.split())
    assert (experiment.preset, experiment.num_seeds) == ("tiny", 2)
    assert experiment.exact_belief is True and options.deterministic is False
    assert experiment.meta.standardise is False
    assert (experiment.meta.view.latent, experiment.meta.view.decoded) == (False, True)
    assert experiment.belief.decoder.hidden == (4, 5) and experiment.belief.lr == 0.01
    assert experiment.collect == EXPERIMENT.collect
    assert options.folder == Path("runs/gridworld-tiny-rewards-exact")
    assert {f.name for f in fields(Settings)} < {f.name for f in fields(Options)}


@pytest.mark.parametrize("words", ["--meta.standardise True", "--exact-belief no"])
def test_booleans_take_no_value(tmp_path, capsys, words):
    assert run_tiny(tmp_path / "out", *words.split()) == 2
    assert "Unrecognized options" in boxed(capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run moon", "no domain called 'moon'; choose from gridworld."),
        ("collect moon", "no domain called 'moon'"),
        ("oracle moon", "no domain called 'moon'"),
        ("run gridworld --preset huge", "no preset called 'huge'; choose from quick,"),
        ("run", "`borelax run` needs a domain, for example: borelax run gridworld"),
        ("belief", "`borelax belief` needs the folder of a run"),
        ("run --preset tiny gridworld", "needs a domain"),
        ("collect gridworld --logs x", "takes no --logs"),
    ],
)
def test_unknown_words_are_refused(capsys, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    assert command(*words.split()) == 2
    assert said in sentence(capsys)
    assert not list(tmp_path.iterdir())


def bad_values(flag: str, value) -> list[str]:
    """Values of the right type, or of none, that no flag but a reward may take."""
    if isinstance(value, bool | str):
        return []
    if isinstance(value, tuple):
        return ["0", "-8", "8.5", "wide"]
    # Rewards and the decoder's threshold may be negative.
    signed = "reward" in flag.split("-") or flag.endswith("threshold")
    negative = [] if signed else ["-1"]
    return negative + (["nan", "inf"] if isinstance(value, float) else ["0.5", "nan"])


@pytest.mark.parametrize("flag", HYPER)
def test_values_that_make_no_sense_are_refused(tmp_path, capsys, flag):
    for value in bad_values(flag, HYPER[flag]):
        assert run_tiny(tmp_path / "out", f"--{flag}", value) == 2, value
        said = boxed(capsys)
        name = flag.split(".")[-1]
        assert name in said.replace("_", "-") or "rewards" in said, said
        assert not list(tmp_path.iterdir())


SENSELESS = """--seeds 0|--seeds -1|--seed -1|--seed 2147483648|--seed 0.5
--collect.start moon|--collect.num-tasks 0|--collect.num-tasks 1|--family.size 2
--family.size 3|--family.goal-reward -1|--evaluate.num-tasks 22|--belief.updates 0
--meta.updates 0|--meta.view.no-latent|--checkpoint-seconds -1|--relabel some
--checkpoint-seconds nan|--no-such-flag 1|--preset""".replace("\n", "|").split("|")


@pytest.mark.parametrize("words", SENSELESS)
def test_experiments_that_make_no_sense_are_refused(tmp_path, capsys, words):
    assert run_tiny(tmp_path / "out", *words.split()) == 2
    assert len(boxed(capsys)) > 20 and not list(tmp_path.iterdir())


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
    for words, expected in {
        ("oracle", "gridworld", "--help"): "--xla_gpu_deterministic_ops=true",
        ("run", "gridworld", "--no-deterministic", "--help"): "",
        ("run", "gridworld", "--no_deterministic", "--help"): "",
    }.items():
        with mock.patch.dict(os.environ, {"XLA_FLAGS": ""}):
            assert run_command(list(words)) == 0
            assert os.environ["XLA_FLAGS"] == expected
