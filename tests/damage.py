"""Small files to damage, and ways to damage them."""

from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings

from borelax import manifest, store

SMALL = {"a": np.arange(3, dtype=np.float32), "b": np.asarray(True)}
LIKELY = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def flipped(data: bytes, position: int, mask: int) -> bytes:
    changed = bytearray(data)
    changed[position % len(data)] ^= mask
    return bytes(changed)


def sealed(folder: Path) -> Path:
    """A folder of two files and their manifest."""
    names = ["task-003.npz", "naïve/größe.json"]
    store.save_arrays(folder / names[0], SMALL)
    store.write_json(folder / names[1], {"β": [1, 2.5, None]})
    manifest.seal(folder, names, {"seed": 1, "ü": [0.1]})
    return folder
