"""Episodes that end early: what stands in their padding changes nothing.

``SHORT`` holds random rollouts of three tasks whose episodes are 1 … H steps long.
``spoiled`` writes other numbers into their padding.
"""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.agents.dqn import DQN
from borelax.agents.sac import SAC
from borelax.belief.decoder import CellDecoder
from borelax.belief.elbo import negative_elbo
from borelax.belief.fit import FitBelief, _init
from borelax.belief.step_decoder import StepDecoder
from borelax.belief.view import BeliefView, LearnedBelief
from borelax.evaluate.evaluate import returns_per_episode
from borelax.learn import sample_steps
from borelax.logs import TaskLogs, read_episodes, read_logs, write_episodes, write_logs
from borelax.relabel.rewards import Relabelled, RelabelRewards, relabel
from borelax.relabel.source import AsLogged
from borelax.relabel.states import relabel_states
from borelax.types import Box, Discrete, Episodes, Spec, Transition

N, R, E, H, OBS = 3, 4, 2, 5, 3
SPEC = Spec(OBS, Discrete(4), H, E)
LENGTH = np.random.default_rng(0).integers(1, H + 1, (N, R, E)).astype(np.int32)
LENGTH[0, 0] = H, 2
LENGTH[0, 1] = 2, H
INSIDE = np.arange(H) < LENGTH[..., None]


def made() -> Episodes:
    rng = np.random.default_rng(1)
    seen = np.minimum(np.arange(H + 1), LENGTH[..., None])
    obs = rng.normal(size=(N, R, E, H + 1, OBS)).astype(np.float32)
    obs = np.take_along_axis(obs, seen[..., None], axis=3)
    action = np.where(INSIDE, rng.integers(0, 4, INSIDE.shape), 0).astype(np.int32)
    reward = np.where(INSIDE, rng.normal(size=INSIDE.shape), 0).astype(np.float32)
    return Episodes(*map(jnp.asarray, (obs, action, reward, LENGTH)))


SHORT = made()


def spoiled(episodes: Episodes = SHORT) -> Episodes:
    """The same episodes with nonsense in the padding."""
    happened = np.asarray(episodes.happened())
    seen = np.concatenate([np.ones_like(happened[..., :1]), happened], axis=-1)
    return replace(
        episodes,
        obs=jnp.where(seen[..., None], episodes.obs, 77.0),
        action=jnp.where(happened, episodes.action, 3),
        reward=jnp.where(happened, episodes.reward, -55.0),
    )


def assert_same(one, other) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def first(tree, *place):
    return jax.tree.map(lambda x: x[place], tree)


def coded_reward(task, step: Transition):
    return task + step.next_obs.sum()


@pytest.fixture(scope="module", params=["cells", "steps"])
def fit(request) -> FitBelief:
    decoder = StepDecoder(hidden=(8,), transitions=True, probes=4)
    return FitBelief(
        updates=2,
        rollouts_per_update=4,
        latent_size=2,
        hidden_size=4,
        state_size=4,
        reward_size=4,
        decoder=CellDecoder(hidden=(8,)) if request.param == "cells" else decoder,
    )


def test_what_happened_and_what_ended():
    np.testing.assert_array_equal(SHORT.happened(), INSIDE)
    ends = np.asarray(SHORT.ends())
    assert (ends.sum(-1) == (LENGTH < H)).all(), "a time limit is no end"
    assert ends[0, 0, 1, 1] and not ends[0, 0, 0].any()
    steps = SHORT.transitions()
    assert steps.valid.shape == steps.ended.shape == (N, R, E * H)
    plain = replace(SHORT, length=None).transitions()
    assert plain.valid is None and plain.ended is None


def test_batches_hold_no_padding_and_know_where_episodes_ended():
    own = first(SHORT, 0)
    draw = partial(sample_steps, batch_size=4_000, key=jr.key(0))
    steps = draw(own, 2)
    assert_same(steps, draw(first(spoiled(), 0), 2))
    np.testing.assert_array_equal(steps.ended, np.isin(steps.reward, _last_rewards()))
    _, counts = np.unique(steps.reward, return_counts=True)
    shares = [1 / (4 * n) for n in LENGTH[0, :2].reshape(-1) for _ in range(n)]
    np.testing.assert_allclose(np.sort(counts) / 4_000, np.sort(shares), atol=0.02)


def test_steps_ahead_stop_at_an_end_and_know_it():
    own = first(SHORT, 0)
    ahead = sample_steps(own, 2, 500, ahead=2, key=jr.key(0))
    one = sample_steps(own, 2, 500, key=jr.key(0))
    np.testing.assert_array_equal(ahead.obs, one.obs)
    assert (ahead.ended >= one.ended).all() and ahead.ended.sum() > one.ended.sum()
    short = np.asarray(ahead.ahead) == 1
    assert short.any() and (ahead.ended[short] == one.ended[short]).all()
    np.testing.assert_array_equal(ahead.next_obs[short], one.next_obs[short])


def _last_rewards() -> np.ndarray:
    """Of the two episodes that ended early in the first two rollouts of task 0."""
    return np.asarray(SHORT.reward)[0, [0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize("agent", [DQN(hidden=(8,)), SAC(hidden=(8,))], ids=str)
def test_nothing_follows_an_end(agent):
    """An ended step learns the same whatever its successor is; others do not."""
    boxed = isinstance(agent, SAC)
    spec = Spec(OBS, Box(2) if boxed else Discrete(4), H, E)
    keys = jr.split(jr.key(0), 6)
    action = jax.vmap(lambda k: spec.action.sample(key=k))(keys)
    rows = jr.normal(jr.key(1), (2, 6, OBS))
    state = agent.init(spec, key=jr.key(2))

    @eqx.filter_jit
    def error(next_obs, ended):
        batch = Transition(rows[0], action, jnp.ones(6), next_obs, None, ended)
        return agent.update(state, batch, key=jr.key(3))[1]["td_error"]

    ended, going_on = jnp.ones(6, bool), jnp.zeros(6, bool)
    assert error(rows[1], ended) == error(rows[1] + 1, ended)
    assert error(rows[1], going_on) != error(rows[1] + 1, going_on)
    np.testing.assert_allclose(error(rows[1], going_on), error(rows[1], None))


def test_beliefs_stay_over_padding(fit):
    model = fit.init_model(SPEC, key=jr.key(0))
    steps = first(SHORT, 0, 1).transitions()
    beliefs = model.encoder.filter(steps)
    assert_same(beliefs, model.encoder.filter(first(spoiled(), 0, 1).transitions()))
    for t in (2, 3, 4):
        np.testing.assert_array_equal(beliefs.mean[t + 1], beliefs.mean[2])
    kept = jax.tree.map(lambda x: x[np.asarray(steps.valid)], steps)
    without = model.encoder.filter(replace(kept, valid=None, ended=None))
    np.testing.assert_allclose(beliefs.mean[-1], without.mean[-1], atol=1e-6)
    hidden = model.encoder.start()
    for t in range(E * H):
        hidden = model.encoder.update(hidden, first(steps, t))
    np.testing.assert_allclose(
        model.encoder.belief(hidden).mean, beliefs.mean[-1], atol=1e-6
    )


@pytest.mark.parametrize("some", [0, 3])
def test_the_objective_does_not_see_padding(fit, some):
    model = fit.init_model(SPEC, key=jr.key(0))

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def loss(model, steps):
        sizes = {"decoded_steps": some, "decoded_beliefs": some}
        return negative_elbo(model, steps, kl_weight=0.1, **sizes, key=jr.key(1))

    for r in range(R):
        given = loss(model, first(SHORT, 0, r).transitions())
        assert_same(given, loss(model, first(spoiled(), 0, r).transitions()))


def test_padding_costs_nothing_and_gains_nothing(fit):
    """With hardly any noise in m, a padded rollout scores as its own steps alone."""
    model = fit.init_model(SPEC, key=jr.key(0))
    model = eqx.tree_at(
        lambda m: (m.encoder.logvar_head.weight, m.encoder.logvar_head.bias),
        model,
        replace_fn=lambda x: jnp.full_like(x, -30.0 if x.ndim == 1 else 0.0),
    )
    steps = first(SHORT, 0, 1).transitions()
    kept = jax.tree.map(lambda x: x[np.asarray(steps.valid)], steps)
    short = replace(kept, valid=None, ended=None)
    padded, _ = negative_elbo(model, steps, kl_weight=0.0, key=jr.key(1))
    alone, _ = negative_elbo(model, short, kl_weight=0.0, key=jr.key(1))
    np.testing.assert_allclose(padded, alone, rtol=1e-4)


def test_scales_and_probes_are_those_of_steps_that_happened(fit):
    states = [
        _init(fit, AsLogged(e), SPEC, 1, jr.key(0)) for e in (SHORT, spoiled(SHORT))
    ]
    assert_same(*states)
    like = jax.tree.structure(fit.like(SPEC, 1))
    assert jax.tree.structure(states[0].model) == like


def test_relabelled_padding_is_paid_nothing():
    again = relabel(coded_reward, jnp.asarray(2.0), first(spoiled(), 0, 0))
    np.testing.assert_array_equal(again.length, LENGTH[0, 0])
    assert (np.asarray(again.reward)[~INSIDE[0, 0]] == 0).all()
    assert (np.asarray(again.reward)[INSIDE[0, 0]] != 0).all()


def test_composite_rollouts_bring_their_lengths_along():
    tasks = jnp.arange(N, dtype=jnp.float32)
    own = replace(SHORT, reward=jnp.where(INSIDE, SHORT.reward, 0.0))
    drawn = Relabelled(tasks, own, coded_reward, RelabelRewards()).draw(
        40, key=jr.key(0)
    )
    obs, length = np.asarray(drawn.obs), np.asarray(drawn.length)
    assert len(np.unique(length)) == H
    for rollout, lengths in zip(obs, length, strict=True):
        for episode, count in zip(rollout, lengths, strict=True):
            same = (episode[count:] == episode[count]).all()
            assert same and (episode[count - 1] != episode[count]).any()


def test_steps_apart_are_steps_that_happened():
    tasks, apart = jnp.arange(N, dtype=jnp.float32), RelabelRewards(decode_apart=True)
    source = Relabelled(tasks, spoiled(), coded_reward, apart)
    steps = source.draw_to_decode(400, 5, key=jr.key(0)).apart
    assert steps is not None
    assert (steps.next_obs < 77).all()
    assert (steps.obs != steps.next_obs).any(-1).all()


def test_hyper_states_stand_in_a_row(fit):
    view = BeliefView(latest_reward=True)
    belief = LearnedBelief(fit.init_model(SPEC, key=jr.key(0)), view)
    for expected in (False, True):
        make = eqx.filter_jit(partial(relabel_states, expected_rewards=expected))
        for r in range(R):
            hyper = make(belief, first(SHORT, 0, r))
            assert_same(hyper, make(belief, first(spoiled(), 0, r)))
    hyper, rollout = relabel_states(belief, first(SHORT, 0, 1)), first(SHORT, 0, 1)
    steps = rollout.transitions()
    kept = np.asarray(steps.valid)
    count = kept.sum()
    np.testing.assert_array_equal(hyper.length, [count])
    np.testing.assert_array_equal(hyper.obs[0, :count, :OBS], steps.obs[kept])
    np.testing.assert_array_equal(hyper.reward[0, :count], steps.reward[kept])
    assert not np.any(hyper.reward[0, count:]) and not np.any(hyper.action[0, count:])
    np.testing.assert_array_equal(hyper.obs[0, count, :OBS], rollout.obs[1, H])
    features = np.asarray(belief.along(steps))
    np.testing.assert_allclose(hyper.obs[0, :count, OBS:], features[:-1][kept])
    np.testing.assert_allclose(hyper.obs[0, count, OBS:], features[-1])
    paid = np.asarray(steps.reward)[kept]
    np.testing.assert_array_equal(hyper.obs[0, : count + 1, -1], [0, *paid])
    memory = belief.start()
    for time in range(len(kept)):
        memory = belief.update(memory, jax.tree.map(lambda x, t=time: x[t], steps))
        np.testing.assert_array_equal(memory.reward, features[time + 1, -1])


def test_only_a_rollouts_own_end_ends_it(fit):
    """Rollout 0 ends early at last; rollout 1 ended early at first, and went on."""
    belief = LearnedBelief(fit.init_model(SPEC, key=jr.key(0)), BeliefView())
    make = jax.vmap(partial(relabel_states, belief))
    hyper = make(first(SHORT, 0, np.arange(2)))
    assert hyper.ended.tolist() == [[True], [False]]
    assert hyper.length.tolist() == [[H + 2], [H + 2]]
    steps = sample_steps(hyper, 2, 500, key=jr.key(0))
    last = np.asarray(SHORT.reward)[0, 0, 1, 1]
    np.testing.assert_array_equal(steps.ended, np.asarray(steps.reward) == last)
    seen = np.asarray(hyper.seen()).reshape(2, E * H + 1)
    assert (seen.sum(1) == H + 3).all() and seen[:, : H + 3].all()


def test_files_keep_lengths_and_old_files_have_none(tmp_path):
    write_episodes(tmp_path / "short.npz", SHORT)
    assert_same(read_episodes(tmp_path / "short.npz"), SHORT)
    whole = replace(SHORT, length=None)
    write_episodes(tmp_path / "whole.npz", whole)
    assert_same(read_episodes(tmp_path / "whole.npz"), whole)
    tasks = jnp.arange(N, dtype=jnp.float32)
    write_logs(tmp_path, TaskLogs(tasks, SHORT))
    assert_same(read_logs(tmp_path, tasks, None).episodes, SHORT)


def test_returns_ignore_padding():
    rollouts = jax.tree.map(lambda x: x[None], SHORT)
    again = jax.tree.map(lambda x: x[None], spoiled())
    assert_same(returns_per_episode(rollouts), returns_per_episode(again))
