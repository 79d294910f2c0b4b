"""The recurrent encoder q(m | h_:t): from steps to a Gaussian belief (appendix C)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float

from borelax.agents.networks import Linear, Standardise, linear_layers
from borelax.types import Box, Discrete, Key, Spec, Transition

Hidden = Float[Array, "hidden"]
"""All that is kept of a history: the state of the GRU, then the notes."""
State = Float[Array, "state"]
"""The GRU's."""

STEPS_PER_TURN = 6
"""Steps of the GRU per turn of the compiled loop: a GPU waits at every turn."""


class Gaussian(eqx.Module):
    """A diagonal Gaussian; ``logvar`` is the log of the variance."""

    mean: Float[Array, "*batch latent"]
    logvar: Float[Array, "*batch latent"]

    @property
    def std(self) -> Float[Array, "*batch latent"]:
        """Standard deviation."""
        return jnp.exp(0.5 * self.logvar)

    def sample(self, *, key: Key) -> Float[Array, "*batch latent"]:
        """One reparametrised draw."""
        return self.mean + self.std * jr.normal(key, self.mean.shape)


class GRU(eqx.Module):
    """A gated recurrent unit whose input part can be computed for all steps at once."""

    inputs: Linear
    """Input → reset, update and candidate gates."""
    recurrent: Linear
    """Hidden → the same three gates."""

    def __init__(self, input_size: int, hidden_size: int, *, memory: int, key: Key):
        """``memory`` is the number of steps that units should be able to bridge.

        The update gate's bias starts at log U(1, memory): unit by unit, time constants
        spread over the whole rollout (Tallec and Ollivier 2018), so that what was seen
        early is still there late, from the first update on. Input weights get unit
        gain, so that the input moves the gates from the first update on, too.
        """
        key_layers, key_bias = jr.split(key)
        gates = 3 * hidden_size
        layer, self.recurrent = linear_layers(
            [(input_size, gates), (hidden_size, gates)], key=key_layers
        )
        times = jr.uniform(key_bias, (hidden_size,), minval=1.0, maxval=memory)
        zeros = jnp.zeros(hidden_size)
        bias = jnp.concatenate([zeros, jnp.log(times), zeros])
        self.inputs = eqx.tree_at(
            lambda x: (x.weight, x.bias), layer, (3**0.5 * layer.weight, bias)
        )

    def __call__(self, state: State, gates: Float[Array, "gates"]) -> State:
        """One step, given the input's part of the gates."""
        reset_x, update_x, new_x = jnp.split(gates, 3)
        reset_h, update_h, new_h = jnp.split(self.recurrent(state), 3)
        reset = jax.nn.sigmoid(reset_x + reset_h)
        update = jax.nn.sigmoid(update_x + update_h)
        candidate = jnp.tanh(new_x + reset * new_h)
        return candidate + update * (state - candidate)


class Notes(eqx.Module):
    """Features of steps of which the largest values so far are kept.

    What steps say of the task depends neither on their order nor on how often they
    came. A largest value does not, either, and it is kept for as long as it is needed:
    a recurrent unit must learn both.
    """

    take: Linear
    """Step → its own features."""
    read: Linear
    """Largest features → what the heads see of them."""

    def __init__(self, input_size: int, notes_size: int, *, key: Key):
        """As many are read as are taken."""
        sizes = [(input_size, notes_size), (notes_size, notes_size)]
        self.take, self.read = linear_layers(sizes, key=key)

    def of_step(self, told: Float[Array, "told"]) -> Float[Array, "notes"]:
        """Never negative, so that nothing is noted before the first step."""
        return jax.nn.relu(self.take(told))

    def __call__(self, kept: Float[Array, "notes"]) -> Float[Array, "notes"]:
        """What the heads see."""
        return jax.nn.relu(self.read(kept))


class Encoder(eqx.Module):
    """Reads (a_t, r_{t+1}, s_{t+1}) one step at a time. For one rollout."""

    scale_obs: Standardise
    """Statistics of the data: rare inputs, such as one cell of many, enter as large as
    common ones."""
    scale_reward: Standardise
    state_layer: Linear
    action_layer: Linear | None
    reward_layer: Linear
    gru: GRU
    notes: Notes | None
    """A memory beside the GRU's."""
    mean_head: Linear
    logvar_head: Linear
    action: Discrete | Box = eqx.field(static=True)

    def __init__(
        self,
        spec: Spec,
        *,
        latent_size: int,
        hidden_size: int,
        state_size: int,
        action_size: int,
        reward_size: int,
        notes_size: int = 0,
        key: Key,
    ):
        """``action_size`` 0: the action enters as it is; ``notes_size`` 0: no notes."""
        key_layers, key_gru, key_notes = jr.split(key, 3)
        raw = spec.action.size
        self.action = spec.action
        self.scale_obs = Standardise.identity(spec.obs_size)
        self.scale_reward = Standardise.identity(1)
        self.state_layer, self.reward_layer, self.mean_head, self.logvar_head, *more = (
            linear_layers(
                [
                    (spec.obs_size, state_size),
                    (1, reward_size),
                    (hidden_size + notes_size, latent_size),
                    (hidden_size + notes_size, latent_size),
                    *([(raw, action_size)] if action_size else []),
                ],
                key=key_layers,
            )
        )
        self.action_layer = more[0] if more else None
        width = state_size + (action_size or raw) + reward_size
        memory = spec.horizon * spec.episodes
        self.gru = GRU(width, hidden_size, memory=memory, key=key_gru)
        self.notes = None
        if notes_size:
            self.notes = Notes(width, notes_size, key=key_notes)

    def scaled_to(self, steps: Transition) -> "Encoder":
        """This encoder with its inputs standardised by the given steps [B, T]."""
        valid = None if steps.valid is None else steps.valid.reshape(-1)
        rows = steps.next_obs.reshape(-1, steps.next_obs.shape[-1])
        obs = Standardise.of(rows, valid)
        reward = Standardise.of(steps.reward.reshape(-1, 1), valid)
        return eqx.tree_at(lambda e: (e.scale_obs, e.scale_reward), self, (obs, reward))

    def start(self) -> Hidden:
        """The empty history."""
        return jnp.zeros(self.mean_head.weight.shape[0])  # as many notes as are read

    def update(self, hidden: Hidden, step: Transition) -> Hidden:
        """The history with one more step; the same one if the step is padding."""
        told = self._told(step)
        state, kept = self._parts(hidden)
        state = self._advance(state, self.gru.inputs(told), step.valid)
        return jnp.concatenate([state, jnp.maximum(kept, self._noted(told, step))])

    def belief(self, hidden: Hidden) -> Gaussian:
        """q(m | h): the heads applied to the hidden state."""
        if self.notes is not None:
            state, kept = self._parts(hidden)
            hidden = jnp.concatenate([state, self.notes(kept)])
        return Gaussian(self.mean_head(hidden), self.logvar_head(hidden))

    def filter(self, steps: Transition) -> Gaussian:
        """Beliefs along a rollout of T steps: [T+1], the prior first."""
        start = self.start()
        told = jax.vmap(self._told)(steps)
        gates = jax.vmap(self.gru.inputs)(told)

        def advance(state: State, inputs: tuple):
            state = self._advance(state, *inputs)
            return state, state

        _, states = jax.lax.scan(
            advance,
            self._parts(start)[0],
            (gates, steps.valid),
            unroll=STEPS_PER_TURN,
        )
        kept = jax.lax.cummax(jax.vmap(self._noted)(told, steps))
        hiddens = jnp.concatenate([states, kept], axis=1)
        return jax.vmap(self.belief)(jnp.concatenate([start[None], hiddens]))

    def _parts(self, hidden: Hidden) -> tuple[State, Float[Array, "notes"]]:
        """The GRU's state and the notes."""
        size = self.gru.recurrent.weight.shape[0]
        return hidden[:size], hidden[size:]

    def _advance(
        self,
        state: State,
        gates: Float[Array, "gates"],
        valid: Bool[Array, ""] | None,
    ) -> State:
        after = self.gru(state, gates)
        return after if valid is None else jnp.where(valid, after, state)

    def _noted(
        self, told: Float[Array, "told"], step: Transition
    ) -> Float[Array, "notes"]:
        """A step's notes; none of padding."""
        if self.notes is None:
            return jnp.zeros(0)
        notes = self.notes.of_step(told)
        return notes if step.valid is None else jnp.where(step.valid, notes, 0.0)

    def _told(self, step: Transition) -> Float[Array, "told"]:
        """Everything that is read of a step, each part through its own layer."""
        state = jax.nn.relu(self.state_layer(self.scale_obs(step.next_obs)))
        reward = jax.nn.relu(self.reward_layer(self.scale_reward(step.reward[None])))
        action = self.action.encode(step.action)
        if self.action_layer is not None:
            action = jax.nn.relu(self.action_layer(action))
        return jnp.concatenate([state, action, reward])
