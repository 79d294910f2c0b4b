"""The one seam between learning and environments."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Float

from borelax.types import Episodes, Key, Spec, Transition

RewardFunction = Callable[[Any, Transition], Float[Array, ""]]


@runtime_checkable
class Simulator(Protocol):
    """Runs policies in tasks. Learners cannot tell one simulator from another."""

    @property
    def spec(self) -> Spec:
        """Sizes, horizon and episodes per rollout."""
        ...

    @property
    def reward(self) -> RewardFunction | None:
        """The family's reward of a logged step; None: rewards cannot be relabelled."""
        ...

    @property
    def training_reward(self) -> RewardFunction | None:
        """What agents learn from while logs are collected; None: the reward itself."""
        ...

    def rollouts(
        self,
        policies: Any,
        tasks: Any,
        *,
        repeats: int,
        episodes: int,
        start: str,
        key: Key,
    ) -> Episodes:
        """Run policy n in task n, ``repeats`` rollouts each: [N, repeats, E, …]."""
        ...
