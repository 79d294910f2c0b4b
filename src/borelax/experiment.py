"""One experiment as one value: every phase's settings, to JSON and back."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

import jax

from borelax.agents.dqn import DQN
from borelax.agents.sac import SAC
from borelax.belief.decoder import CellDecoder
from borelax.belief.fit import FitBelief
from borelax.belief.step_decoder import StepDecoder
from borelax.belief.view import BeliefView
from borelax.collect.collect import Collect
from borelax.errors import ConfigError, require
from borelax.evaluate.evaluate import Evaluate
from borelax.meta.fit import FitMeta
from borelax.plain import decode, encode, is_plain, refuse_wrong_values
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.family import TaskFamily, all_tasks, name_of
from borelax.tasks.gridworld import Gridworld
from borelax.tasks.gym_tasks import GymTasks
from borelax.tasks.half_cheetah_vel import HalfCheetahVel
from borelax.tasks.mujoco_family import MujocoFamily
from borelax.tasks.semicircle import SemiCircle
from borelax.tasks.wind import Wind, WindHard
from borelax.types import Box

Family = (
    Gridworld
    | SemiCircle
    | Wind
    | WindHard
    | EscapeRoom
    | HalfCheetahVel
    | AntSemiCircle
)
"""The families that have a name on the command line."""

PARTS = (
    *get_args(Family),
    Collect,
    DQN,
    SAC,
    RelabelRewards,
    ReplayPolicies,
    KeepAsIs,
    FitBelief,
    CellDecoder,
    StepDecoder,
    FitMeta,
    BeliefView,
    Evaluate,
)
"""Every dataclass that may stand in an experiment's JSON, named by its ``kind``."""


@dataclass(frozen=True)
class Experiment:
    """Everything that decides a run's result; validated when it is made."""

    preset: str = "custom"
    """Where the values came from."""
    seed: int = 0
    """The root of all randomness."""
    num_seeds: int = 1
    """Belief models and meta-agents trained side by side on one set of logs."""
    exact_belief: bool = False
    """Yardstick: give the meta-agent the exact posterior, not the learned belief."""
    family: Family | GymTasks | TaskFamily | MujocoFamily = field(
        default_factory=Gridworld
    )
    """The task family: a named one, or the user's own."""
    collect: Collect = field(default_factory=Collect)
    """Phase 1."""
    relabel: RelabelRewards | ReplayPolicies | KeepAsIs = field(
        default_factory=RelabelRewards
    )
    """Phase 2."""
    belief: FitBelief = field(default_factory=FitBelief)
    """Phase 3."""
    meta: FitMeta = field(default_factory=FitMeta)
    """Phase 4."""
    evaluate: Evaluate = field(default_factory=Evaluate)
    """Phase 5."""

    def __post_init__(self) -> None:
        """Refuse what no phase could run, and parts that do not fit together."""
        refuse_wrong_values(self, PARTS)
        require(self.num_seeds >= 1, f"At least one seed, not {self.num_seeds}.")
        require(0 <= self.seed < 2**31, "The seed must lie in [0, 2^31).")
        require(
            self.collect.start in self.family.starts,
            f"{type(self.family).__name__} has no start called "
            f"{self.collect.start!r}; choose one of {', '.join(self.family.starts)}.",
        )
        self._check_own_family()
        self._check_number_of_tasks()
        self._check_relabelling()
        self._check_agents()
        self._check_decoder()

    def to_json(self) -> dict[str, Any]:
        """Plain values, each dataclass tagged with its ``kind``."""
        return encode(self)

    @classmethod
    def from_json(cls, value: Any) -> "Experiment":
        """Undo ``to_json``; raises ``ConfigError`` on anything else.

        The hash beside the values in a run's ``experiment.json`` is passed over.
        """
        refuse_own_family(value)
        if isinstance(value, dict):
            value = {name: x for name, x in value.items() if name != "sha256"}
        experiment = decode(value, {part.__name__: part for part in (cls, *PARTS)})
        require(isinstance(experiment, cls), "This is not the JSON of an experiment.")
        return experiment

    def _check_own_family(self) -> None:
        """A family of the user's own must be known by its values."""
        require(
            isinstance(self.family, (*PARTS, GymTasks)) or is_plain(self.family),
            f"{type(self.family).__name__} must be a frozen dataclass of numbers, "
            "texts and tuples of them, by which a run's files know it.",
        )
        known = Gridworld | SemiCircle | EscapeRoom | Wind | AntSemiCircle
        require(
            isinstance(self.family, known) or not self.exact_belief,
            f"The exact posterior of {name_of(self.family)} is not known; leave out "
            "exact_belief.",
        )

    def _check_number_of_tasks(self) -> None:
        listed = jax.eval_shape(lambda: all_tasks(self.family))
        if listed is None:
            return
        require(
            not self.evaluate.validation,
            f"{name_of(self.family)} is tested on the tasks that it lists, and has "
            "no others; leave out Evaluate.validation.",
        )
        available = jax.tree.leaves(listed)[0].shape[0]
        for phase in (self.collect, self.evaluate):
            require(
                phase.num_tasks <= available,
                f"{type(phase).__name__}.num_tasks is {phase.num_tasks}, and this "
                f"{name_of(self.family)} has only {available} tasks; ask for at most "
                f"{available}.",
            )

    def _check_relabelling(self) -> None:
        require(
            self.collect.num_tasks >= 2 or self.relabel.name == "none",
            "Relabelling borrows from other tasks, and Collect.num_tasks is 1. "
            "Collect more tasks or use --relabel none.",
        )
        require(
            self.family.differs_in == "rewards" or self.relabel.name != "rewards",
            f"The tasks of {name_of(self.family)} differ in their transitions: what "
            "one agent did could not have happened in another's task, whatever the "
            "reward. "
            "Use --relabel policies or --relabel none.",
        )
        require(
            self.family.reward is not None or self.relabel.name != "rewards",
            f"{name_of(self.family)} has no reward function, by which rewards could be "
            "relabelled; give GymTasks(reward=…), or use ReplayPolicies or KeepAsIs.",
        )
        require(
            not (self.exact_belief and self.meta.expected_rewards),
            "Expected rewards (R+) come from the decoder of a learned belief; leave "
            "out --exact-belief or --meta.expected-rewards.",
        )

    def _check_agents(self) -> None:
        boxed = isinstance(self.family.spec.action, Box)
        for phase in (self.collect, self.meta):
            require(
                isinstance(phase.agent, SAC) == boxed,
                f"{type(phase).__name__}.agent is {type(phase.agent).__name__}, and "
                f"{name_of(self.family)} has {'continuous' if boxed else 'discrete'} "
                f"actions; use {'SAC' if boxed else 'DQN'}.",
            )

    def _check_decoder(self) -> None:
        decoder, family = self.belief.decoder, self.family
        if not isinstance(family, Gridworld):
            require(
                not isinstance(decoder, CellDecoder),
                f"CellDecoder reads one-hot cells, and {name_of(family)} has none; use "
                "StepDecoder.",
            )
            return
        if not isinstance(decoder, CellDecoder):
            raise ConfigError(
                f"{family.name} is judged cell by cell, and StepDecoder knows none; "
                "use CellDecoder."
            )
        require(
            all(width > 0 for width in decoder.hidden),
            f"CellDecoder.hidden must hold positive widths, not {decoder.hidden}.",
        )
        require(
            family.step_reward <= decoder.threshold < family.goal_reward,
            f"CellDecoder.threshold is {decoder.threshold}, which does not tell the "
            f"goal's reward {family.goal_reward} from the others' "
            f"{family.step_reward}; choose a value between them.",
        )


def refuse_own_family(value: Any) -> None:
    """Refuse the JSON of an experiment on a family of the user's own."""
    family = value.get("family") if isinstance(value, dict) else None
    family = family if isinstance(family, dict) else {}
    kind = family.get("kind")
    if isinstance(kind, str) and kind not in {part.__name__ for part in PARTS}:
        raise ConfigError(
            f"The tasks of this experiment are {family.get('name', kind)} ({kind}), "
            "which is your own code, and files do not hold code. Go on from Python: "
            "borelax.run(Experiment(family=…, …), out) with the same values."
        )


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Lines ``path: old -> new`` for every value that differs between two JSONs."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            inner = f"{path}.{name}" if path else name
            yield from differences(old.get(name), new.get(name), inner)
    elif old != new:
        yield f"{path}: {old} -> {new}"
