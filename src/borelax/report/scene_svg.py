"""Still pictures of scenes as SVG text: paths, and the belief at a few moments.

In: ``Scenes``. Out: text, coloured by the page's style sheet. y grows upwards in the
world and downwards in SVG, so every place is flipped here, once.
"""

import math
from dataclasses import replace
from html import escape

import numpy as np

from borelax.report.frames import Frame
from borelax.report.scenes import Scenes

SIZE = 200.0
"""Width of a panel."""


def moments_of(scenes: Scenes, seed: int, task: int) -> list[tuple[int, int]]:
    """Five (episode, step) to look at: start, search, find, the end, and the return."""
    horizon = scenes.reward.shape[-1]
    found = first_find(scenes, seed, task)
    episode, step = divmod(found, horizon)
    if found >= scenes.reward[seed, task].size:  # never found
        episode, step = 0, horizon - 1
    half = max(1, (step + 1) // 2)
    moments = [(0, 0), (episode, half), (episode, step + 1), (episode, horizon)]
    if episode + 1 < scenes.reward.shape[2]:
        rest = replace(scenes, place=scenes.place[:, :, episode + 1 :])
        moments.append((episode + 1, min(horizon, first_find(rest, seed, task) + 1)))
    return sorted(set(moments))


def first_find(scenes: Scenes, seed: int, task: int) -> int:
    """The step that first ends at the goal, over all episodes; else how many there are.

    Of a room: outside.
    """
    places = scenes.place[seed, task, :, 1:].reshape(-1, 2)
    if scenes.frame.kind == "ring":
        there = np.linalg.norm(places, axis=1) > 1
    else:
        goal = scenes.goals[task] if scenes.fixed_goal is None else scenes.fixed_goal
        there = np.linalg.norm(places - goal, axis=1) <= max(scenes.radius, 1e-6)
    return int(np.argmax(there)) if there.any() else len(places)


def telling_task(scenes: Scenes, seed: int = 0) -> int:
    """A task with a long search in the first episode that leaves time to enjoy it.

    The longest that finds the goal before two thirds of the episode are over; if none
    does, the shortest.
    """
    horizon = scenes.reward.shape[-1]
    finds = [first_find(scenes, seed, n) for n in range(len(scenes.labels))]
    early = [(find, n) for n, find in enumerate(finds) if find < 2 * horizon / 3]
    return max(early)[1] if early else int(np.argmin(finds))


def belief_strip(scenes: Scenes, seed: int, task: int) -> list[tuple[str, str]]:
    """Pictures of a few moments: (words, SVG) each, learned or else exact belief."""
    belief = scenes.exact if scenes.learned is None else scenes.learned
    horizon = scenes.reward.shape[-1]
    pictures = []
    for episode, step in moments_of(scenes, seed, task):
        words = f"episode {episode + 1}, step {step}"
        values = (
            None if belief is None else belief[seed, task, episode * horizon + step]
        )
        parts = [_ground(scenes.frame), _belief(scenes.frame, values)]
        parts += [_goal(scenes, task), _way(scenes, seed, task, episode, step)]
        described = f"The agent's path and its belief, {words}, {scenes.labels[task]}."
        pictures.append((words, panel(scenes.frame, parts, described)))
    return pictures


def paths(frame: Frame, ways: np.ndarray, goals: np.ndarray, described: str) -> str:
    """Many paths [N, H+1, 2] in one panel, each with its goal; colours repeat."""
    parts = [_ground(frame)]
    for n, way in enumerate(ways):
        points = np.array([_at(frame, place) for place in way])
        if frame.kind == "cells":  # side by side, not over one another
            points += _scale(frame) * 0.24 * np.array([math.cos(n), math.sin(n)])
        parts.append(f'<path class="thin c{n % 6}" d="{_d(points)}"/>')
        if frame.kind != "winds":
            x, y = _at(frame, goals[n])
            parts.append(
                f'<circle class="dot c{n % 6}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
            )
    return panel(frame, parts, described)


def panel(frame: Frame, parts: list[str], described: str) -> str:
    """The SVG of one panel."""
    width, height = _extent(frame)
    return (
        f'<svg class="world" viewBox="0 0 {width:g} {height:.4g}" role="img" '
        f'aria-label="{escape(described)}">{"".join(parts)}</svg>'
    )


def _ground(frame: Frame) -> str:
    width, height = _extent(frame)
    parts = [f'<rect class="ground" width="{width:g}" height="{height:.4g}"/>']
    if frame.kind == "cells":
        cell = _scale(frame)
        for i in range(1, frame.shape[0]):
            at = f"{i * cell:.1f}"
            parts.append(
                f'<path class="rule" d="M{at} 0V{height:.4g}M0 {at}H{width:g}"/>'
            )
    elif frame.kind in ("plane", "ring"):
        (x, y), unit = _at(frame, (0.0, 0.0)), _scale(frame)
        left = f"M{x - unit:.1f} {y:.1f}"
        arc = f"A{unit:.1f} {unit:.1f} 0 0 1 {x + unit:.1f} {y:.1f}"
        whole = f"A{unit:.1f} {unit:.1f} 0 0 1 {x - unit:.1f} {y:.1f}"
        d = left + arc + (whole if frame.kind == "ring" else "")
        parts.append(f'<path class="guide" d="{d}"/>')
    return "".join(parts)


def _belief(frame: Frame, values: np.ndarray | None) -> str:
    if values is None or frame.kind == "winds":
        return ""
    unit = _scale(frame)
    parts = []
    if frame.kind == "ring":
        x, y = _at(frame, (0.0, 0.0))
        for k, value in enumerate(values):
            if value > 0.02:
                a, b = (2 * math.pi * (k + i) / len(values) for i in (0, 1))
                ends = (x + unit * math.cos(a), y - unit * math.sin(a))
                ends += (x + unit * math.cos(b), y - unit * math.sin(b))
                d = "M{:.1f} {:.1f}A{u:.1f} {u:.1f} 0 0 0 {:.1f} {:.1f}".format(
                    *ends, u=unit
                )
                parts.append(
                    f'<path class="open" stroke-opacity="{value:.2f}" d="{d}"/>'
                )
        return "".join(parts)
    columns, rows = frame.shape
    width, height = (
        extent / n for extent, n in zip(_extent(frame), frame.shape, strict=True)
    )
    for k, value in enumerate(values):
        if value > 0.01:
            x, y = (k % columns) * width, (rows - 1 - k // columns) * height
            shade = value**0.5 if frame.kind == "cells" else value
            parts.append(
                f'<rect class="belief" x="{x:.1f}" y="{y:.1f}" width="{width:.2f}" '
                f'height="{height:.2f}" fill-opacity="{shade:.2f}"/>'
            )
    return "".join(parts)


def _goal(scenes: Scenes, task: int) -> str:
    frame = scenes.frame
    if frame.kind == "winds":
        if scenes.fixed_goal is None:
            return ""
        (x, y), r = _at(frame, scenes.fixed_goal), scenes.radius * _scale(frame)
        return f'<circle class="disc" cx="{x:.1f}" cy="{y:.1f}" r="{max(r, 2):.1f}"/>'
    x, y = _at(frame, scenes.goals[task])
    disc = ""
    if frame.kind == "plane":
        r = scenes.radius * _scale(frame)
        disc = f'<circle class="disc" cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"/>'
    return disc + star(x, y, 7.0)


def star(x: float, y: float, radius: float) -> str:
    """A five-pointed star."""
    corners = [
        (x + r * math.sin(math.pi * i / 5), y - r * math.cos(math.pi * i / 5))
        for i, r in enumerate([radius, 0.45 * radius] * 5)
    ]
    return f'<path class="star" d="{_d(np.array(corners))}Z"/>'


def _way(scenes: Scenes, seed: int, task: int, episode: int, step: int) -> str:
    places = scenes.place[seed, task, episode, : step + 1]
    points = np.array([_at(scenes.frame, place) for place in places])
    way = f'<path class="way" d="{_d(points)}"/>'
    if not np.isfinite(points[-1]).all():
        return way
    x, y = points[-1]
    return f'{way}<circle class="agent" cx="{x:.1f}" cy="{y:.1f}" r="5.5"/>'


def _extent(frame: Frame) -> tuple[float, float]:
    height = (frame.high[1] - frame.low[1]) * _scale(frame)
    return SIZE, height


def _scale(frame: Frame) -> float:
    return SIZE / (frame.high[0] - frame.low[0])


def _at(frame: Frame, place) -> tuple[float, float]:
    unit = _scale(frame)
    return float(place[0] - frame.low[0]) * unit, float(frame.high[1] - place[1]) * unit


def _d(points: np.ndarray) -> str:
    """A line through the points, with gaps where they are not numbers."""
    known = np.isfinite(points).all(axis=1)
    letters = np.where(np.roll(known, 1) & (np.arange(len(points)) > 0), "L", "M")
    rows = zip(letters[known], points[known], strict=True)
    return "".join(f"{letter}{x:.1f} {y:.1f}" for letter, (x, y) in rows) or "M0 0"
