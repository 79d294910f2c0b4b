"""The table of ``borelax reproduce table1``: ours beside the published."""

import io

from rich.console import Console

from borelax.report.table1 import print_table1

ANT = {
    "cell": "ant-uniform-sac",
    "agent": "sac",
    "seeds": 2,
    "return": {
        "mean": 150.0,
        "std": 2.5,
        "per_seed": [147.5, 152.5],
        "per_episode": [[60.0, 87.5], [64.0, 88.5]],
    },
    "published": {
        "method": "BOReL",
        "mean": 171.8,
        "std": 7.0,
        "per_episode": None,
        "seeds": 3,
    },
    "wall_seconds": {"collect": 1000.0, "belief": 234.0},
}
CHEETAH = {
    "cell": "half-cheetah-sac",
    "agent": "sac",
    "seeds": 1,
    "return": {"mean": -60.0, "std": 0.0, "per_episode": [[-31.0, -29.0]]},
    "published": {
        "method": "online VariBAD",
        "mean": -50.9,
        "std": None,
        "per_episode": [-24.8, -26.1],
        "seeds": 10,
    },
    "wall_seconds": {"meta": 5.0},
}


def shown(*cells: dict, missing: tuple[str, ...] = ()) -> tuple[list[list[str]], str]:
    """The rows of the printed table, and everything printed."""
    out = io.StringIO()
    table = {
        "preset": "gpu",
        "meta_updates": None,
        "cells": list(cells),
        "missing": list(missing),
    }
    print_table1(table, Console(file=out, width=100))
    lines = [line for line in out.getvalue().splitlines() if line.startswith("│")]
    rows = [[x.strip() for x in line.strip("│").split("│")] for line in lines]
    return rows, out.getvalue()


def test_ours_stands_beside_the_published():
    raw = ANT | {"cell": "ant-uniform-sac-raw", "published": None}
    rows, text = shown(ANT, raw, CHEETAH)
    own = ["150.0 ± 2.5", "62.0, 88.0"]
    assert rows == [
        ["ant-uniform-sac", *own, "171.8 ± 7.0", "1,234"],
        ["ant-uniform-sac-raw", *own, "–", "1,234"],
        ["half-cheetah-sac", "-60.0", "-31.0, -29.0", "-50.9 *", "5"],
    ]
    assert "Table 1, gpu" in text
    assert text.count("* online VariBAD, 10 seeds; -24.8, -26.1 per episode.") == 1
    assert "those of the cell that made it" in text and "Not done" not in text


def test_what_is_missing_is_named():
    rows, text = shown(ANT, missing=("ant-fixed-sac", "ant-fixed-cql"))
    assert len(rows) == 1 and "*" not in text
    assert "Not done yet: ant-fixed-sac, ant-fixed-cql." in text
    assert "those of the cell that made it" not in text
