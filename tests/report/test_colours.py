"""Laws of colours: the colour-blind can tell lines apart, in print and on both themes.

Colours are seen as by people without green or red cones (Machado, Oliveira and
Fernandes 2009, severity 1), and compared by their distance in CIELAB (1976), in which
a person just sees 2.3.
"""

import re
from importlib import resources

import numpy as np
import pytest

from borelax.report.drawing import COLOURS, DASHES

SIGHT = {
    "all cones": np.eye(3),
    "no green cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no red cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ]
)
STYLE = (resources.files("borelax.report") / "page.css").read_text("utf-8")
EARLIER = ("#0072b2", "#c24e00", "#00805c", "#a8527f", "#8a6d00", "#4a5fb8")
"""Six colours that look different to most people only."""


def themes() -> dict[str, dict[str, str]]:
    """The names of colours in the style sheet, light and dark."""
    parts = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    light, dark = (dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in parts)
    return {"light": light, "dark": dark}


def light_of(colour: str) -> np.ndarray:
    """Linear light of red, green and blue."""
    share = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """CIELAB, in which white is (100, 0, 0)."""
    ratio = TO_XYZ @ light / TO_XYZ.sum(axis=1)
    small = ratio <= (6 / 29) ** 3
    x, y, z = np.where(small, ratio / (3 * (6 / 29) ** 2) + 4 / 29, np.cbrt(ratio))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def least_difference(colours) -> float:
    """Between the two that are most alike, to whom they are most alike."""
    least = np.inf
    for matrix in SIGHT.values():
        seen = [lab(np.clip(matrix @ light_of(c), 0, 1)) for c in colours]
        pairs = [(a, b) for i, a in enumerate(seen) for b in seen[:i]]
        least = min(least, *(float(np.linalg.norm(a - b)) for a, b in pairs))
    return least


def contrast(one: str, other: str) -> float:
    """As WCAG has it: 1 to 21."""
    low, high = sorted(float(TO_XYZ[1] @ light_of(c)) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_the_measure_is_right():
    assert least_difference(["#ffffff", "#000000"]) == pytest.approx(100, abs=0.1)
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    red = lab(light_of("#ff0000"))
    np.testing.assert_allclose(red, [53.2, 80.1, 67.2], atol=0.2)
    grey = light_of("#808080")
    for matrix in SIGHT.values():
        np.testing.assert_allclose(matrix @ grey, grey, atol=1e-3)
    assert least_difference(EARLIER) < 6


@pytest.mark.parametrize("name", ["light", "dark"])
def test_the_pages_colours_are_told_apart_by_everybody(name):
    theme = themes()[name]
    colours = [theme[f"c{i}"] for i in range(6)]
    assert least_difference(colours) > 20
    assert min(contrast(theme["paper"], colour) for colour in colours) > 3
    assert least_difference([theme[c] for c in ("belief", "way", "goal")]) > 20
    assert contrast(theme["paper"], theme["muted"]) > 4.5


def test_the_colours_of_figures_are_told_apart_by_everybody():
    assert least_difference(COLOURS[:6]) > 16


def test_no_two_lines_are_dashed_alike():
    dashes = re.findall(r"\.line\.(c\d) \{ stroke-dasharray: ([\d ]+);", STYLE)
    assert [name for name, _ in dashes] == [f"c{i}" for i in range(1, 7)]
    assert len({dash for _, dash in dashes}) == 6
    assert len(set(DASHES)) == len(COLOURS)
