"""The tables of docs/results.md: domains with their repair and without, all seeds.

    python benchmarks/results.py semicircle escape-room --preset paper

Runs each domain's preset from nothing, then again from the same logs without
relabelling, and prints one row for each; ``--only repaired`` leaves the second out.
What is already in the folder is read. Rows also go to ``rows.json``.
"""

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path

from borelax.cli import DETERMINISTIC, GPU_FLAGS

os.environ.setdefault("XLA_FLAGS", " ".join([*GPU_FLAGS, DETERMINISTIC]))

import jax

from borelax.experiment import Experiment
from borelax.pipeline import run
from borelax.presets import preset
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs

COLUMNS = ("return", "per seed", "of the oracle", "per episode", "frozen", "seconds")


def other_way(experiment: Experiment) -> Experiment:
    """Without the repair; or, where the preset has none, with one."""
    bare = isinstance(experiment.relabel, KeepAsIs)
    return replace(experiment, relabel=ReplayPolicies() if bare else KeepAsIs())


def row(experiment: Experiment, out: Path, logs: Path | None) -> dict[str, object]:
    """Run one experiment; its figures as they stand in a table."""
    started = time.perf_counter()
    results = run(experiment, out, logs=logs)
    returns, seeds = results["return"], results["seeds"]
    episodes = [sum(e) / seeds for e in zip(*returns["per_episode"], strict=True)]
    share = results["fraction_of_bayes_optimal"]
    return {
        "domain": results["domain"],
        "relabel": results["relabel"],
        "return": f"{returns['mean']:.2f}",
        "per seed": ", ".join(f"{x:.2f}" for x in returns["per_seed"]),
        "of the oracle": "" if share is None else f"{share:.1%}",
        "per episode": ", ".join(f"{x:.1f}" for x in episodes),
        "frozen": f"{results['belief']['frozen_return']:.1f}",
        "seconds": f"{time.perf_counter() - started:.0f}",
        "phases": results["wall_seconds"],
    }


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("domains", nargs="+")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--only", choices=("repaired",))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/results"))
    given = parser.parse_args()
    rows = []
    for domain in given.domains:
        first = replace(preset(domain, given.preset), seed=given.seed)
        folder = given.out / domain
        rows.append(row(first, folder, None))
        if not given.only:
            rows.append(row(other_way(first), given.out / f"{domain}-other", folder))
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "rows.json").write_text(json.dumps(rows, indent=1))
    print(f"\n{given.preset}, {jax.devices()[0].device_kind}\n")
    print(f"| | relabel | {' | '.join(COLUMNS)} |\n|{'---|' * (2 + len(COLUMNS))}")
    for each in rows:
        cells = (each[name] for name in ("domain", "relabel", *COLUMNS))
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
