"""One experiment as one value: every phase's settings, to JSON and back."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

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
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.family import FiniteFamily
from borelax.tasks.gridworld import Gridworld
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

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


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
    family: Family = field(default_factory=Gridworld)
    """The task family."""
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
        _refuse_wrong_values(self)
        require(self.num_seeds >= 1, f"At least one seed, not {self.num_seeds}.")
        require(0 <= self.seed < 2**31, "The seed must lie in [0, 2^31).")
        require(
            self.collect.start in self.family.starts,
            f"{type(self.family).__name__} has no start called "
            f"{self.collect.start!r}; choose one of {', '.join(self.family.starts)}.",
        )
        self._check_number_of_tasks()
        self._check_relabelling()
        self._check_agents()
        self._check_decoder()

    def to_json(self) -> dict[str, Any]:
        """Plain values, each dataclass tagged with its ``kind``."""
        return _encode(self)

    @classmethod
    def from_json(cls, value: Any) -> "Experiment":
        """Undo ``to_json``; raises ``ConfigError`` on anything else.

        The hash beside the values in a run's ``experiment.json`` is passed over.
        """
        if isinstance(value, dict):
            value = {name: x for name, x in value.items() if name != "sha256"}
        experiment = _decode(value, {part.__name__: part for part in (cls, *PARTS)})
        require(isinstance(experiment, cls), "This is not the JSON of an experiment.")
        return experiment

    def _check_number_of_tasks(self) -> None:
        if not isinstance(self.family, FiniteFamily):
            return
        for phase in (self.collect, self.evaluate):
            available = jax.eval_shape(self.family.all_tasks).shape[0]
            require(
                phase.num_tasks <= available,
                f"{type(phase).__name__}.num_tasks is {phase.num_tasks}, and this "
                f"{self.family.name} has only {available} tasks; ask for at most "
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
            f"The tasks of {self.family.name} differ in their transitions: what one "
            "agent did could not have happened in another's task, whatever the reward. "
            "Use --relabel policies or --relabel none.",
        )
        require(
            not (self.exact_belief and isinstance(self.family, MujocoFamily)),
            f"No exact posterior is known for {self.family.name}; leave out "
            "--exact-belief.",
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
                f"{self.family.name} has {'continuous' if boxed else 'discrete'} "
                f"actions; use {'SAC' if boxed else 'DQN'}.",
            )

    def _check_decoder(self) -> None:
        decoder, family = self.belief.decoder, self.family
        if not isinstance(family, Gridworld):
            require(
                not isinstance(decoder, CellDecoder),
                f"CellDecoder reads one-hot cells, and {family.name} has none; use "
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


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Lines ``path: old -> new`` for every value that differs between two JSONs."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            inner = f"{path}.{name}" if path else name
            yield from differences(old.get(name), new.get(name), inner)
    elif old != new:
        yield f"{path}: {old} -> {new}"


def _encode(value: Any) -> Any:
    if is_dataclass(value):
        inner = {f.name: _encode(getattr(value, f.name)) for f in fields(value)}
        return {"kind": type(value).__name__, **inner}
    return list(value) if isinstance(value, tuple) else value


def _decode(value: Any, kinds: dict[str, type]) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    kind = kinds.get(str(value.get("kind")))
    if kind is None:
        raise ConfigError(f"Unknown part {value.get('kind')!r} in the configuration.")
    inner = {k: _decode(v, kinds) for k, v in value.items() if k != "kind"}
    unknown = set(inner) - {f.name for f in fields(kind)}
    if unknown:
        raise ConfigError(f"{kind.__name__} has no {', '.join(sorted(unknown))}.")
    _refuse_wrong_types(kind, inner)
    return kind(**inner)


def _refuse_wrong_values(part: Any) -> None:
    """Refuse values of another type than their field's, NaN and infinity, in any part.

    JSON and Python callers bring such values; flags are parsed by their types.
    """
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    _refuse_wrong_types(type(part), values)
    for name, value in values.items():
        if is_dataclass(value):
            _refuse_wrong_values(value)
        infinite = isinstance(value, float) and not math.isfinite(value)
        require(
            not infinite, f"{type(part).__name__}.{name} must be finite, not {value}."
        )


def _refuse_wrong_types(kind: type, values: dict[str, Any]) -> None:
    hints = get_type_hints(kind)
    for name, value in values.items():
        require(
            _fits(value, hints[name]),
            f"{kind.__name__}.{name} must be {_in_words(hints[name])}, not {value!r}.",
        )


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return isinstance(value, tuple) and all(_fits(x, item) for x in value)
    if isinstance(value, bool):  # to Python, a boolean is a number too
        return hint is bool
    return isinstance(value, int | float if hint is float else hint)


def _in_words(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_in_words(choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return f"a list, each {_in_words(get_args(hint)[0])}"
    return _WORDS.get(hint) or f"a {hint.__name__}"
