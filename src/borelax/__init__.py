"""borelax learns to explore from logs: offline meta-reinforcement learning in JAX.

``import borelax`` is light: JAX is imported when one of the names below is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from borelax.agents.dqn import DQN
    from borelax.agents.sac import SAC
    from borelax.experiment import Experiment
    from borelax.logs import TaskLogs
    from borelax.pipeline import run
    from borelax.presets import preset
    from borelax.relabel.policies import ReplayPolicies
    from borelax.relabel.rewards import KeepAsIs, RelabelRewards
    from borelax.report.write import write_report
    from borelax.tasks.escape_room import EscapeRoom
    from borelax.tasks.family import TaskFamily, check_family
    from borelax.tasks.gridworld import Gridworld
    from borelax.tasks.gym_check import check_gym_tasks
    from borelax.tasks.gym_tasks import GymTasks
    from borelax.tasks.semicircle import SemiCircle
    from borelax.tasks.wind import Wind, WindHard
    from borelax.types import Box, Discrete, Spec

__version__ = "0.1.0"

__all__ = [
    "DQN",
    "SAC",
    "Box",
    "Discrete",
    "EscapeRoom",
    "Experiment",
    "Gridworld",
    "GymTasks",
    "KeepAsIs",
    "RelabelRewards",
    "ReplayPolicies",
    "SemiCircle",
    "Spec",
    "TaskFamily",
    "TaskLogs",
    "Wind",
    "WindHard",
    "check_family",
    "check_gym_tasks",
    "preset",
    "run",
    "write_report",
]

_HOMES = {
    "DQN": "borelax.agents.dqn",
    "SAC": "borelax.agents.sac",
    "Box": "borelax.types",
    "Discrete": "borelax.types",
    "EscapeRoom": "borelax.tasks.escape_room",
    "Experiment": "borelax.experiment",
    "Gridworld": "borelax.tasks.gridworld",
    "GymTasks": "borelax.tasks.gym_tasks",
    "KeepAsIs": "borelax.relabel.rewards",
    "RelabelRewards": "borelax.relabel.rewards",
    "ReplayPolicies": "borelax.relabel.policies",
    "SemiCircle": "borelax.tasks.semicircle",
    "Spec": "borelax.types",
    "TaskFamily": "borelax.tasks.family",
    "TaskLogs": "borelax.logs",
    "Wind": "borelax.tasks.wind",
    "WindHard": "borelax.tasks.wind",
    "check_family": "borelax.tasks.family",
    "check_gym_tasks": "borelax.tasks.gym_check",
    "preset": "borelax.presets",
    "run": "borelax.pipeline",
    "write_report": "borelax.report.write",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'borelax' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names, also those that were not used yet."""
    return sorted({*globals(), *__all__})
