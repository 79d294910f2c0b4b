"""The paper's Table 1 as one command: its cells, what they share, and their results.

In: a preset and names of cells. Out: a folder with a run per cell, and ``table1.json``.
Cells of one start share its logs; if they also relabel alike, they share the belief.
The first such cell of ``CELLS`` makes what is shared, and the others adopt it.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from borelax import files, manifest
from borelax.agents.sac import SAC
from borelax.errors import ConfigError, require
from borelax.experiment import Experiment, differences
from borelax.locks import alone_in
from borelax.pipeline import Pipeline
from borelax.presets import RELABELLINGS, preset
from borelax.progress import ProgressDisplay
from borelax.run_folder import NAMES, read_experiment

CQL_WEIGHT = 0.1
"""The paper does not say its weight of the conservative penalty; this one does no harm
on Semi-circle (docs/meta.md), but perhaps with Ant's fixed starts (docs/mujoco.md)."""
CQL_STATES = 32
"""Of a batch; over all of them, the penalty would take most of the time."""

SHARED = {
    "collect": ("domain", "start"),
    "relabel": ("domain", "start", "relabel"),
    "belief": ("domain", "start", "relabel"),
}
"""What cells must have in common to share the output of a phase."""


@dataclass(frozen=True)
class Published:
    """What a cell stands beside: returns over both episodes of a rollout."""

    method: str
    mean: float
    std: float | None = None
    per_episode: tuple[float, ...] | None = None
    seeds: int = 3


@dataclass(frozen=True)
class Cell:
    """One entry of the table: a domain, its logs, and how the meta-agent learns."""

    name: str
    domain: str
    start: str
    agent: str = "sac"
    relabel: str = "rewards"
    published: Published | None = None
    """None where the paper shows a curve and no number."""

    def experiment(self, name: str, cql_weight: float = CQL_WEIGHT) -> Experiment:
        """The domain's preset called ``name``, with what the cell changes in it."""
        begun = preset(self.domain, name)
        agent, relabel = begun.meta.agent, begun.relabel
        assert isinstance(agent, SAC)
        if relabel.name != self.relabel:
            relabel = RELABELLINGS[self.relabel]
        if self.agent == "cql":
            agent = replace(agent, cql_weight=cql_weight, cql_states=CQL_STATES)
        return replace(
            begun,
            collect=replace(begun.collect, start=self.start),
            relabel=relabel,
            meta=replace(begun.meta, agent=agent),
        )


def _of_start(
    start: str, sac: tuple[float, float], cql: tuple[float, float]
) -> tuple[Cell, Cell]:
    """A row of the paper's table."""
    name, domain = f"ant-{start}", "ant-semicircle"
    paper = [Published("BOReL", *sac), Published("BOReL with CQL", *cql)]
    return (
        Cell(f"{name}-sac", domain, start, published=paper[0]),
        Cell(f"{name}-cql", domain, start, agent="cql", published=paper[1]),
    )


_VARIBAD = Published("online VariBAD", -50.9, per_episode=(-24.8, -26.1), seeds=10)

CELLS = (
    *_of_start("uniform", (171.8, 7.0), (176.0, 10.2)),
    *_of_start("excluding", (102.8, 32.7), (116.6, 19.9)),
    *_of_start("fixed", (99.2, 27.4), (112.4, 31.3)),
    Cell("ant-uniform-sac-raw", "ant-semicircle", "uniform", relabel="none"),
    Cell("half-cheetah-sac", "half-cheetah-vel", "fixed", published=_VARIBAD),
    Cell(
        "half-cheetah-sac-raw",
        "half-cheetah-vel",
        "fixed",
        relabel="none",
        published=_VARIBAD,
    ),
)
"""The paper's table, then relabelling on and off; those that share stand together."""


def cells_called(names: Iterable[str]) -> tuple[Cell, ...]:
    """The cells of these names, in the table's order; no names: all of them."""
    names = set(names) or {cell.name for cell in CELLS}
    unknown = sorted(names - {cell.name for cell in CELLS})
    if unknown:
        known = ", ".join(cell.name for cell in CELLS)
        raise ConfigError(
            f"Table 1 has no cell called {', '.join(map(repr, unknown))}; choose from "
            f"{known}."
        )
    return tuple(cell for cell in CELLS if cell.name in names)


def maker_of(phase: str, cell: Cell) -> Cell:
    """The cell that works out a phase for all cells that share its output."""

    def key(other: Cell) -> tuple[str, ...]:
        return tuple(getattr(other, name) for name in SHARED[phase])

    return next(other for other in CELLS if key(other) == key(cell))


@dataclass(frozen=True)
class Table1:
    """All cells, as runs in one folder; what is done there is read."""

    out: Path
    """A folder with a run's folder per cell."""
    preset: str = "gpu"
    seed: int | None = None
    """The root of all randomness; None: the preset's."""
    num_seeds: int | None = None
    """Belief models and meta-agents side by side; None: the preset's."""
    cql_weight: float = CQL_WEIGHT
    meta_updates: int | None = None
    """Gradient steps of the meta-agents; None: the preset's."""
    checkpoint_seconds: float = 30.0

    def run(
        self, cells: Iterable[Cell], display: ProgressDisplay | None = None
    ) -> dict[str, Any]:
        """Work out these cells; return and write the table of all that are done."""
        self.check()
        display = display or ProgressDisplay()
        for cell in cells:
            if self.results(cell) is None:
                self._pipeline(cell, display).results()
                self.write()
        return self.write()

    def check(self) -> None:
        """Refuse, before any work, a folder with cells of other settings."""
        for cell in CELLS:
            experiment, path = self.experiment(cell), self.out / cell.name
            if files.exists(path / "experiment.json"):
                _refuse_another(path, experiment)

    def experiment(self, cell: Cell) -> Experiment:
        """What a cell runs."""
        begun = cell.experiment(self.preset, self.cql_weight)
        meta, updates = begun.meta, self.meta_updates
        if updates is not None:
            agent = replace(meta.agent, decay_updates=updates)
            meta = replace(meta, updates=updates, agent=agent)
        return replace(
            begun,
            meta=meta,
            seed=begun.seed if self.seed is None else self.seed,
            num_seeds=begun.num_seeds if self.num_seeds is None else self.num_seeds,
        )

    def results(self, cell: Cell) -> dict[str, Any] | None:
        """What a cell returned; None while it is not done."""
        path = self.out / cell.name
        sealed = all(manifest.is_sealed(path / name) for name in NAMES.values())
        done = sealed and files.exists(path / "results.json")
        return files.read_json(path / "results.json") if done else None

    def write(self) -> dict[str, Any]:
        """Write table1.json: the cells that are done, beside the published ones."""
        found = {cell: self.results(cell) for cell in CELLS}
        table = {
            "preset": self.preset,
            "cql_weight": self.cql_weight,
            "meta_updates": self.meta_updates,
            "cells": [self._row(cell, x) for cell, x in found.items() if x is not None],
            "missing": [cell.name for cell, x in found.items() if x is None],
        }
        with alone_in(self.out, wait=True):  # cells may end at the same time
            files.write_json(self.out / "table1.json", table)
        return table

    def _row(self, cell: Cell, results: dict[str, Any]) -> dict[str, Any]:
        """A cell of table1.json."""
        return {
            "cell": cell.name,
            "domain": cell.domain,
            "start": cell.start,
            "agent": cell.agent,
            "relabel": cell.relabel,
            "seeds": results["seeds"],
            "return": results["return"],
            "frozen_return": results["belief"]["frozen_return"],
            "published": None if cell.published is None else asdict(cell.published),
            "wall_seconds": results["wall_seconds"],
            "environment": files.read_json(self.out / cell.name / "environment.json"),
        }

    def _pipeline(self, cell: Cell, display: ProgressDisplay) -> Pipeline:
        """The cell's run, with all that it shares in its folder."""
        pipeline = Pipeline(
            self.experiment(cell),
            self.out / cell.name,
            display,
            self.checkpoint_seconds,
        )
        for phase in SHARED:
            maker = maker_of(phase, cell)
            if maker != cell and not pipeline.folder.done(phase):
                self._make(phase, maker, display)
                pipeline.folder.adopt(phase, self.out / maker.name)
        display.prefix = f"{cell.name}: "
        return pipeline

    def _make(self, phase: str, maker: Cell, display: ProgressDisplay) -> None:
        """Work out a phase that others wait for; its arrays are not kept."""
        pipeline = self._pipeline(maker, display)
        if not pipeline.folder.done(phase):
            _ = pipeline.logs if phase == "collect" else pipeline.model


def _refuse_another(path: Path, experiment: Experiment) -> None:
    """Refuse a run of another experiment, also in phases that it has not begun."""
    begun = read_experiment(path)
    lines = "; ".join(differences(begun.to_json(), experiment.to_json()))
    require(
        not lines,
        f"{path} was begun with other settings ({lines}), and one table has the same "
        "in all cells. Use those or choose another --out folder.",
    )
