"""The diagnosis before training against the regret after it.

``python benchmarks/ambiguity_regret.py --out FOLDER`` runs ``quick`` experiments
on several families, starts, amounts of data and relabellings, and writes
``regret.json`` and ``regret.png``. Settings that were measured into the folder before
are read, not measured again.

With ``--only semicircle-fixed`` a process measures the settings whose names begin so,
and several can share a machine; settings that differ in their relabelling alone share
logs, and so must be in one. A last call without it sums up.
"""

import argparse
import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from borelax.ambiguity.diagnose import Diagnose, Material
from borelax.experiment import Experiment
from borelax.files import atomic, exists, read_json, write_json
from borelax.pipeline import Pipeline
from borelax.presets import preset
from borelax.progress import ProgressDisplay
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from borelax.report.drawing import COLOURS

COLOURED = {
    "gridworld": COLOURS[0],
    "semicircle": COLOURS[1],
    "escape-room": COLOURS[4],
    "wind": COLOURS[2],
    "wind-hard": COLOURS[3],
}
RELABEL = {
    "none": KeepAsIs(),
    "rewards": RelabelRewards(),
    "policies": ReplayPolicies(rollouts=40),
}
DIAGNOSED = {
    "pairs_at_risk": "pairs of tasks not told apart, or without a way",
    "pairs_without_a_way": "pairs of tasks between which no way is shown",
    "pairs_not_told_apart": "pairs of tasks not told apart",
    "pairs_ambiguous": "pairs of tasks that are ambiguous",
    "steps_without_counterpart": "telling steps without a counterpart",
}
"""What was said before; the first is drawn. Not told apart: ambiguous or
unclear, but not alike: where nothing differs there is nothing to tell. At risk: the
larger of the two shares."""


@dataclass(frozen=True)
class Setting:
    """One experiment: what differs between them."""

    family: str
    relabel: str
    start: str
    iterations: int
    """Iterations of phase 1: the amount of data, and how far agents have come."""

    @property
    def name(self) -> str:
        """For folders and figures."""
        return f"{self.family}-{self.start}-{self.iterations}-{self.relabel}"

    @property
    def logs_name(self) -> str:
        """Settings with the same logs share them."""
        return f"{self.family}-{self.start}-{self.iterations}"

    def experiment(self) -> Experiment:
        """The quick preset with these logs; its own relabelling, if of this kind."""
        quick, name = preset(self.family, "quick"), self.relabel
        collect = replace(
            quick.collect,
            start=self.start,
            iterations=self.iterations,
            explore_iterations=max(self.iterations // 2, 1),
        )
        return replace(
            quick,
            collect=collect,
            relabel=quick.relabel if quick.relabel.name == name else RELABEL[name],
        )


SETTINGS = (
    *(
        Setting("gridworld", relabel, start, iterations)
        for start in ("uniform", "fixed")
        for iterations in (10, 20, 40)
        for relabel in ("none", "rewards")
    ),
    *(
        Setting("semicircle", relabel, start, 40)
        for start in ("uniform", "excluding", "fixed")
        for relabel in ("none", "rewards")
    ),
    *(
        Setting("escape-room", relabel, "uniform", iterations)
        for iterations in (40, 120)
        for relabel in ("none", "policies")
    ),
    *(
        Setting(wind, relabel, "fixed", iterations)
        for wind in ("wind", "wind-hard")
        for relabel, iterations in (("none", 20), ("none", 40), ("policies", 40))
    ),
)


def main() -> None:
    """Run what is missing; then rank correlation and figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    families = sorted({setting.family for setting in SETTINGS})
    parser.add_argument("--families", nargs="+", choices=families, default=families)
    parser.add_argument("--seeds", type=int, default=3, help="regrets are their means")
    parser.add_argument("--only", default="", help="how the settings' names begin")
    args = parser.parse_args()
    rows = [
        measured(setting, args.seeds, args.out)
        for setting in SETTINGS
        if setting.family in args.families and setting.name.startswith(args.only)
    ]
    if not args.only:
        summarise(rows, args.out)


def measured(setting: Setting, seeds: int, out: Path) -> dict:
    """What is known of a setting; measured where nothing is yet."""
    settings = replace(setting.experiment(), num_seeds=seeds).to_json()
    settings["said"] = list(DIAGNOSED)
    version = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:12]
    path = out / "measured" / f"{setting.name}-{version}.json"
    if not exists(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, measure(setting, seeds, out))
    return read_json(path)


def summarise(rows: list[dict], out: Path) -> None:
    """Print and write all settings and their rank correlations, and draw them."""
    correlations = {said: correlation(rows, said, "regret") for said in DIAGNOSED}
    for row in rows:
        values = " ".join(f"{row[name]:.3f}" for name in (*DIAGNOSED, "regret"))
        print(f"{row['name']:40} {values}")
    for said, found in correlations.items():
        print(f"{said}, rank correlations over {len(rows)} settings: {found}")
    write_json(
        out / "regret.json", {"rank_correlation": correlations, "settings": rows}
    )
    draw(rows, correlations, out / "regret.png")


def measure(setting: Setting, seeds: int, out: Path) -> dict:
    """Diagnose the data that the belief will learn from, then train and test."""
    experiment = replace(setting.experiment(), num_seeds=seeds)
    display = ProgressDisplay()
    display.prefix = f"{setting.name}: "
    logs = Pipeline(experiment, out / setting.logs_name, display).logs
    pipeline = Pipeline(experiment, out / setting.name, display)
    pipeline.folder.adopt("collect", out / setting.logs_name)
    material = Material(logs, pipeline.simulator, setting.start)
    standing = Diagnose().after(setting.relabel, material, display)
    ways = material.ways(seed=0)
    without = 0.0 if ways is None else ways.missing
    untold = standing.ambiguous + standing.unclear
    return {
        "name": setting.name,
        "family": setting.family,
        "relabel": setting.relabel,
        "pairs_at_risk": max(untold, without),
        "pairs_without_a_way": without,
        "pairs_not_told_apart": untold,
        "pairs_ambiguous": standing.ambiguous,
        "steps_without_counterpart": 1 - (standing.counterparts or 0.0),
        "verdict": standing.verdict,
        "regret": 1 - results_of(pipeline),
    }


def results_of(pipeline: Pipeline) -> float:
    """The share of the optimum that a run returns."""
    done = pipeline.folder.path / "results.json"
    results = read_json(done) if exists(done) else pipeline.results()
    return results["fraction_of_bayes_optimal"]


def correlation(rows: list[dict], first: str, second: str) -> dict[str, float | None]:
    """Spearman's over all settings, and of the ranks that each has in its own family.

    The second does not ask whether one family is harder than another.
    """
    families = {row["family"] for row in rows}
    pairs = np.array([[row[first], row[second]] for row in rows])
    own = np.zeros_like(pairs)
    for family in families:
        mine = [row["family"] == family for row in rows]
        own[mine] = (_ranks(pairs[mine]) - 0.5) / np.sum(mine)
    ranks = {"over all": _ranks(pairs), "within families": own}
    return {name: _pearson(x) for name, x in ranks.items()}


def _pearson(columns: np.ndarray) -> float | None:
    """None where one of the two is always the same."""
    if (columns == columns[0]).all(axis=0).any():
        return None
    return round(float(np.corrcoef(columns.T)[0, 1]), 4)


def draw(rows: list[dict], correlations: dict[str, dict], path: Path) -> None:
    """One dot per setting: filled as logged, open if repaired."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    said, words = next(iter(DIAGNOSED.items()))
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for family, colour in COLOURED.items():
        for repaired in (False, True):
            some = [
                (row[said], row["regret"])
                for row in rows
                if row["family"] == family and (row["relabel"] != "none") == repaired
            ]
            if some:
                axes.plot(
                    *zip(*some, strict=True),
                    "o",
                    color=colour,
                    markerfacecolor="white" if repaired else colour,
                    label=f"{family}, {'repaired' if repaired else 'as logged'}",
                )
    axes.set_xlabel(f"before training: {words}")
    axes.set_ylabel("after training: regret, share of the optimum")
    found = correlations[said].items()
    known = (f"{value:.2f} {over}" for over, value in found if value is not None)
    axes.set_title(f"rank correlation {', '.join(known)}", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    with atomic(path) as file:
        figure.savefig(file, format="png", dpi=150)


def _ranks(columns: np.ndarray) -> np.ndarray:
    """Ranks from 1 on, of each column; equal values share their mean rank."""
    below = (columns[None] < columns[:, None]).sum(axis=1)
    equal = (columns[None] == columns[:, None]).sum(axis=1)
    return below + (equal + 1) / 2


if __name__ == "__main__":
    main()
