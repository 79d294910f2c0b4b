"""Experiments as values: ``paper``, ``quick`` and ``tiny`` for each domain.

MuJoCo's domains also have ``gpu``, for half an hour of one at most.
"""

from collections.abc import Callable

from borelax import presets_gridworld as gridworld
from borelax import presets_mujoco as mujoco
from borelax import presets_plane as plane
from borelax.errors import ConfigError
from borelax.experiment import Experiment
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs, RelabelRewards

RELABELLINGS = {
    "rewards": RelabelRewards(),
    "policies": ReplayPolicies(),
    "none": KeepAsIs(),
}
"""What ``--relabel`` chooses from."""


def _plane(paper: Callable[[], Experiment]) -> dict[str, Callable[[], Experiment]]:
    return {
        "quick": lambda: plane.quick(paper()),
        "paper": paper,
        "tiny": lambda: plane.tiny(paper()),
    }


PRESETS: dict[str, dict[str, Callable[[], Experiment]]] = {
    "gridworld": {
        "quick": gridworld.gridworld_quick,
        "paper": gridworld.gridworld_paper,
        "tiny": gridworld.gridworld_tiny,
    },
    "semicircle": {
        **_plane(plane.semicircle_paper),
        "quick": plane.semicircle_quick,
    },
    "wind": _plane(plane.wind_paper),
    "wind-hard": _plane(plane.wind_hard_paper),
    "escape-room": _plane(plane.escape_room_paper),
    "half-cheetah-vel": {
        "quick": mujoco.half_cheetah_vel_quick,
        "gpu": mujoco.half_cheetah_vel_gpu,
        "paper": mujoco.half_cheetah_vel_paper,
        "tiny": lambda: mujoco.tiny(mujoco.half_cheetah_vel_paper()),
    },
    "ant-semicircle": {
        "quick": mujoco.ant_semicircle_quick,
        "gpu": mujoco.ant_semicircle_gpu,
        "paper": mujoco.ant_semicircle_paper,
        "tiny": lambda: mujoco.tiny(mujoco.ant_semicircle_gpu()),
    },
}


def preset(domain: str, name: str = "quick") -> Experiment:
    """The experiment called ``name`` of a domain."""
    if domain not in PRESETS:
        known = ", ".join(PRESETS)
        raise ConfigError(f"There is no domain called {domain!r}; choose from {known}.")
    if name not in PRESETS[domain]:
        known = ", ".join(PRESETS[domain])
        raise ConfigError(
            f"{domain} has no preset called {name!r}; choose from {known}."
        )
    return PRESETS[domain][name]()
