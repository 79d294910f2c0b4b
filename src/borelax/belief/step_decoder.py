"""A Gaussian decoder for any step: reward, and next observation where tasks need it.

Unit variance, so that the log-likelihood is minus half the squared error. Each network
first reads the step, then adds m: reading is done once per step, however deep, and all
(T+1)·T pairs of belief and step only pay for the layers after the addition.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float

from borelax.agents.networks import MLP, Linear, Standardise, linear_layers
from borelax.belief.decoder import Latent
from borelax.errors import require_positive, require_widths
from borelax.types import Box, Discrete, Key, Spec, Transition


class SplitMLP(eqx.Module):
    """An MLP of (latent, step) that can read the step's part once for many latents."""

    latent_layer: Linear
    reader: MLP
    rest: MLP

    def __init__(
        self,
        latent_size: int,
        step_size: int,
        reader: tuple[int, ...],
        hidden: tuple[int, ...],
        output_size: int,
        *,
        key: Key,
    ):
        """``reader`` and ``hidden`` are the widths before and after m is added."""
        keys = jr.split(key, 3)
        sizes = [(latent_size, hidden[0])]
        (self.latent_layer,) = linear_layers(sizes, key=keys[0])
        self.reader = MLP((step_size, *reader, hidden[0]), key=keys[1])
        self.rest = MLP((*hidden, output_size), key=keys[2])

    def read_step(self, step: Float[Array, "step"]) -> Float[Array, "hidden"]:
        """The step's part of the layer in which m is added."""
        return self.reader(step)

    def __call__(
        self, latent: Latent, read: Float[Array, "hidden"]
    ) -> Float[Array, "outputs"]:
        """The output for a latent and a step that was read before."""
        return self.rest(jax.nn.relu(self.latent_layer(latent) + read))


class Read(eqx.Module):
    """A rollout as one head needs it: read steps, and what they should give."""

    steps: Float[Array, "T hidden"]
    targets: Float[Array, "T outputs"]
    valid: Bool[Array, "T"] | None = None
    """Which steps count; None: all."""


class RewardHead(eqx.Module):
    """p(r | m, s, a, s')."""

    network: SplitMLP

    def inputs(self, scale: "StepScale", step: Transition) -> Float[Array, "inputs"]:
        """Everything but the reward."""
        return jnp.concatenate([scale.before(step), scale.next_obs(step.next_obs)])

    def target(self, scale: "StepScale", step: Transition) -> Float[Array, "1"]:
        """The reward."""
        return step.reward[None]


class TransitionHead(eqx.Module):
    """p(s' - s | m, s, a), in units of the change's own deviation."""

    network: SplitMLP

    def inputs(self, scale: "StepScale", step: Transition) -> Float[Array, "inputs"]:
        """What is known before the step."""
        return scale.before(step)

    def target(self, scale: "StepScale", step: Transition) -> Float[Array, "obs"]:
        """How far the step went."""
        return scale.change(step.next_obs - step.obs)


class StepScale(eqx.Module):
    """Statistics of the data, by which steps are standardised."""

    obs: Standardise
    next_obs: Standardise
    change: Standardise
    action: Discrete | Box = eqx.field(static=True)

    @classmethod
    def identity(cls, spec: Spec) -> "StepScale":
        """Change nothing."""
        plain = Standardise.identity(spec.obs_size)
        return cls(plain, plain, plain, spec.action)

    def fitted_to(self, steps: Transition) -> "StepScale":
        """The statistics of steps [K]."""
        return StepScale(
            Standardise.of(steps.obs, steps.valid),
            Standardise.of(steps.next_obs, steps.valid),
            Standardise.of(steps.next_obs - steps.obs, steps.valid),
            self.action,
        )

    def before(self, step: Transition) -> Float[Array, "inputs"]:
        """State and action."""
        return jnp.concatenate([self.obs(step.obs), self.action.encode(step.action)])


class GaussianPerStep(eqx.Module):
    """Decodes a whole rollout with one or two heads of unit variance."""

    heads: tuple[RewardHead | TransitionHead, ...]
    scale: StepScale
    probes: Transition
    """Logged steps [K] at which the policy is shown what the belief predicts."""

    def summarise(self, steps: Transition) -> tuple[Read, ...]:
        """Read every step once."""
        return tuple(self._read(head, steps) for head in self.heads)

    def log_likelihood(
        self, latent: Latent, summary: tuple[Read, ...]
    ) -> Float[Array, ""]:
        """-½ Σ_t squared errors, over all heads."""
        errors = [
            _squared_error(_outputs(head, latent, read), read)
            for head, read in zip(self.heads, summary, strict=True)
        ]
        return -0.5 * jnp.stack(errors).sum()

    def predict(self, latent: Latent) -> Float[Array, "features"]:
        """What m predicts at the probes: the last head's outputs."""
        head = self.heads[-1]
        return _outputs(head, latent, self._read(head, self.probes)).reshape(-1)

    def expected_reward(self, latent: Latent, step: Transition) -> Float[Array, ""]:
        """The mean of the reward head."""
        head = self.heads[0]
        read = head.network.read_step(head.inputs(self.scale, step))
        return head.network(latent, read)[0]

    def fitted_to(self, steps: Transition) -> "GaussianPerStep":
        """This decoder with its scale and its probes taken from steps [K]."""
        count = self.probes.reward.shape[0]
        probes = jax.tree.map(lambda x: x[:count], _padding_last(steps))
        return GaussianPerStep(self.heads, self.scale.fitted_to(steps), probes)

    def _read(self, head: RewardHead | TransitionHead, steps: Transition) -> Read:
        inputs = jax.vmap(lambda step: head.inputs(self.scale, step))(steps)
        targets = jax.vmap(lambda step: head.target(self.scale, step))(steps)
        return Read(jax.vmap(head.network.read_step)(inputs), targets, steps.valid)


def _outputs(
    head: RewardHead | TransitionHead, latent: Latent, read: Read
) -> Float[Array, "T outputs"]:
    return jax.vmap(lambda step: head.network(latent, step))(read.steps)


def _squared_error(outputs: Float[Array, "T outputs"], read: Read) -> Float[Array, ""]:
    errors = jnp.square(outputs - read.targets)
    if read.valid is not None:
        errors = jnp.where(read.valid[:, None], errors, 0.0)
    return errors.sum()


def _padding_last(steps: Transition) -> Transition:
    """The same steps in order, those that pad an episode at the end."""
    if steps.valid is None:
        return steps
    order = jnp.argsort(~steps.valid, stable=True)
    plain = Transition(steps.obs, steps.action, steps.reward, steps.next_obs)
    return jax.tree.map(lambda x: x[order], plain)


@dataclass(frozen=True)
class StepDecoder:
    """Settings of ``GaussianPerStep``, for any observations and rewards."""

    hidden: tuple[int, ...] = (32, 32)
    """Units of each hidden layer that reads step and m together."""
    reader: tuple[int, ...] = ()
    """Units of layers that read the step alone, before: cheap, and they learn whatever
    is the same in all tasks, such as where a wall is."""
    transitions: bool = False
    """Decode the next observation too, where tasks differ in their transitions."""
    probes: int = 64
    """Logged steps at which the policy may be shown what the belief predicts."""

    def __post_init__(self) -> None:
        """Refuse decoders that decode nothing."""
        require_positive(self, "probes")
        require_widths(self, "hidden")
        if self.reader:
            require_widths(self, "reader")

    def build(self, spec: Spec, latent_size: int, *, key: Key) -> GaussianPerStep:
        """Fresh weights; scale and probes wait for data."""
        key_reward, key_transition = jr.split(key)
        before = spec.obs_size + spec.action.size

        def network(inputs: int, outputs: int, key: Key) -> SplitMLP:
            widths = (self.reader, self.hidden)
            return SplitMLP(latent_size, inputs, *widths, outputs, key=key)

        heads: list[RewardHead | TransitionHead]
        heads = [RewardHead(network(before + spec.obs_size, 1, key_reward))]
        if self.transitions:
            heads.append(TransitionHead(network(before, spec.obs_size, key_transition)))
        obs = jnp.zeros((self.probes, spec.obs_size))
        action = jnp.zeros((self.probes,), jnp.int32)
        if isinstance(spec.action, Box):
            action = jnp.zeros((self.probes, spec.action.size))
        probes = Transition(obs, action, jnp.zeros(self.probes), obs)
        return GaussianPerStep(tuple(heads), StepScale.identity(spec), probes)
