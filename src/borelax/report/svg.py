"""Charts as SVG text: lines with their spread over seeds, and bars.

In: arrays. Out: text, the same for the same arrays. Colours come from the page's style
sheet, so that a chart follows the reader's light or dark theme.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

WIDTH, HEIGHT = 360.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 16.0, 12.0, 38.0


@dataclass(frozen=True)
class Series:
    """Some lines of one kind, one per seed, drawn as their mean and its spread."""

    name: str
    x: np.ndarray
    """[K]."""
    values: np.ndarray
    """[K, S]; NaN where nothing is known."""
    colour: int = 0
    """Decides the dashes, too; 6 is for yardsticks."""


@dataclass(frozen=True)
class Bar:
    """One bar: its name, its length, and one standard deviation if it has one."""

    name: str
    value: float
    spread: float | None = None
    colour: int = 0


def line_chart(
    series: Sequence[Series],
    *,
    x_label: str,
    described: str,
    dots: bool = False,
    boundary: float | None = None,
) -> str:
    """Means as lines, one standard deviation around them as bands.

    Args:
        series: What to draw; where nothing is known, the line has a gap.
        x_label: Below the axis.
        described: What a person who cannot see it is told.
        dots: Mark each point.
        boundary: An x that is marked: what lies beyond was not trained on.
    """
    x_range = _range([s.x for s in series], pad=0.0)
    y_range = _range([b for s in series for b in spread(s)], pad=0.05)
    place = _Scale(x_range, y_range)
    parts = [_axes(place, x_label, whole=dots)]
    if boundary is not None:
        parts.append(
            _line("edge", place.x(boundary), TOP, place.x(boundary), HEIGHT - BOTTOM)
        )
    for one in series:
        parts.append(_series(place, one, dots))
    return _svg(WIDTH, HEIGHT, described, parts)


def bar_chart(bars: Sequence[Bar], *, described: str, digits: int = 1) -> str:
    """Horizontal bars with their names above and values at the end."""
    row, left, right = 40.0, 8.0, 66.0
    height = row * len(bars) + 6
    known = [b for b in bars if math.isfinite(b.value)]
    low = min([0.0, *(b.value - (b.spread or 0.0) for b in known)])
    high = max([0.0, *(b.value + (b.spread or 0.0) for b in known)])
    span = (high - low) or 1.0
    x = lambda v: left + (v - low) / span * (WIDTH - left - right)  # noqa: E731
    parts = []
    for i, bar in enumerate(bars):
        y = i * row
        parts.append(_line("axis", x(0), y + 17, x(0), y + 36))
        parts.append(_text("label", left, y + 14, bar.name, "start"))
        if not math.isfinite(bar.value):
            parts.append(_text("label", left, y + 31, "unknown", "start"))
            continue
        a, b = sorted((x(0), x(bar.value)))
        parts.append(
            f'<rect class="bar c{bar.colour}" x="{a:.1f}" y="{y + 19:g}" '
            f'width="{max(b - a, 1):.1f}" height="15" rx="2"/>'
        )
        end = b
        if bar.spread:
            lo, hi = x(bar.value - bar.spread), x(bar.value + bar.spread)
            parts.append(_line("whisker", lo, y + 26.5, hi, y + 26.5))
            end = max(b, hi)
        text = f"{bar.value:.{digits}f}".replace("-", "−")
        parts.append(_text("value", end + 6, y + 31, text, "start"))
    return _svg(WIDTH, height, described, parts)


def spread(series: Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and one deviation to each side, over the seeds that are known."""
    known = np.isfinite(series.values)
    count = known.sum(axis=1)
    some = np.where(count > 0, 1.0, np.nan)
    filled = np.where(known, series.values, 0.0)
    mean = filled.sum(axis=1) / np.maximum(count, 1) * some
    off = np.where(known, series.values - mean[:, None], 0.0)
    deviation = np.sqrt((off**2).sum(axis=1) / np.maximum(count, 1)) * some
    return mean, mean - deviation, mean + deviation


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between ``low`` and ``high``, at most ``most`` of them."""
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low] if math.isfinite(low) else []
    power = 10.0 ** math.floor(math.log10(span / most))
    for step in (1, 2, 2.5, 5, 10, 20):
        first = math.ceil(low / (step * power) - 1e-9)
        last = math.floor(high / (step * power) + 1e-9)
        if last - first < most:
            return [i * step * power for i in range(first, last + 1)]
    return [low]


def number(value: float) -> str:
    """A tick's label: short, and with a true minus sign."""
    size = abs(value)
    if size >= 1e6:
        text = f"{value / 1e6:g}M"
    elif size >= 1e4:
        text = f"{value / 1e3:g}k"
    elif size and size < 1e-3:
        text = f"{value:.0e}"
    else:
        text = f"{value:.4g}"
    return text.replace("-", "−")


class _Scale:
    """Where values lie in the picture."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]):
        self.x_range, self.y_range = x, y

    def x(self, value: float) -> float:
        low, high = self.x_range
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - BOTTOM - TOP)


def _range(arrays: Sequence[np.ndarray], pad: float) -> tuple[float, float]:
    values = np.concatenate([np.asarray(a, float).ravel() for a in arrays] or [[0.0]])
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-9 * max(1.0, abs(high)):
        return low - 0.5, high + 0.5
    return low - pad * (high - low), high + pad * (high - low)


def _axes(place: _Scale, x_label: str, whole: bool) -> str:
    parts = []
    for value in ticks(*place.y_range):
        y = place.y(value)
        parts.append(_line("grid", LEFT, y, WIDTH - RIGHT, y))
        parts.append(_text("tick", LEFT - 6, y + 4, number(value), "end"))
    for value in ticks(*place.x_range):
        if not whole or float(value).is_integer():
            x = place.x(value)
            parts.append(
                _text("tick", x, HEIGHT - BOTTOM + 15, number(value), "middle")
            )
    parts.append(_line("axis", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(_text("label", middle, HEIGHT - 6, x_label, "middle"))
    return "".join(parts)


def _series(place: _Scale, series: Series, dots: bool) -> str:
    mean, low, high = spread(series)
    known = np.isfinite(mean)
    kind = f"c{series.colour}"
    parts = []
    for run in _stretches(known):
        x = [place.x(v) for v in series.x[run]]
        if series.values.shape[1] > 1:
            edge = [(a, place.y(v)) for a, v in zip(x, high[run], strict=True)]
            edge += [(a, place.y(v)) for a, v in zip(x, low[run], strict=True)][::-1]
            parts.append(f'<path class="band {kind}" d="{_path(edge)}Z"/>')
        points = [(a, place.y(v)) for a, v in zip(x, mean[run], strict=True)]
        parts.append(f'<path class="line {kind}" d="{_path(points)}"/>')
        if dots or len(points) == 1:
            parts += [
                f'<circle class="dot {kind}" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>'
                for a, b in points
            ]
    return "".join(parts)


def _stretches(known: np.ndarray) -> list[slice]:
    """The runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], known.astype(int), [0]])))
    return [slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    start, end = f'x1="{x1:.1f}" y1="{y1:.1f}"', f'x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {start} {end}/>'


def _text(kind: str, x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _svg(width: float, height: float, described: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(described)}">{"".join(parts)}</svg>'
    )
