"""The player: a slider through test rollouts, as HTML with its data inside.

``player.js`` draws what this file packs. Beliefs are one byte per spot, so that
hundreds of steps fit on a page.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from borelax.report.scene_svg import telling_task
from borelax.report.scenes import Scenes

MOST_BYTES = 6_000_000
"""What the data of one page's players may take."""


@dataclass(frozen=True)
class Shown:
    """The part of some scenes that a player holds."""

    seeds: int
    """How many, from the first."""
    tasks: tuple[int, ...]
    """Which of the scenes' tasks."""
    every: int = 1
    """Steps from one belief to the next. Places and rewards are of every step."""


def player_html(
    scenes: Scenes, name: str, most_bytes: int = MOST_BYTES, task: int | None = None
) -> str:
    """One player; ``name`` tells it from others, ``task`` is what it shows first.

    Raises:
        ValueError: if not even one rollout fits.
    """
    task = telling_task(scenes) if task is None else task
    shown, data = fitted(scenes, most_bytes, task)
    two = "" if scenes.learned is None else _EXACT
    first = "learned belief" if scenes.learned is not None else "exact posterior"
    if scenes.frame.kind == "winds":
        first, two = "where the agent is", _WINDS
    return _PLAYER.format(
        name=escape(name, quote=True),
        data=data,
        first=first,
        second=two,
        means=escape(_legend(scenes)),
        hidden="hidden" if scenes.frame.kind == "winds" else "",
        shown=escape(shown_words(scenes, shown)),
    )


def fitted(scenes: Scenes, most_bytes: int, task: int) -> tuple[Shown, str]:
    """As much of the scenes as fits, and its JSON.

    Seeds are left out first, then tasks other than ``task``, then beliefs.
    """
    for shown in _ever_less(scenes, task):
        packed = pack(scenes, shown, task)
        data = json.dumps(packed, separators=(",", ":"), allow_nan=False)
        data = data.replace("<", "\\u003c")
        if len(data) <= most_bytes:
            return shown, data
    raise ValueError("one rollout alone is too long for a page")


def shown_words(scenes: Scenes, shown: Shown) -> str:
    """What there is to choose from, and so what was left out."""
    parts = [f"{len(shown.tasks)} of {scenes.num_tested:,} test tasks"]
    if scenes.num_seeds > 1:
        parts.append(f"{shown.seeds} of {scenes.num_seeds} seeds")
    if shown.every > 1:
        often = f"the belief once in {shown.every} steps"
        parts.append(f"{often}, and in between the latest of these")
    return f"Shown: {', '.join(parts)}."


def pack(scenes: Scenes, shown: Shown, task: int) -> dict[str, Any]:
    """The shown part of the scenes, as JSON has it."""
    frame, rows = scenes.frame, np.ix_(range(shown.seeds), shown.tasks)

    def belief(values: np.ndarray | None) -> Any:
        if values is None:
            return None
        some = values[rows][:, :, :: shown.every]
        if frame.kind == "winds":
            return _rounded(some, 4)
        return [[_bytes(one, frame.kind) for one in seed] for seed in some]

    return {
        "kind": frame.kind,
        "low": frame.low,
        "high": frame.high,
        "shape": frame.shape,
        "means": frame.means,
        "labels": [scenes.labels[n] for n in shown.tasks],
        "tasks": shown.tasks,
        "task": task,
        "every": shown.every,
        "goals": _rounded(scenes.goals[list(shown.tasks)], 4),
        "radius": scenes.radius,
        "fixed": scenes.fixed_goal,
        "place": _rounded(scenes.place[rows], 3),
        "reward": _rounded(scenes.reward[rows], 4),
        "learned": belief(scenes.learned),
        "exact": belief(scenes.exact),
    }


def _ever_less(scenes: Scenes, task: int) -> Iterator[Shown]:
    """What might fit, from everything to a single rollout with one belief."""
    seeds, count = scenes.reward.shape[:2]
    for number in range(seeds, 0, -1):
        yield Shown(number, tuple(range(count)))
    for number in range(count - 1, 0, -1):
        some = np.linspace(0, count - 1, number).round().astype(int)
        some[np.abs(some - task).argmin()] = task
        yield Shown(1, tuple(some.tolist()))
    for power in range(1, scenes.exact.shape[2].bit_length() + 1):
        yield Shown(1, (task,), 2**power)


def _rounded(values: np.ndarray, digits: int) -> list[Any]:
    """Short numbers; None where a value is not one.

    Of float64, since a rounded float32 is long again as text.
    """
    short = np.round(values.astype(float), digits)
    plain = short.astype(object)
    plain[~np.isfinite(short)] = None
    return plain.tolist()


def _bytes(values: np.ndarray, kind: str) -> str:
    """One byte per number of [0, 1]: 0 to 254, and 255 where a value is not one.

    Of cells its root, so that small chances count.
    """
    shades = np.clip(values, 0, 1)
    shades = np.sqrt(shades) if kind == "cells" else shades
    whole = np.where(np.isfinite(values), np.round(254 * shades), 255)
    return base64.b64encode(whole.astype(np.uint8).tobytes()).decode()


def _legend(scenes: Scenes) -> str:
    rooted = " (shaded by its square root)" if scenes.frame.kind == "cells" else ""
    return scenes.frame.means + rooted


_EXACT = """
<figure><svg class="world second" role="img"></svg>
<figcaption>exact posterior</figcaption></figure>"""
_WINDS = """
<figure><svg class="world second" role="img"></svg>
<figcaption>the wind: true (star), believed (dot)</figcaption></figure>"""

_PLAYER = """
<div class="player" data-name="{name}">
<script type="application/json">{data}</script>
<div class="choices">
<label>Task <select class="task"></select></label>
<label>Seed <select class="seed"></select></label>
</div>
<div class="panels">
<figure><svg class="world first" role="img"></svg>
<figcaption>{first}</figcaption></figure>{second}
</div>
<p class="legend" {hidden}><span>0</span><span class="shades"></span><span>1</span>
<span>{means}</span></p>
<p class="readout" role="status"></p>
<figure><svg class="rewards" viewBox="0 0 600 78" role="img"
 aria-label="Reward of every step"></svg>
<figcaption>reward of every step; a click goes there</figcaption></figure>
<div class="controls">
<button type="button" class="play" aria-pressed="false">Play</button>
<button type="button" class="back" aria-label="One step back">‹</button>
<input type="range" class="time" min="0" value="0" step="1"
 aria-label="Moment of the rollout">
<button type="button" class="next" aria-label="One step forward">›</button>
</div>
<p class="small shown">{shown}</p>
<noscript><p>The player needs JavaScript; everything else on this page does not.</p>
</noscript>
</div>"""
