"""The player: a slider through test rollouts, as HTML with its data inside.

``player.js`` draws what this file packs. Beliefs are one byte per spot, so that
hundreds of steps fit on a page.
"""

import base64
import json
from html import escape
from typing import Any

import numpy as np

from borelax.report.scene_svg import telling_task
from borelax.report.scenes import Scenes

MOST_BYTES = 6_000_000
"""What the data of one page's players may take."""


def player_html(
    scenes: Scenes, name: str, most_bytes: int = MOST_BYTES, task: int | None = None
) -> str:
    """One player; ``name`` tells it from others, ``task`` is what it shows first."""
    packed = pack(scenes, most_bytes)
    if task is not None:
        packed["task"] = task
    data = json.dumps(packed, separators=(",", ":"))
    two = "" if scenes.learned is None else _EXACT
    first = "learned belief" if scenes.learned is not None else "exact posterior"
    if scenes.frame.kind == "winds":
        first, two = "where the agent is", _WINDS
    return _PLAYER.format(
        name=escape(name, quote=True),
        data=data.replace("<", "\\u003c"),
        first=first,
        second=two,
        means=escape(_legend(scenes)),
        hidden="hidden" if scenes.frame.kind == "winds" else "",
    )


def pack(scenes: Scenes, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The scenes as JSON. Seeds that would take too much room are left out."""
    frame, points = scenes.frame, scenes.frame.kind == "winds"
    seeds = scenes.reward.shape[0]
    maps = 0 if points else 1 if scenes.learned is None else 2
    per_seed = 4 / 3 * maps * scenes.exact[0].size + 8 * scenes.place[0].size
    seeds = max(1, min(seeds, int(most_bytes // max(per_seed, 1))))

    def belief(values: np.ndarray | None) -> Any:
        if values is None:
            return None
        if points:
            return np.round(values[:seeds], 4).tolist()
        return [[_bytes(one, frame.kind) for one in seed] for seed in values[:seeds]]

    task = telling_task(scenes)
    return {
        "kind": frame.kind,
        "low": frame.low,
        "high": frame.high,
        "shape": frame.shape,
        "means": frame.means,
        "labels": scenes.labels,
        "goals": np.round(scenes.goals, 4).tolist(),
        "radius": scenes.radius,
        "fixed": scenes.fixed_goal,
        "place": np.round(scenes.place[:seeds], 3).tolist(),
        "reward": np.round(scenes.reward[:seeds], 4).tolist(),
        "learned": belief(scenes.learned),
        "exact": belief(scenes.exact),
        "task": task,
    }


def _bytes(values: np.ndarray, kind: str) -> str:
    """One byte per number of [0, 1]; of cells its root, so that small chances count."""
    shades = np.sqrt(np.clip(values, 0, 1)) if kind == "cells" else values
    whole = np.round(255 * np.nan_to_num(np.clip(shades, 0, 1))).astype(np.uint8)
    return base64.b64encode(whole.tobytes()).decode()


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
<svg class="rewards" viewBox="0 0 600 70" role="img"
 aria-label="Reward of every step; a click goes there"></svg>
<div class="controls">
<button type="button" class="play" aria-pressed="false">Play</button>
<button type="button" class="back" aria-label="One step back">‹</button>
<input type="range" class="time" min="0" value="0" step="1"
 aria-label="Moment of the rollout">
<button type="button" class="next" aria-label="One step forward">›</button>
</div>
<noscript><p>The player needs JavaScript; everything else on this page does not.</p>
</noscript>
</div>"""
