"""The meta-agent one deploys: a belief filter and a policy over hyper-states."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Num

from borelax.agents.agent import Agent
from borelax.belief.view import BeliefFilter
from borelax.relabel.states import hyper_state
from borelax.types import Key, Transition


class BeliefPolicy(eqx.Module):
    """Acts deterministically on (observation, belief); remembers only the belief."""

    belief: BeliefFilter
    agent: Agent = eqx.field(static=True)
    state: Any

    def start(self) -> Any:
        """The prior."""
        return self.belief.start()

    def act(
        self, memory: Any, obs: Float[Array, "obs"], *, key: Key
    ) -> Num[Array, "..."]:
        """Ask the agent about the hyper-state."""
        hyper = hyper_state(obs, self.belief.features(memory))
        return self.agent.act(self.state, hyper, explore=0.0, key=key)

    def remember(self, memory: Any, step: Transition) -> Any:
        """Update the belief."""
        return self.belief.update(memory, step)
