"""Flags of the command line: presets and run folders as defaults, tyro for the rest."""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

import tyro

from borelax.ambiguity.diagnose import Diagnose
from borelax.belief.fit import FitBelief
from borelax.collect.collect import Collect
from borelax.errors import ConfigError, require, require_positive
from borelax.evaluate.evaluate import Evaluate
from borelax.experiment import Experiment, Family
from borelax.meta.fit import FitMeta
from borelax.presets import RELABELLINGS, preset
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from borelax.report.oracle_figure import check_suffix
from borelax.reproduce import CQL_WEIGHT, Cell, Table1, cells_called
from borelax.run_folder import read_experiment


@dataclass(frozen=True)
class Settings:
    """Everything that can be set in a run."""

    relabel: Literal["rewards", "policies", "none"]
    """The paper's repairs of MDP ambiguity: relabel rewards, or replay policies (where
    tasks differ in transitions); or learn from raw logs."""
    seeds: int
    """Belief models and meta-agents, trained side by side on the same logs."""
    seed: int
    """The root of all randomness."""
    exact_belief: bool
    """Yardstick: give the meta-agent the exact posterior in place of the belief."""
    deterministic: bool
    """On a GPU: the same bits every time, about a tenth slower."""
    checkpoint_seconds: float
    """Seconds between checkpoints: the work that a crash may cost."""
    family: Family
    collect: Collect
    relabelling: RelabelRewards | ReplayPolicies | KeepAsIs
    belief: FitBelief
    meta: FitMeta
    evaluate: Evaluate

    def __post_init__(self) -> None:
        """Refuse what no clock can do."""
        _require_seconds(self.checkpoint_seconds)

    def experiment(self, preset: str) -> Experiment:
        """The experiment these settings describe; ``preset`` is where they began."""
        return Experiment(
            preset=preset,
            seed=self.seed,
            num_seeds=self.seeds,
            exact_belief=self.exact_belief,
            family=self.family,
            collect=self.collect,
            relabel=self.relabelling,
            belief=self.belief,
            meta=self.meta,
            evaluate=self.evaluate,
        )


@dataclass(frozen=True)
class Start:
    """What a new run starts from, and where it lives."""

    preset: str
    """The values to start from: quick (minutes on a laptop) or paper (a GPU)."""
    out: Path | None
    """The run's folder; by default runs/DOMAIN-PRESET-RELABEL."""
    logs: Path | None
    """Another run's folder whose logs to use in place of collecting new ones."""
    report: bool
    """End a run with report.html, the whole run on one page."""


@dataclass(frozen=True)
class Options(Settings, Start):
    """Everything that can be set on the command line."""

    @property
    def folder(self) -> Path:
        """Where the run lives."""
        exact = "-exact" if self.exact_belief else ""
        name = f"{self.family.name}-{self.preset}-{self.relabel}{exact}"
        return self.out or Path("runs") / name


@dataclass(frozen=True)
class BenchOptions(Settings):
    """What to time: any experiment's phases."""

    preset: str = "quick"
    """The values to start from."""
    out: Path | None = None
    """Also write the figures to this JSON file."""


@dataclass(frozen=True)
class OracleOptions:
    """Which oracle to print."""

    family: Family
    recompute: bool = False
    """Solve again even if the solution is stored."""
    plot: Path | None = None
    """Draw the best known behaviour to this file (.png, .svg or .pdf)."""


@dataclass(frozen=True)
class DiagnoseOptions:
    """How to look at logs, and how to say what was found."""

    json: bool = False
    """Print JSON, for machines, in place of a table and sentences."""
    plot: Path | None = None
    """Draw tasks against tasks, and the coverage, to this file (.png, .svg or .pdf)."""
    ask_rewards: bool = True
    """Use the reward function and the policies where they are known."""
    diagnose: Diagnose = field(default_factory=Diagnose)


@dataclass(frozen=True)
class ReproduceOptions:
    """Which cells of the paper's table to work out, and at what scale."""

    preset: str = "gpu"
    """The scale of every cell: paper, gpu, quick or tiny."""
    cells: tuple[str, ...] = ()
    """Names of cells, such as ant-uniform-sac; none: all of them."""
    out: Path | None = None
    """The folder of all cells; by default runs/table1-PRESET."""
    seeds: int | None = None
    """Belief models and meta-agents per cell; by default the preset's."""
    seed: int | None = None
    """The root of all randomness; by default the preset's."""
    cql_weight: float = CQL_WEIGHT
    """Weight of the conservative penalty in the cells with CQL."""
    meta_updates: int | None = None
    """Gradient steps of each meta-agent, its step size falling to zero over them; by
    default the preset's."""
    deterministic: bool = True
    """On a GPU: the same bits every time, about a tenth slower."""
    checkpoint_seconds: float = 30.0
    """Seconds between checkpoints: the work that a crash may cost."""

    def __post_init__(self) -> None:
        """Refuse what is not worth its name."""
        _require_seconds(self.checkpoint_seconds)
        require_positive(self, "cql_weight")
        if self.meta_updates is not None:
            require_positive(self, "meta_updates")


def parse_domain(command: str, argv: list[str]) -> tuple[Experiment, Options]:
    """Flags of a command that starts from a domain and a preset."""
    domain, rest = _first_word(command, argv, "a domain", "gridworld")
    name = _value_of("--preset", rest) or "quick"
    values = _values_of(preset(domain, name), rest)
    defaults = Options(preset=name, out=None, logs=None, report=True, **values)
    options = _parse(Options, rest, f"borelax {command} {domain}", defaults)
    return options.experiment(options.preset), options


def parse_run(command: str, argv: list[str]) -> tuple[Experiment, Path, float]:
    """Flags of a command that continues in a run's folder.

    Returns the experiment, the folder and the seconds between checkpoints.
    """
    word, rest = _first_word(command, argv, "the folder of a run", "RUN")
    asks_for_help = argv[0].startswith("-")
    begun = preset("gridworld") if asks_for_help else read_experiment(Path(word))
    defaults = Settings(**_values_of(begun, rest))
    settings = _parse(Settings, rest, f"borelax {command} {word}", defaults)
    return settings.experiment(begun.preset), Path(word), settings.checkpoint_seconds


def parse_bench(command: str, argv: list[str]) -> tuple[Experiment, Path | None]:
    """Flags of the benchmark."""
    domain, rest = _first_word(command, argv, "a domain", "semicircle")
    name = _value_of("--preset", rest) or "quick"
    values = _values_of(preset(domain, name), rest)
    defaults = BenchOptions(preset=name, **values)
    options = _parse(BenchOptions, rest, f"borelax {command} {domain}", defaults)
    return options.experiment(options.preset), options.out


def parse_oracle(command: str, argv: list[str]) -> tuple[Family, bool, Path | None]:
    """Flags of the oracle."""
    domain, rest = _first_word(command, argv, "a domain", "gridworld")
    defaults = OracleOptions(cast(Family, preset(domain).family))
    options = _parse(OracleOptions, rest, f"borelax {command} {domain}", defaults)
    return options.family, options.recompute, options.plot


def parse_diagnose(command: str, argv: list[str]) -> tuple[Path, DiagnoseOptions]:
    """Flags of a diagnosis, and where the logs are."""
    word, rest = _first_word(command, argv, "the folder of a run, or of logs", "RUN")
    defaults = DiagnoseOptions()
    options = _parse(DiagnoseOptions, rest, f"borelax {command} {word}", defaults)
    if options.plot is not None:
        check_suffix(options.plot)  # before a minute of work
    return Path(word), options


def parse_reproduce(command: str, argv: list[str]) -> tuple[Table1, tuple[Cell, ...]]:
    """Flags of a reproduction: the table, and which of its cells to work out."""
    word, rest = _first_word(command, argv, "the name of a table", "table1")
    require(word == "table1", f"There is no table called {word!r}; choose table1.")
    options = _parse(
        ReproduceOptions, rest, f"borelax {command} {word}", ReproduceOptions()
    )
    table = Table1(
        out=options.out or Path("runs") / f"table1-{options.preset}",
        preset=options.preset,
        seed=options.seed,
        num_seeds=options.seeds,
        cql_weight=options.cql_weight,
        meta_updates=options.meta_updates,
        checkpoint_seconds=options.checkpoint_seconds,
    )
    return table, cells_called(options.cells)


def _values_of(experiment: Experiment, argv: list[str]) -> dict[str, Any]:
    """The fields of ``Settings`` that an experiment stands for.

    ``--relabel`` decides which settings of relabelling there are, so it is read first;
    an unknown name is refused when all flags are parsed.
    """
    relabelling = experiment.relabel
    name = _value_of("--relabel", argv)
    if name in RELABELLINGS and name != relabelling.name:
        relabelling = RELABELLINGS[name]
    return {
        "relabel": relabelling.name,
        "relabelling": relabelling,
        "seeds": experiment.num_seeds,
        "seed": experiment.seed,
        "exact_belief": experiment.exact_belief,
        "deterministic": True,
        "checkpoint_seconds": 30.0,
        "family": experiment.family,
        "collect": experiment.collect,
        "belief": experiment.belief,
        "meta": experiment.meta,
        "evaluate": experiment.evaluate,
    }


def _parse(kind, argv: list[str], program: str, defaults):
    return tyro.cli(
        kind,
        prog=program,
        args=argv,
        default=defaults,
        config=(tyro.conf.AvoidSubcommands,),
    )


def _require_seconds(seconds: float) -> None:
    require(
        0 <= seconds < float("inf"),
        f"checkpoint_seconds must not be negative, and is {seconds}.",
    )


def _first_word(
    command: str, argv: list[str], what: str, example: str
) -> tuple[str, list[str]]:
    if argv and not argv[0].startswith("-"):
        return argv[0], argv[1:]
    if "--help" in argv or "-h" in argv:
        return example, argv
    raise ConfigError(
        f"`borelax {command}` needs {what}, for example: borelax {command} {example}"
    )


def _value_of(flag: str, argv: list[str]) -> str | None:
    """The last value of one flag, needed before the others have their defaults."""
    value = None
    for word, after in pairwise([*argv, ""]):
        if word == flag:
            value = after
        elif word.startswith(f"{flag}="):
            value = word.split("=", 1)[1]
    return value
