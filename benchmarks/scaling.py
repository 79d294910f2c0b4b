"""How the cost of collecting grows with the number of tasks.

    python benchmarks/scaling.py semicircle --preset paper --tasks 10 20 40 80 160 320

Times one iteration of acting and learning for each number of tasks, after one that
compiles, and prints a table; ``--out FILE`` also writes JSON. The other phases draw a
fixed number of rollouts per update, so that their cost does not depend on N.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import jax
import jax.random as jr
from rich.console import Console
from rich.table import Table

from borelax.bench import CHUNKS, Clock
from borelax.presets import preset
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.tasks.family import draw_tasks


def measure(domain: str, name: str, num_tasks: int) -> dict[str, float]:
    """Seconds per iteration, and what the whole phase would take."""
    experiment = preset(domain, name)
    collect = replace(experiment.collect, num_tasks=num_tasks, iterations=CHUNKS + 1)
    tasks = draw_tasks(experiment.family, num_tasks, key=jr.key(0))
    clock, started = Clock(), time.perf_counter()
    collect(JaxSimulator(experiment.family), tasks, key=jr.key(1), journal=clock)
    seconds = clock.seconds_per_chunk()
    return {
        "tasks": num_tasks,
        "compile_seconds": time.perf_counter() - started - (CHUNKS + 1) * seconds,
        "seconds_per_iteration": seconds,
        "phase_seconds": seconds * experiment.collect.iterations,
        "updates_per_second": num_tasks * collect.updates_per_iteration / seconds,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("domain")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--tasks", type=int, nargs="+", default=[10, 20, 40, 80])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = [measure(given.domain, given.preset, n) for n in given.tasks]
    device = jax.devices()[0].device_kind
    table = Table(title=f"collect, {given.domain}, {given.preset}, {device}")
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(f"{value:,.4g}" for value in row.values()))
    Console().print(table)
    if given.out:
        given.out.write_text(json.dumps({"device": device, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
