"""borelax learns to explore from logs: offline meta-reinforcement learning in JAX.

``import borelax`` is light: JAX is imported when one of the names below is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from borelax.experiment import Experiment
    from borelax.logs import TaskLogs
    from borelax.pipeline import run
    from borelax.presets import preset
    from borelax.tasks.family import TaskFamily, check_family
    from borelax.tasks.gridworld import Gridworld

__version__ = "0.1.0"

__all__ = [
    "Experiment",
    "Gridworld",
    "TaskFamily",
    "TaskLogs",
    "check_family",
    "preset",
    "run",
]

_HOMES = {
    "Experiment": "borelax.experiment",
    "Gridworld": "borelax.tasks.gridworld",
    "TaskFamily": "borelax.tasks.family",
    "TaskLogs": "borelax.logs",
    "check_family": "borelax.tasks.family",
    "preset": "borelax.presets",
    "run": "borelax.pipeline",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'borelax' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names, also those that were not used yet."""
    return sorted({*globals(), *__all__})
