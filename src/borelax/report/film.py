"""A moving image of one test rollout: the path grows, the belief narrows.

In: scenes. Out: the bytes of an animated WebP (or GIF), the same for the same arrays.
"""

import io

import numpy as np

from borelax.report.drawing import draw_moment, new_figure
from borelax.report.scenes import Scenes

MOST_FRAMES = 90
"""Longer rollouts show every second, third … moment."""
SECONDS = 11.0
"""How long a film takes, about; ends of episodes are shown longer."""


def film(scenes: Scenes, seed: int, task: int, kind: str = "WEBP") -> bytes:
    """One task's rollout; ``kind`` is WEBP or GIF."""
    from PIL import Image

    moments = film_moments(*scenes.reward.shape[2:])
    pause = int(1000 * SECONDS / len(moments))
    horizon = scenes.reward.shape[-1]
    images = [Image.fromarray(frame_of_film(scenes, seed, task, m)) for m in moments]
    times = [pause if step < horizon else 4 * pause for _, step in moments]
    file = io.BytesIO()
    options = {"quality": 80, "method": 4} if kind == "WEBP" else {"disposal": 1}
    images[0].save(
        file,
        kind,
        save_all=True,
        append_images=images[1:],
        duration=times,
        loop=0,
        **options,
    )
    return file.getvalue()


def film_moments(episodes: int, horizon: int) -> list[tuple[int, int]]:
    """The (episode, step) that are shown: the ends of episodes always."""
    skip = -(-episodes * (horizon + 1) // MOST_FRAMES)
    steps = sorted({*range(0, horizon, skip), horizon})
    return [(episode, step) for episode in range(episodes) for step in steps]


def frame_of_film(
    scenes: Scenes, seed: int, task: int, moment: tuple[int, int]
) -> np.ndarray:
    """One picture [height, width, 3]: learned belief, and the exact posterior."""
    beliefs = [("learned belief", scenes.learned), ("exact posterior", scenes.exact)]
    panels = [(name, b) for name, b in beliefs if b is not None]
    if scenes.frame.kind == "winds":
        panels = [(scenes.labels[task], scenes.learned)]
    episode, step = moment
    low, high = scenes.frame.low, scenes.frame.high
    ratio = (high[1] - low[1]) / (high[0] - low[0])
    with new_figure(2.7 * len(panels), 2.6 * ratio + 0.6) as figure:
        row = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (name, belief) in zip(row, panels, strict=True):
            draw_moment(axes, scenes, belief, (seed, task, episode, step))
            axes.set_title(name)
        gained = scenes.reward[seed, task, :episode].sum()
        gained += scenes.reward[seed, task, episode, :step].sum()
        words = f"episode {episode + 1}, step {step}, return {gained:.1f}"
        figure.suptitle(words.replace("-", "−"), fontsize=9)
        figure.set_dpi(120)
        figure.canvas.draw()
        return np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()
