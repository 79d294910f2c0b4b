"""Flags of the command line: presets and run folders as defaults, tyro for the rest."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import tyro

from borelax import store
from borelax.belief.fit import FitBelief
from borelax.collect.collect import Collect
from borelax.errors import ConfigError
from borelax.evaluate.evaluate import Evaluate
from borelax.experiment import Experiment
from borelax.meta.fit import FitMeta
from borelax.presets import RELABELLINGS, preset
from borelax.tasks.gridworld import Gridworld


@dataclass(frozen=True)
class Options:
    """Everything that can be set on the command line."""

    preset: str
    """The values to start from: quick (minutes on a laptop) or paper (a GPU)."""
    out: Path | None
    """The run's folder; by default runs/DOMAIN-PRESET-RELABEL."""
    logs: Path | None
    """Another run's folder whose logs to use in place of collecting new ones."""
    relabel: Literal["rewards", "none"]
    """Relabel rewards (the paper's repair of MDP ambiguity), or learn from raw logs."""
    seeds: int
    """Belief models and meta-agents, trained side by side on the same logs."""
    seed: int
    """The root of all randomness."""
    exact_belief: bool
    """Yardstick: give the meta-agent the exact posterior in place of the belief."""
    deterministic: bool
    """On a GPU: the same bits every time, about a tenth slower."""
    family: Gridworld
    collect: Collect
    belief: FitBelief
    meta: FitMeta
    evaluate: Evaluate

    @property
    def folder(self) -> Path:
        """Where the run lives."""
        exact = "-exact" if self.exact_belief else ""
        name = f"{self.family.name}-{self.preset}-{self.relabel}{exact}"
        return self.out or Path("runs") / name

    def experiment(self) -> Experiment:
        """The experiment these options describe."""
        return Experiment(
            preset=self.preset,
            seed=self.seed,
            num_seeds=self.seeds,
            exact_belief=self.exact_belief,
            family=self.family,
            collect=self.collect,
            relabel=RELABELLINGS[self.relabel],
            belief=self.belief,
            meta=self.meta,
            evaluate=self.evaluate,
        )


@dataclass(frozen=True)
class OracleOptions:
    """Which oracle to print."""

    family: Gridworld
    recompute: bool = False
    """Solve again even if the solution is stored."""


def parse_domain(command: str, argv: list[str]) -> tuple[Experiment, Options]:
    """Flags of a command that starts from a domain and a preset."""
    domain, rest = _first_word(command, argv, "a domain", "gridworld")
    defaults = _options_of(preset(domain, _value_of("--preset", rest) or "quick"))
    options = _parse(Options, rest, f"borelax {command} {domain}", defaults)
    return options.experiment(), options


def parse_run(command: str, argv: list[str]) -> tuple[Experiment, Path]:
    """Flags of a command that continues in a run's folder."""
    word, rest = _first_word(command, argv, "the folder of a run", "runs/first")
    folder = Path(word)
    experiment = Experiment.from_json(store.read_json(folder / "experiment.json"))
    defaults = replace(_options_of(experiment), out=folder)
    options = _parse(Options, rest, f"borelax {command} {word}", defaults)
    return options.experiment(), folder


def parse_oracle(command: str, argv: list[str]) -> tuple[Gridworld, bool]:
    """Flags of the oracle."""
    domain, rest = _first_word(command, argv, "a domain", "gridworld")
    defaults = OracleOptions(preset(domain).family)
    options = _parse(OracleOptions, rest, f"borelax {command} {domain}", defaults)
    return options.family, options.recompute


def _options_of(experiment: Experiment) -> Options:
    return Options(
        preset=experiment.preset,
        out=None,
        logs=None,
        relabel=experiment.relabel.name,  # type: ignore[arg-type]
        seeds=experiment.num_seeds,
        seed=experiment.seed,
        exact_belief=experiment.exact_belief,
        deterministic=True,
        family=experiment.family,
        collect=experiment.collect,
        belief=experiment.belief,
        meta=experiment.meta,
        evaluate=experiment.evaluate,
    )


def _parse(kind, argv: list[str], program: str, defaults):
    return tyro.cli(
        kind,
        prog=program,
        args=argv,
        default=defaults,
        config=(tyro.conf.OmitSubcommandPrefixes,),
    )


def _first_word(
    command: str, argv: list[str], what: str, example: str
) -> tuple[str, list[str]]:
    if argv and not argv[0].startswith("-"):
        return argv[0], argv[1:]
    if "--help" in argv or "-h" in argv:
        return example if what == "a domain" else _no_folder(command), argv
    raise ConfigError(
        f"`borelax {command}` needs {what}, for example: borelax {command} {example}"
    )


def _no_folder(command: str) -> str:
    raise ConfigError(f"Name a run to see its flags: borelax {command} RUN --help")


def _value_of(flag: str, argv: list[str]) -> str | None:
    """The value of one flag, needed before the others have their defaults."""
    for i, word in enumerate(argv):
        if word == flag and i + 1 < len(argv):
            return argv[i + 1]
        if word.startswith(f"{flag}="):
            return word.split("=", 1)[1]
    return None
