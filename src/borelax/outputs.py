"""How the outputs of phases become files and come back.

Each writer puts files into a folder and names them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from borelax import store
from borelax.logs import read_episodes, write_episodes
from borelax.relabel.source import Provenance
from borelax.types import Episodes


def write_tree(name: str) -> Callable[[Path, Any], list[str]]:
    """Write a pytree to the file ``name``."""

    def write(folder: Path, tree: Any) -> list[str]:
        store.save_tree(folder / name, tree)
        return [name]

    return write


def read_tree(name: str, like: Any) -> Callable[[Path], Any]:
    """Read what ``write_tree`` wrote; ``like`` gives the shapes."""
    return lambda folder: store.load_tree(folder / name, like)


def write_rollouts(folder: Path, rollouts: Episodes) -> list[str]:
    """Write the rollouts of the test."""
    write_episodes(folder / "rollouts.npz", rollouts)
    return ["rollouts.npz"]


def read_provenance(folder: Path) -> Provenance:
    """Read what ``write_provenance`` wrote."""
    made = store.load_arrays(folder / "provenance.npz")
    rollouts = read_episodes(folder / "sample.npz")
    return Provenance(rollouts, jnp.asarray(made["task"]), jnp.asarray(made["maker"]))


def write_provenance(folder: Path, sample: Provenance) -> list[str]:
    """Write drawn rollouts and where their episodes came from."""
    write_episodes(folder / "sample.npz", sample.rollouts)
    provenance = {"task": np.asarray(sample.task), "maker": np.asarray(sample.maker)}
    store.save_arrays(folder / "provenance.npz", provenance)
    return ["sample.npz", "provenance.npz"]
