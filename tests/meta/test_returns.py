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
@given(steps=st.integers(1, 7), lengths=st.lists(st.integers(1, HORIZON), min_size=1))
def test_the_value_is_what_it_is_fitted_to_for_any_number_of_steps(
    steps: int, lengths: list[int]
) -> None:
    """Episodes end by themselves, so that a value is all that is still paid in them."""
    own, value = _episodes(lengths)
    summed = with_returns(own, steps, DISCOUNT)
    batch = sample_steps(summed, 1, 50, ahead=steps, key=jr.key(1))
    here, there = (
        value[tuple(obs.astype(int).T)] for obs in (batch.obs, batch.next_obs)
    )
    np.testing.assert_allclose(value_goal(batch, DISCOUNT, there), here, atol=1e-5)


def _episodes(lengths: list[int]) -> tuple[Episodes, jnp.ndarray]:
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
        ended=jnp.ones((1, count), bool),
    )
    value = jnp.zeros((count, HORIZON + 1))
    for t in reversed(range(HORIZON)):
        paid = jnp.where(t < length[0], reward[0, :, t], 0.0)
        value = value.at[:, t].set(paid + DISCOUNT * value[:, t + 1])
    return own, value
