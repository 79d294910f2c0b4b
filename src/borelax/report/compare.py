"""Several runs side by side on one page.

What differs in their settings, returns and curves in the same charts, and players that
show the same task and move together.
"""

from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path

import numpy as np

from borelax.errors import ConfigError
from borelax.experiment import differences
from borelax.files import atomic
from borelax.report import facts
from borelax.report.meanings import METRICS, PHASES, UNITS
from borelax.report.page import Pictures, document, figure, missing
from borelax.report.player import MOST_BYTES, player_html
from borelax.report.run_data import RunData, read_run, thinned
from borelax.report.scene_svg import paths, telling_task
from borelax.report.svg import Bar, Series, bar_chart, line_chart
from borelax.report.write import draw, require_run
from borelax.report.yardstick import best_by_episode

COLOURS = 6
"""Runs that can be told apart; a page takes no more."""


def write_comparison(folders: Sequence[Path], out: Path) -> Path:
    """Write the page; returns the file.

    Raises:
        ConfigError: if there are too many runs to tell apart.
        DataError: if a folder is not that of a run.
    """
    if len(folders) > COLOURS:
        raise ConfigError(f"At most {COLOURS} runs side by side, not {len(folders)}.")
    for folder in folders:
        require_run(folder)
    runs = [read_run(folder) for folder in folders]
    with atomic(out) as file:
        file.write(comparison(runs, draw_all(runs)).encode("utf-8", "replace"))
    return out


def draw_all(runs: Sequence[RunData]) -> list[Pictures]:
    """Pictures of each run; of equal tests, the same tasks."""
    pictures: list[Pictures] = []
    for run in runs:
        earlier = zip(runs, pictures, strict=False)
        chosen = (
            p.scenes.chosen for other, p in earlier if p.scenes and _same(other, run)
        )
        pictures.append(draw(run, chosen=next(chosen, None)))
    return pictures


def comparison(runs: Sequence[RunData], pictures: Sequence[Pictures]) -> str:
    """The whole page."""
    names = names_of(runs)
    sections = [
        _players(runs, names, pictures),
        _returns(runs, names, pictures),
        _paths(names, pictures),
        _curves(runs, names),
        _differences(runs, names),
    ]
    head = f"<h1>{len(runs)} runs side by side</h1>{_table(runs, names)}"
    failed = "".join(map(missing, runs, names))  # once all has been tried
    return document("borelax: runs side by side", head + failed + "".join(sections))


def names_of(runs: Sequence[RunData]) -> list[str]:
    """Short names that tell the runs apart: folders, or as much as it takes."""
    names = [run.name for run in runs]
    if len(set(names)) == len(names):
        return names
    return [f"{run.folder.resolve().parent.name}/{run.name}" for run in runs]


def _table(runs: Sequence[RunData], names: list[str]) -> str:
    head = ("run", "domain", "preset", "logs", "return", "of the best", "seconds")
    rows = []
    for run, name in zip(runs, names, strict=True):
        results = run.results
        told = [
            facts.subject(run),
            str(run.settings.get("preset", "")),
            facts.logs(run),
        ]
        if results is None:
            rows.append((name, *told, "no results yet", "", ""))
            continue
        (size, _), *_ = facts.numbers(results)
        share = results.get("fraction_of_bayes_optimal")
        of_best = "unknown" if share is None else f"{100 * share:.1f} %"
        seconds = f"{sum(results['wall_seconds'].values()):,.0f}"
        rows.append((name, *told, size, of_best, seconds))
    return facts.table("Runs", rows, head)


def _players(
    runs: Sequence[RunData], names: list[str], pictures: Sequence[Pictures]
) -> str:
    shown = [
        (run, name, found.scenes)
        for run, name, found in zip(runs, names, pictures, strict=True)
        if found.scenes is not None
    ]
    if not shown:
        return ""
    task = telling_task(shown[0][2])
    each = MOST_BYTES // len(shown)
    parts = []
    for run, name, scenes in shown:
        parts.append(f"<div><h3>{escape(name)}: {escape(facts.logs(run))}</h3>")
        first = task if _same(shown[0][0], run) else None
        make = partial(player_html, scenes, name, each, first)
        parts.append(f"{run.problems.attempt('The player', make) or ''}</div>")
    alike = all(_same(shown[0][0], run) for run, _, _ in shown)
    heading = "The same task, side by side" if alike else "Test tasks, side by side"
    other = (
        "" if alike else "<p>Not all of these runs were tested on the same tasks.</p>"
    )
    return (
        f"<h2>{heading}</h2>{other}"
        '<p><label><input type="checkbox" class="together" checked> move together'
        f'</label></p><div class="row pair">{"".join(parts)}</div>'
    )


def _paths(names: list[str], pictures: Sequence[Pictures]) -> str:
    """Where each run's data went, and its agent."""
    figures = []
    for name, found in zip(names, pictures, strict=True):
        scenes, data = found.scenes, found.ways_of_data
        if scenes is None:
            continue
        if data is not None:
            words = f"{name}: the last logged episodes of {len(data)} agents"
            goals = found.goals_of_data
            figures.append(figure(paths(scenes.frame, data, goals, words), words))
        ways, goals = found.ways_of_agent, found.goals_of_agent
        if ways is not None:
            words = f"{name}: the meta-agent's first episode in {len(ways)} tasks"
            figures.append(figure(paths(scenes.frame, ways, goals, words), words))
    return (
        f'<h2>Paths</h2><div class="row pair">{"".join(figures)}</div>'
        if figures
        else ""
    )


def _returns(
    runs: Sequence[RunData], names: list[str], pictures: Sequence[Pictures]
) -> str:
    bars, series = [], []
    for i, (run, name) in enumerate(zip(runs, names, strict=True)):
        if run.results is not None:
            returns = run.results["return"]
            spread = returns["std"] if run.results["seeds"] > 1 else None
            bars.append(Bar(name, float(returns["mean"]), spread, i))
        further = pictures[i].further
        if further is not None:
            episodes = np.arange(1.0, further.shape[1] + 1)
            series.append(Series(name, episodes, further.T, i))
    first = runs[0]
    if all(_same(first, run) for run in runs):
        if first.results is not None:
            bars += facts.oracle_bars(first.results)
        best = best_by_episode(first)
        series += [best] if series and best is not None else []
    bars.sort(key=lambda bar: -bar.value)
    figures = []
    if bars:
        svg = bar_chart(bars, described=facts.bars_described(bars))
        figures.append(
            figure(svg, "Return on the test's tasks, all episodes together.")
        )
    if series:
        figures.append(_by_episode(runs, series))
    key = _key([(s.name, s.colour) for s in series])
    return f'<h2>Returns</h2>{key}<div class="row pair">{"".join(figures)}</div>'


def _by_episode(runs: Sequence[RunData], series: Sequence[Series]) -> str:
    """Return against episode; marked where training ends, if all end there."""
    caption = "Return of each episode."
    trained = {facts.episodes_of(run) for run in runs}
    boundary = None
    if len(trained) == 1 and 0 < max(trained) < max(len(s.x) for s in series):
        boundary = max(trained) + 0.5
        caption += " Right of the dashed line: more episodes than trained on."
    words = "; ".join(f"{s.name}: {facts.by_episode(s.values)}" for s in series)
    svg = line_chart(
        series, x_label="episode", described=words, dots=True, boundary=boundary
    )
    return figure(svg, caption)


def _curves(runs: Sequence[RunData], names: list[str]) -> str:
    parts = []
    for phase, words in PHASES.items():
        metrics = {
            c.metric: None for run in runs for c in run.curves if c.phase == phase
        }
        charts = [_chart(runs, names, phase, metric) for metric in metrics]
        if charts:
            row = f'<div class="row">{"".join(charts)}</div>'
            parts.append(f"<h3>{escape(words)}</h3>{row}")
    if not parts:
        return ""
    key = _key([(name, i) for i, name in enumerate(names)])
    return f"<h2>Learning curves</h2>{key}{''.join(parts)}"


def _chart(runs: Sequence[RunData], names: list[str], phase: str, metric: str) -> str:
    series = [
        Series(names[i], thin.done, thin.values, i)
        for i, run in enumerate(runs)
        for thin in map(thinned, run.curves)
        if (thin.phase, thin.metric) == (phase, metric)
    ]
    unit = UNITS.get(phase, "done")
    words = f"{metric} over {unit}, {len(series)} runs"
    svg = line_chart(series, x_label=unit, described=words)
    return figure(svg, f"{metric}: {METRICS.get(f'{phase}/{metric}', '')}")


def _differences(runs: Sequence[RunData], names: list[str]) -> str:
    rows = []
    for run, name in zip(runs[1:], names[1:], strict=True):
        for line in differences(runs[0].settings, run.settings):
            path, change = line.split(": ", 1)
            rows.append((name, path, *change.split(" -> ", 1)))
    head = ("run", "setting", f"in {names[0]}", "in this one")
    if not rows:
        return "<h2>What differs</h2><p>Nothing in the settings.</p>"
    return f"<h2>What differs</h2>{facts.table('What differs', rows, head)}"


def _key(entries: list[tuple[str, int]]) -> str:
    """Which line is which run's: by colour and by dashes."""
    items = [
        '<li><svg viewBox="0 0 40 6" aria-hidden="true"><line x2="40" y1="3" y2="3" '
        f'class="line c{colour}"/></svg>{escape(name)}</li>'
        for name, colour in entries
    ]
    return f'<ul class="key">{"".join(items)}</ul>'


def _same(one: RunData, other: RunData) -> bool:
    """Whether two runs are tested on the same tasks."""
    names = ("family", "seed", "evaluate")
    return all(one.settings.get(n) == other.settings.get(n) for n in names)
