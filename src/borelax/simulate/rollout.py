"""One rollout: consecutive episodes of one task under one policy, as two scans."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr

from borelax.simulate.policy import Memory, Policy
from borelax.tasks.family import State, TaskFamily
from borelax.types import Episodes, Key, Transition


def rollout(
    family: TaskFamily,
    policy: Policy,
    task: Any,
    *,
    episodes: int,
    start: str,
    key: Key,
) -> Episodes:
    """Run ``episodes`` episodes; the policy's memory lives through all of them."""

    def one_episode(memory: Memory, key: Key) -> tuple[Memory, Episodes]:
        return _episode(family, policy, task, memory, start=start, key=key)

    keys = jax.vmap(lambda i: jr.fold_in(key, i))(jnp.arange(episodes))
    _, result = jax.lax.scan(one_episode, policy.start(), keys)
    return result


def _episode(
    family: TaskFamily,
    policy: Policy,
    task: Any,
    memory: Memory,
    *,
    start: str,
    key: Key,
) -> tuple[Memory, Episodes]:
    key_reset, key_steps = jr.split(key)
    state = family.reset(task, start, key=key_reset)

    def one_step(carry: tuple[State, Memory], key: Key):
        state, memory = carry
        key_act, key_step = jr.split(key)
        obs = family.observe(state)
        action = policy.act(memory, obs, key=key_act)
        state = family.step(task, state, action, key=key_step)
        next_obs = family.observe(state)
        step = Transition(obs, action, jnp.zeros(()), next_obs)
        step = Transition(obs, action, family.reward(task, step), next_obs)
        return (state, policy.remember(memory, step)), step

    first = family.observe(state)
    keys = jr.split(key_steps, family.spec.horizon)
    (_, memory), steps = jax.lax.scan(one_step, (state, memory), keys)
    obs = jnp.concatenate([first[None], steps.next_obs])
    dtype = family.spec.obs_dtype
    reward = steps.reward.astype(jnp.float32)  # strongly typed, as when read again
    return memory, Episodes(obs.astype(dtype), steps.action, reward)
