"""Returns of n steps: whatever n, what values are fitted to is the value."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from borelax.agents.agent import value_goal
from borelax.learn import sample_steps
from borelax.meta.fit import with_returns
from borelax.types import Episodes

HORIZON, DISCOUNT = 5, 0.7


@settings(deadline=None, max_examples=20)
@given(
    steps=st.integers(1, 7),
    lengths=st.lists(st.integers(1, HORIZON), min_size=1),
    ends=st.booleans(),
)
def test_the_value_is_what_it_is_fitted_to_for_any_number_of_steps(
    steps: int, lengths: list[int], ends: bool
) -> None:
    """Where episodes are cut off, what would have followed is worth something, too."""
    own, value = _episodes(lengths, ends)
    summed = with_returns(own, steps, DISCOUNT)
    batch = sample_steps(summed, 1, 50, ahead=steps, key=jr.key(1))
    here, there = (
        value[tuple(obs.astype(int).T)] for obs in (batch.obs, batch.next_obs)
    )
    np.testing.assert_allclose(value_goal(batch, DISCOUNT, there), here, atol=1e-5)


def _episodes(lengths: list[int], ends: bool) -> tuple[Episodes, jnp.ndarray]:
    """One rollout whose observations say where they are, and its values there."""
    count, length = len(lengths), jnp.asarray(lengths)[None]
    reward = jr.normal(jr.key(0), (1, count, HORIZON))
    obs = jnp.stack(
        jnp.meshgrid(jnp.arange(count), jnp.arange(HORIZON + 1), indexing="ij"), -1
    )[None]
    own = Episodes(
        obs=obs.astype(jnp.float32),
        action=jnp.zeros((1, count, HORIZON)),
        reward=reward,
        length=length,
        ended=jnp.full((1, count), ends),
    )
    beyond = 0.0 if ends else 3.0
    value = jnp.full((count, HORIZON + 1), beyond)
    for t in reversed(range(HORIZON)):
        here = reward[0, :, t] + DISCOUNT * value[:, t + 1]
        value = value.at[:, t].set(jnp.where(t < length[0], here, beyond))
    return own, value
