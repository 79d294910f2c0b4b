"""Write a run's report: one HTML file that holds everything it shows.

Never fails for the sake of a picture: what cannot be made is named on the page.
"""

from pathlib import Path

import numpy as np

from borelax.errors import DataError
from borelax.experiment import Experiment
from borelax.files import atomic
from borelax.report.frames import goals_of, places_of
from borelax.report.page import Pictures, page
from borelax.report.run_data import RunData, read_run
from borelax.report.scenes import NUM_TASKS, make_scenes
from borelax.report.trained import Trained, at
from borelax.types import Episodes

WAYS = 24
"""Agents of the logs whose paths are drawn."""


def write_report(
    folder: str | Path,
    out: str | Path | None = None,
    experiment: Experiment | None = None,
) -> Path:
    """Write the report of the run in ``folder``; returns the file.

    Args:
        folder: The run's folder, finished or not.
        out: The file to write; by default ``report.html`` in the folder.
        experiment: What was run, if its family is the user's own code.

    Raises:
        DataError: if the folder is not that of a run, or nothing can be written.
    """
    run, pictures = draw_run(Path(folder), experiment)
    return write_page(run, pictures, out)


def draw_run(
    folder: Path, experiment: Experiment | None = None
) -> tuple[RunData, Pictures]:
    """What a run's folder holds, and what can be drawn of it; see ``write_report``."""
    require_run(folder)
    run = read_run(folder, experiment)
    return run, draw(run)


def require_run(folder: Path) -> None:
    """Refuse a folder that is not a run's."""
    if not (folder / "experiment.json").exists():
        raise DataError(
            f"{folder} is not the folder of a run: experiment.json is missing there. "
            "Name the folder that `borelax run` printed."
        )


def write_page(run: RunData, pictures: Pictures, out: str | Path | None = None) -> Path:
    """Write what was drawn to ``out``, or the run's ``report.html``; returns it."""
    out = Path(out) if out else run.folder / "report.html"
    text = page(run, pictures)
    with atomic(out) as file:
        file.write(text.encode("utf-8", "replace"))
    return out


def report_line(folder: Path, experiment: Experiment) -> str:
    """Write the report that ends a run; the line to print, whatever happens."""
    try:
        return f"Report: {write_report(folder, experiment=experiment)}"
    except Exception as error:  # the run is done, and its results are written
        return f"Report: not written. {' '.join(str(error).split())}"


def draw(
    run: RunData, most_tasks: int = NUM_TASKS, chosen: np.ndarray | None = None
) -> Pictures:
    """What can be worked out from the run's trained parts; see ``make_scenes``."""
    if run.experiment is None:
        return Pictures()
    trained, attempt = Trained(run.folder, run.experiment), run.problems.attempt
    scenes = attempt("The player", lambda: make_scenes(trained, most_tasks, chosen))
    what = "Returns in more episodes than trained on"
    further, count = attempt(what, lambda: _further(trained)) or (None, 0)
    data = agent = None
    if scenes is not None:
        data = attempt("Paths of the data", lambda: ways_of_data(trained))
        agent = attempt("Paths of the agent", lambda: ways_of_agent(trained))
    nothing = None, np.zeros((0, 2))
    (ways, goals), (own_ways, own_goals) = data or nothing, agent or nothing
    return Pictures(
        scenes=scenes,
        further=further,
        further_tasks=count,
        ways_of_data=ways,
        goals_of_data=goals,
        ways_of_agent=own_ways,
        goals_of_agent=own_goals,
    )


def _further(trained: Trained) -> tuple[np.ndarray, int]:
    rollouts = trained.further()
    return returns_of(rollouts), rollouts.reward.shape[1]


def returns_of(rollouts: Episodes) -> np.ndarray:
    """Return of each seed in each episode [S, E], mean over tasks."""
    return np.asarray(rollouts.paid().sum(axis=-1).mean(axis=1), dtype=float)


def ways_of_data(trained: Trained) -> tuple[np.ndarray, np.ndarray]:
    """The last logged episodes of some agents [N, H+1, 2], and their goals [N, 2]."""
    last = at(trained.logged(), np.s_[:WAYS, -1])
    goals = goals_of(trained.family, trained.trained_on())
    return places_of(trained.family, last), goals[:WAYS]


def ways_of_agent(trained: Trained) -> tuple[np.ndarray, np.ndarray]:
    """First episodes of the first seed in some test tasks, and their goals."""
    first = at(trained.tested, np.s_[0, :WAYS, 0])
    goals = goals_of(trained.family, trained.tasks)
    return places_of(trained.family, first), goals[:WAYS]
