"""Laws of flags: every setting is one, and no value that makes no sense gets in."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest

from borelax import files
from borelax.experiment import Experiment
from borelax.options import Options, Settings, parse_domain, parse_run
from borelax.presets import PRESETS, preset
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from tests.tiny_run import EXPERIMENT, command, run_tiny

PARTS = ("family", "collect", "relabelling", "belief", "meta", "evaluate")
OWN = {f.name.replace("_", "-") for f in fields(Options)} - set(PARTS)


def boxed(capsys) -> str:
    """What a refusal prints, in the flag parser's box or without, as running text."""
    said = capsys.readouterr()
    assert said.out == "" and "Traceback" not in said.err
    return re.sub(r"[\s│╭╮╰╯─]+", " ", said.err)


def flags_of(part: object, prefix: str) -> Iterator[tuple[str, object]]:
    """Every flag that a dataclass stands for, with its value."""
    for f in fields(part):
        value, path = getattr(part, f.name), f"{prefix}{f.name}".replace("_", "-")
        if is_dataclass(value):
            yield from flags_of(value, f"{path}.")
        else:
            yield path, value


def hyper(experiment: Experiment) -> dict[str, object]:
    """The flags of all parts of an experiment, with their values."""
    parts = vars(experiment) | {"relabelling": experiment.relabel}
    return dict(pair for name in PARTS for pair in flags_of(parts[name], f"{name}."))


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


@pytest.mark.parametrize("domain", PRESETS)
def test_every_setting_is_a_flag_with_help(capsys, domain):
    texts = help_of(capsys, "run", domain)
    assert texts.keys() == hyper(preset(domain)).keys() | OWN
    for flag, text in texts.items():
        assert re.fullmatch(r"[A-Z].{5,}\.", text), f"--{flag} has no help: {text!r}"


def test_phases_have_the_same_flags_but_for_the_folders(capsys):
    of_run, of_phase = help_of(capsys, "run", "gridworld"), help_of(capsys, "belief")
    assert of_phase.keys() == of_run.keys() - {"preset", "out", "logs", "report"}
    assert {f.name for f in fields(Settings)} < {f.name for f in fields(Options)}


def parsed(domain: str, words: str = "") -> Experiment:
    return parse_domain("run", [domain, "--preset", "tiny", *words.split()])[0]


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


def test_flags_are_those_of_the_domains_own_parts():
    words = "--family.door-angle 0.5 --collect.agent.entropy-weight 0.1"
    words += " --meta.agent.cql-weight 1 --meta.agent.cql-states 9"
    words += " --meta.expected-rewards --belief.notes-size 7"
    words += " --belief.decoder.no-transitions --relabelling.rollouts 9"
    old, new = preset("escape-room", "tiny"), parsed("escape-room", words)
    assert new == replace(
        old,
        family=replace(old.family, door_angle=0.5),
        collect=replace(
            old.collect, agent=replace(old.collect.agent, entropy_weight=0.1)
        ),
        relabel=replace(old.relabel, rollouts=9),
        belief=replace(
            old.belief,
            notes_size=7,
            decoder=replace(old.belief.decoder, transitions=False),
        ),
        meta=replace(
            old.meta,
            agent=replace(old.meta.agent, cql_weight=1.0, cql_states=9),
            expected_rewards=True,
        ),
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", RelabelRewards()),
        ("--relabelling.meta-pieces 0.5", RelabelRewards(meta_pieces=0.5)),
        ("--relabelling.belief-pieces 1", RelabelRewards(belief_pieces=1.0)),
        ("--relabelling.belief-own 0.1", RelabelRewards(belief_own=0.1)),
        ("--relabelling.decode-apart", RelabelRewards(decode_apart=True)),
        ("--relabelling.belief-in-vain 0.3", RelabelRewards(belief_in_vain=0.3)),
        ("--relabelling.meta-own 0.1", RelabelRewards(meta_own=0.1)),
        ("--relabelling.from-start 0", RelabelRewards(from_start=0.0)),
        ("--relabel policies --relabelling.rollouts 9", ReplayPolicies(rollouts=9)),
        ("--relabel=policies --relabelling.turns 3", ReplayPolicies(turns=3)),
        ("--relabel none", KeepAsIs()),
        ("--relabel none --relabel rewards", RelabelRewards()),
    ],
)
def test_relabel_decides_which_settings_of_relabelling_there_are(words, expected):
    assert parsed("gridworld", words).relabel == expected


OURS = ReplayPolicies(rollouts=7, turns=2)
KEPT = {
    "": OURS,
    "--relabel policies": OURS,
    "--relabelling.turns 1": replace(OURS, turns=1),
    "--relabel none": KeepAsIs(),
}


@pytest.mark.parametrize("words", KEPT)
def test_settings_of_relabelling_survive_unless_another_is_named(
    tmp_path, monkeypatch, words
):
    """Those of a preset, and those of a run whose phases are called one by one."""
    ours = replace(preset("escape-room", "tiny"), relabel=OURS)
    monkeypatch.setitem(PRESETS["escape-room"], "tiny", lambda: ours)
    assert parsed("escape-room", words).relabel == KEPT[words]
    files.write_hashed_json(tmp_path / "experiment.json", ours.to_json())
    experiment, folder, _ = parse_run("belief", [str(tmp_path), *words.split()])
    assert experiment == replace(ours, relabel=KEPT[words]) and folder == tmp_path


@pytest.mark.parametrize("words", ["--meta.standardise True", "--exact-belief no"])
def test_booleans_take_no_value(tmp_path, capsys, words):
    assert run_tiny(tmp_path / "out", *words.split()) == 2
    assert "Unrecognized options" in boxed(capsys)


def bad_values(flag: str, value: object) -> list[str]:
    """Values of the right type, or of none, that no flag but a reward may take."""
    if isinstance(value, bool | str):
        return []
    if isinstance(value, tuple):
        return ["0", "-8", "8.5", "wide"]
    # Rewards and the decoder's threshold may be negative.
    signed = "reward" in flag.split("-") or flag.endswith("threshold")
    negative = [] if signed else ["-1"]
    return negative + (["nan", "inf"] if isinstance(value, float) else ["0.5", "nan"])


GRID, ROOM = hyper(EXPERIMENT), hyper(preset("escape-room", "tiny"))
VALUES = {("gridworld", flag): value for flag, value in GRID.items()}
VALUES |= {("escape-room", flag): ROOM[flag] for flag in ROOM.keys() - GRID.keys()}


@pytest.mark.parametrize(("domain", "flag"), sorted(VALUES))
def test_values_that_make_no_sense_are_refused(tmp_path, capsys, domain, flag):
    for value in bad_values(flag, VALUES[domain, flag]):
        words = (f"--{flag}", value)
        assert run_tiny(tmp_path / "out", *words, domain=domain) == 2, value
        said = boxed(capsys)
        name = flag.split(".")[-1]
        assert name in said.replace("_", "-") or "rewards" in said, said
        assert not list(tmp_path.iterdir())


SENSELESS = """--seeds 0|--seeds -1|--seed -1|--seed 2147483648|--seed 0.5
--collect.start moon|--collect.num-tasks 0|--collect.num-tasks 1|--family.size 2
--family.size 3|--family.goal-reward -1|--evaluate.num-tasks 22|--belief.updates 0
--meta.updates 0|--meta.view.no-latent|--checkpoint-seconds -1|--relabel some
--checkpoint-seconds nan|--no-such-flag 1|--preset|--relabelling.pieces-share 2
--relabelling.rollouts 9|--relabel none --relabelling.pieces 4|--relabel
--exact-belief --meta.expected-rewards""".replace("\n", "|").split("|")
SENSELESS_IN_A_ROOM = """--relabel rewards|--collect.num-tasks 1|--family.size 5
--relabel policies --relabelling.rollouts 0|--meta.agent.average-rate 1
--collect.start excluding|--collect.agent.num-critics 1""".replace("\n", "|").split("|")
TRIED = [("gridworld", words) for words in SENSELESS]
TRIED += [("escape-room", words) for words in SENSELESS_IN_A_ROOM]


@pytest.mark.parametrize(("domain", "words"), TRIED)
def test_experiments_that_make_no_sense_are_refused(tmp_path, capsys, domain, words):
    assert run_tiny(tmp_path / "out", *words.split(), domain=domain) == 2
    assert len(boxed(capsys)) > 20 and not list(tmp_path.iterdir())
