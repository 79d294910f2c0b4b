"""Make the figures of the docs, and the runs that they show: ``make figures``.

    python benchmarks/figures.py --runs runs/figures --out docs/figures

Runs of preset quick: Gridworld, Semi-circle and Escape-Room as the preset has it and
from the logs as they are, wind-hard from the logs alone; those that are there already
are not made again. With --no-raw, only the first of each.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from borelax.cli import run_command
from borelax.files import atomic
from borelax.oracles.oracle import solve
from borelax.presets import preset
from borelax.relabel.rewards import KeepAsIs
from borelax.report import facts
from borelax.report.compare import draw_all
from borelax.report.drawing import COLUMN, draw_lines, figure_bytes, new_figure
from borelax.report.film import film
from borelax.report.page import Pictures
from borelax.report.paper import (
    bars_figure,
    belief_figure,
    beliefs_figure,
    episodes_figure,
    paths_figure,
)
from borelax.report.run_data import RunData, read_run
from borelax.report.scene_svg import first_find, telling_task
from borelax.report.scenes import Scenes
from borelax.report.svg import Bar, Series
from borelax.report.yardstick import best_by_episode

DOMAINS = ("gridworld", "semicircle", "escape-room", "wind-hard")
ROWS = {"rewards": "relabelled", "policies": "replayed", "none": "raw logs"}


def run_all(domain: str, name: str, runs: Path, raw: bool) -> list[Path]:
    """The runs of a domain, on the same logs."""
    flags = {runs / domain: []}
    if raw and not isinstance(preset(domain, name).relabel, KeepAsIs):
        flags[runs / f"{domain}-raw"] = ["--relabel", "none", "--logs", runs / domain]
    for folder, more in flags.items():
        if not (folder / "results.json").exists():
            words = ["run", domain, "--preset", name, "--out", folder, *more]
            code = run_command([str(word) for word in words])
            if code:
                sys.exit(code)
    return list(flags)


def bars(runs: list[RunData]) -> list[Bar]:
    """The paper's bars: with and without relabelling, Thompson sampling, oracles."""
    own = [
        Bar(f"borelax, {facts.logs(run)}", run.results["return"]["mean"], None, i)
        for i, run in enumerate(runs)
    ]
    results = runs[0].results
    oracle = solve(runs[0].experiment.family).to_json() | results["oracle"]
    oracles = facts.oracle_bars(results | {"oracle": oracle})
    return sorted([*own, *oracles], key=lambda bar: -bar.value)


def episodes(runs: list[RunData], pictures: list[Pictures]) -> list[Series]:
    """Return of each episode beside the best agent's."""
    series = [
        Series(
            facts.logs(run),
            np.arange(1.0, found.further.shape[1] + 1),
            found.further.T,
            i,
        )
        for i, (run, found) in enumerate(zip(runs, pictures, strict=True))
    ]
    best = best_by_episode(runs[0])
    return series if best is None else [*series, best]


def distance_figure(runs: list[RunData], pictures: list[Pictures]) -> bytes:
    """Total variation to the exact posterior along a rollout, mean over tasks."""
    with new_figure(COLUMN, 2.2) as figure:
        axes = figure.subplots()
        for i, (run, found) in enumerate(zip(runs, pictures, strict=True)):
            off = np.abs(found.scenes.learned - found.scenes.exact)
            values = 0.5 * off.sum(axis=-1).mean(axis=1).T
            steps = np.arange(float(len(values)))
            draw_lines(axes, [Series(facts.logs(run), steps, values, i)])
        axes.set(xlabel="step of the rollout", ylabel="distance to the posterior")
        axes.set_ylim(0, None)
        axes.legend()
        return figure_bytes(figure, "png")


def failing_task(relabelled: Scenes, raw: Scenes) -> int:
    """A task found at once with relabelling, and believed most wrongly without."""
    off = np.abs(raw.learned[0] - raw.exact[0]).mean(axis=(1, 2))
    horizon = relabelled.reward.shape[-1]
    finds = [first_find(relabelled, 0, task) for task in range(len(off))]
    return int(np.argmax(np.where(np.array(finds) < horizon, off, -1)))


def draw_domain(domain: str, folders: list[Path], out: Path) -> None:
    runs = [read_run(folder) for folder in folders]
    pictures = draw_all(runs)
    relabelled = pictures[0].scenes
    task = telling_task(relabelled)
    failing = failing_task(relabelled, pictures[1].scenes) if runs[1:] else task
    rows = []
    for run, found in zip(runs, pictures, strict=True):
        name = ROWS[run.experiment.relabel.name]
        rows.append((name, found.scenes, found.scenes.learned))
        rows.append(("exact", found.scenes, found.scenes.exact))
    made = {
        f"{domain}-search.webp": film(relabelled, 0, task),
        f"{domain}-belief.png": (
            belief_figure(relabelled, 0, task, "png")
            if relabelled.frame.kind == "winds"
            else beliefs_figure(rows, 0, failing, "png")
        ),
        f"{domain}-paths.png": paths_figure(pictures[0], "png"),
    }
    if relabelled.frame.kind != "winds":  # of one episode, which nearly all reach
        made[f"{domain}-returns.png"] = bars_figure(bars(runs), "png")
        made[f"{domain}-episodes.png"] = episodes_figure(
            episodes(runs, pictures), runs[0].experiment.family.episodes, "png"
        )
    if relabelled.frame.kind == "cells":
        made[f"{domain}-distance.png"] = distance_figure(runs, pictures)
    for name, content in made.items():
        with atomic(out / name) as file:
            file.write(content)
        print(f"{out / name}: {len(content):,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs/figures"))
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    parser.add_argument("--domains", nargs="*", default=DOMAINS, choices=DOMAINS)
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--no-raw", dest="raw", action="store_false")
    args = parser.parse_args()
    for domain in args.domains:
        folders = run_all(domain, args.preset, args.runs, args.raw)
        args.out.mkdir(parents=True, exist_ok=True)
        draw_domain(domain, folders, args.out)


if __name__ == "__main__":
    main()
