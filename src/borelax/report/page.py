"""One run on one page: the verdict, pictures, curves, and what was run.

In: ``RunData`` and what ``write.py`` could draw. Out: the text of an HTML file that
needs nothing else: no server, no network, no other file.
"""

from dataclasses import dataclass, field
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from borelax.report import facts
from borelax.report.meanings import METRICS, PHASES, UNITS
from borelax.report.player import player_html
from borelax.report.run_data import RunData, thinned
from borelax.report.scene_svg import belief_strip, paths, telling_task
from borelax.report.scenes import Scenes
from borelax.report.svg import Series, bar_chart, line_chart
from borelax.report.yardstick import best_by_episode


@dataclass(frozen=True)
class Pictures:
    """What was worked out from a run's trained parts; None: could not be."""

    scenes: Scenes | None = None
    further: np.ndarray | None = None
    """Return of each seed in each episode, more of them than trained on [S, E]."""
    further_tasks: int = 0
    ways_of_data: np.ndarray | None = None
    """One episode of each agent in the logs [N, H+1, 2]."""
    goals_of_data: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    ways_of_agent: np.ndarray | None = None
    """First episodes of the meta-agent in test tasks [N, H+1, 2]."""
    goals_of_agent: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))


def page(run: RunData, pictures: Pictures) -> str:
    """The whole page."""
    make = run.problems.attempt
    heading = f"<h1>{escape(facts.title(run))}</h1>"
    sections = [
        make("The verdict", lambda: verdict(run)),
        make("The player", lambda: search_section(run, pictures)),
        make("Returns", lambda: returns_section(run, pictures)),
        make("Paths", lambda: data_section(run, pictures)),
        make("Learning curves", lambda: curves_section(run)),
        make("What was run", lambda: facts.facts_section(run)),
    ]
    first, *rest = (part or "" for part in sections)
    body = [heading, first, missing(run), *rest]  # once all has been tried
    return document(facts.title(run), "".join(body))


def document(title: str, body: str) -> str:
    """HTML around a body, with style and script inside."""
    files = resources.files("borelax.report")
    style = (files / "page.css").read_text("utf-8")
    script = (files / "player.js").read_text("utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<main>\n{body}\n</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def verdict(run: RunData) -> str:
    """What came out, first: return, share of the oracle, seconds."""
    head = f"<p class='sub'>{facts.subtitle(run)}</p>"
    if run.results is None:
        return head + f'<p class="missing">{facts.unfinished(run)}</p>'
    boxes = "".join(
        f"<li><b>{escape(big)}</b><span>{escape(small)}</span></li>"
        for big, small in facts.numbers(run.results)
    )
    return f'{head}<ul class="numbers">{boxes}</ul><p>{facts.sentence(run.results)}</p>'


def missing(run: RunData, of: str = "") -> str:
    """What this page should show and does not; where there are several runs, of one."""
    if not run.problems:
        return ""
    items = "".join(f"<li>{escape(problem)}</li>" for problem in run.problems)
    what = f"Missing on this page{of and f', of {escape(of)}'}:"
    return f'<div class="missing"><p>{what}</p><ul>{items}</ul></div>'


def search_section(run: RunData, pictures: Pictures) -> str:
    """The belief at a few moments, then the player."""
    scenes = pictures.scenes
    if scenes is None:
        return ""
    task = telling_task(scenes)
    winds = scenes.frame.kind == "winds"
    heading = "Feel the wind, then hold" if winds else "Search, then return"
    strip = "".join(
        f"<figure>{svg}<figcaption>{escape(words)}</figcaption></figure>"
        for words, svg in belief_strip(scenes, 0, task)
    )
    return (
        f"<h2>{heading}</h2>"
        f'<div class="strip">{strip}</div><p class="small">'
        f"{escape(facts.strip_caption(scenes, task))}</p>"
        "<h3>Step through a test rollout</h3>"
        f"{player_html(scenes, run.name)}"
        f'<p class="small">{escape(facts.player_caption(run, scenes))}</p>'
    )


def returns_section(run: RunData, pictures: Pictures) -> str:
    """Bars beside the oracles', and return against episode."""
    figures = []
    if run.results is not None:
        bars = facts.bars(run.results)
        svg = bar_chart(bars, described=facts.bars_described(bars))
        figures.append(figure(svg, facts.bars_caption(run.results)))
    chart = adaptation(run, pictures)
    if chart:
        figures.append(chart)
    if not figures:
        return ""
    return f'<h2>How good is it?</h2><div class="row pair">{"".join(figures)}</div>'


def adaptation(run: RunData, pictures: Pictures) -> str:
    """Return against episode: the test's, and in more episodes than trained on."""
    series = []
    trained = facts.episodes_of(run)
    if pictures.further is not None:
        table = pictures.further.T
        episodes = np.arange(1.0, len(table) + 1)
        series.append(Series("borelax", episodes, table, 0))
    elif run.results is not None:
        table = np.array(run.results["return"]["per_episode"], float).T
        series.append(Series("borelax", np.arange(1.0, len(table) + 1), table, 0))
    if not series:
        return ""
    words = facts.by_episode(series[0].values)
    best = best_by_episode(run)
    if best is not None:
        series.append(best)
        numbers = facts.by_episode(best.values)
        words += f" Grey: {best.name}, expected over all tasks. {numbers}"
    beyond = trained + 0.5 if trained and len(series[0].x) > trained else None
    svg = line_chart(
        series, x_label="episode", described=words, dots=True, boundary=beyond
    )
    caption = f"Return of each episode. {words}"
    if beyond is not None:
        caption += (
            f" Right of the dashed line: more episodes than trained on "
            f"({pictures.further_tasks} test tasks)."
        )
    return figure(svg, caption)


def data_section(run: RunData, pictures: Pictures) -> str:
    """Paths in the data beside those of the meta-agent."""
    scenes, data, ways = pictures.scenes, pictures.ways_of_data, pictures.ways_of_agent
    if scenes is None or data is None or ways is None:
        return ""
    words = f"the last logged episode of {len(data)} agents, each trained on one task"
    left = paths(scenes.frame, data, pictures.goals_of_data, f"Paths: {words}.")
    learned = f"its first episode in {len(ways)} tasks that it did not know"
    right = paths(scenes.frame, ways, pictures.goals_of_agent, f"Paths: {learned}.")
    dot = "" if scenes.frame.kind == "winds" else " (dot)"
    return (
        "<h2>What the logs show, and what was learned from them</h2>"
        '<div class="row pair">'
        + figure(left, f"The data: {words}{dot}, which it knew.")
        + figure(right, f"The meta-agent: {learned}.")
        + "</div>"
    )


def curves_section(run: RunData) -> str:
    """Every metric of every phase."""
    parts = []
    for phase, words in PHASES.items():
        curves = [curve for curve in run.curves if curve.phase == phase]
        if curves:
            charts = "".join(_curve_figure(thinned(curve)) for curve in curves)
            parts.append(f'<h3>{escape(words)}</h3><div class="row">{charts}</div>')
    if not parts:
        return ""
    return (
        "<h2>Learning curves</h2><p class='small'>Lines are means over seeds; bands, "
        "where there are several seeds, one standard deviation to each side. A gap is "
        f"where a value was not a number.</p>{''.join(parts)}"
    )


def _curve_figure(curve: Any) -> str:
    name = f"{curve.phase}/{curve.metric}"
    unit = UNITS.get(curve.phase, "done")
    known = curve.values[np.isfinite(curve.values).all(axis=1)].mean(axis=1)
    words = f"{curve.metric}: no finite values"
    if len(known):
        words = f"{curve.metric}, from {known[0]:.3g} to {known[-1]:.3g}"
    series = [Series(curve.metric, curve.done, curve.values, 0)]
    svg = line_chart(series, x_label=unit, described=f"{words}, over {unit}.")
    meaning = METRICS.get(name, "see docs/metrics.md")
    caption = f"<b>{escape(curve.metric)}</b>: {escape(meaning)}"
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def figure(svg: str, caption: str) -> str:
    """A drawing and its caption."""
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"
