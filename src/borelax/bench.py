"""How fast each phase is, and how near to what the machine can do.

In: an experiment. Out: for each phase its updates (or steps) per second, the floating
point operations of one as XLA counts them, and the rate of a plain matrix product of
the phase's main shape, timed in the same run. The logs are those of random policies:
speed does not depend on what is in them.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.extend
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array

from borelax.agents.dqn import DQN
from borelax.agents.sac import SAC
from borelax.belief.view import LearnedBelief
from borelax.experiment import Experiment
from borelax.learn import Journal
from borelax.meta.policy import BeliefPolicy
from borelax.progress import ProgressDisplay
from borelax.run_folder import environment
from borelax.simulate.of_family import simulator_of
from borelax.simulate.simulator import host_device
from borelax.tasks.family import draw_tasks, name_of
from borelax.types import Spec, Transition

CHUNKS = 3
"""Chunks of each phase that are timed, after one that also compiles."""
PRODUCTS = 64
"""Matrix products in a row per timing: starting a program should cost nothing."""


@dataclass(frozen=True)
class Speed:
    """What one phase reaches."""

    phase: str
    unit: str
    """What is counted: updates, or steps of the environment."""
    per_second: float
    """Over all tasks or seeds together."""
    flops: float
    """Floating point operations of one, as XLA counts them."""
    achieved: float
    """FLOP/s of the phase."""
    product: tuple[int, ...]
    """The phase's main matrix product: how many at once, rows, inner, columns."""
    matmul: float
    """FLOP/s of that product alone."""
    ratio: float
    """Achieved / matmul."""


def bench(experiment: Experiment, display: ProgressDisplay) -> dict[str, Any]:
    """Time every phase; what ``borelax bench`` writes."""
    timed = Bench(experiment)
    phases = (timed.collect, timed.belief, timed.meta, timed.evaluate)
    speeds = []
    display.begin("bench", len(phases), 0)
    try:
        for number, phase in enumerate(phases, start=1):
            speeds.append(phase())
            display.update(number, lambda: f"{speeds[-1].phase} timed")
    finally:
        display.end()
    return {
        "domain": name_of(experiment.family),
        "preset": experiment.preset,
        "environment": environment(),
        "phases": [asdict(speed) for speed in speeds],
    }


class Bench:
    """The phases of an experiment, each shortened and timed in turn."""

    def __init__(self, experiment: Experiment):
        """Nothing runs yet."""
        self.experiment = experiment
        self.simulator = simulator_of(experiment.family)
        self.spec = experiment.family.spec

    def collect(self) -> Speed:
        """Phase 1: acting and learning, N agents at once; counted in updates."""
        collect = replace(self.experiment.collect, iterations=CHUNKS + 1)
        tasks = draw_tasks(self.experiment.family, collect.num_tasks, key=jr.key(0))
        clock = Clock()
        logs = collect(self.simulator, tasks, key=jr.key(1), journal=clock)
        self.source = self.experiment.relabel(
            logs, self.simulator, start=collect.start, key=jr.key(2)
        )
        per_round = collect.num_tasks * collect.updates_per_iteration
        agent, rows = collect.agent, collect.agent.batch_size
        flops = _update_flops(agent, self.spec)
        product = (collect.num_tasks, rows, *_middle(agent.hidden))
        rate = per_round / clock.seconds_per_chunk()
        return _speed("collect", rate, flops, product)

    def belief(self) -> Speed:
        """Phase 3: drawing, encoding and decoding, S models at once."""
        fit, seeds = self.experiment.belief, self.experiment.num_seeds
        source = self.source.for_belief()
        chunks = (CHUNKS + 1) * fit.updates_per_chunk
        clock = Clock()
        self.model = replace(fit, updates=chunks)(
            source, self.spec, num_seeds=seeds, key=jr.key(3), journal=clock
        )
        batch = fit.draw(source, key=jr.key(4))
        state = fit.init_state(_first(self.model))
        flops = count_flops(partial(fit.update, key=jr.key(5)), state, batch)
        hidden = fit.hidden_size
        product = (seeds, fit.rollouts_per_update, hidden, 3 * hidden)
        rate = seeds * fit.updates_per_chunk / clock.seconds_per_chunk()
        return _speed("belief", rate, flops, product)

    def meta(self) -> Speed:
        """Phase 4: renewing the data and learning from it, S agents at once."""
        fit, seeds = self.experiment.meta, self.experiment.num_seeds
        beliefs = LearnedBelief(self.model, fit.view)
        chunks = (CHUNKS + 1) * fit.updates_per_part
        clock = Clock()
        state = replace(fit, updates=chunks)(
            self.source, beliefs, self.spec, key=jr.key(7), journal=clock
        )
        self.policies = BeliefPolicy(beliefs, fit.agent, fit.agent.acting(state))
        belief = _first(beliefs)
        features = belief.features(belief.start()).shape[0]
        spec = replace(self.spec, obs_size=self.spec.obs_size + features)
        product = (seeds, fit.agent.batch_size, *_middle(fit.agent.hidden))
        flops = _update_flops(fit.agent, spec)
        rate = seeds * fit.updates_per_part / clock.seconds_per_chunk()
        return _speed("meta", rate, flops, product)

    def evaluate(self) -> Speed:
        """Phase 5: the meta-agents in their test tasks; counted in steps."""
        evaluate, seeds = self.experiment.evaluate, self.experiment.num_seeds
        tasks = draw_tasks(self.experiment.family, evaluate.num_tasks, key=jr.key(8))

        def run(policies: BeliefPolicy) -> Any:
            return evaluate(self.simulator, tasks, policies, key=jr.key(9))

        seconds, rollouts = _best_time(run, self.policies)
        policy = _first(self.policies)
        step = jax.tree.map(lambda x: x[0, 0, 0, 0], rollouts.transitions())
        flops = count_flops(_one_step, policy, policy.start(), step)
        rows = evaluate.num_tasks * evaluate.repeats
        product = (seeds, rows, *_middle(self.experiment.meta.agent.hidden))
        rate = rollouts.reward.size / seconds
        return _speed("evaluate", rate, flops, product, unit="steps")


class Clock(Journal):
    """Notes when chunks end. The first one compiles, so it is not counted."""

    def __init__(self) -> None:
        """Nothing noted."""
        self.ends: list[float] = []

    def record(self, done: int, metrics: dict[str, Any]) -> None:
        """A chunk has ended."""
        self.ends.append(time.perf_counter())

    def seconds_per_chunk(self) -> float:
        """The shortest: others may have shared the machine."""
        return min(after - before for before, after in pairwise(self.ends))


def count_flops(function: Callable, *args: Any) -> float:
    """Floating point operations of one call, as XLA counts them.

    XLA counts the body of a loop once, however often it runs. So scans are counted
    here: each body by itself, times its turns.
    """
    arrays, static = eqx.partition(args, eqx.is_array)

    def of_arrays(arrays: Any) -> Any:
        return eqx.filter(function(*eqx.combine(arrays, static)), eqx.is_array)

    return _jaxpr_flops(jax.make_jaxpr(of_arrays)(arrays))


def _jaxpr_flops(closed: Any) -> float:
    total = _xla_flops(closed)
    for body, length in _scans(closed.jaxpr):
        total += length * _jaxpr_flops(body) - _xla_flops(body)
    return total


def _xla_flops(closed: Any) -> float:
    with jax.default_device(host_device()):  # GPUs do not count
        lowered = jax.jit(jax.extend.core.jaxpr_as_fun(closed)).lower(*closed.in_avals)
        return (lowered.cost_analysis() or {}).get("flops", 0.0)


def _scans(jaxpr: Any) -> Iterator[tuple[Any, int]]:
    """Bodies and lengths of the scans of a program, not those inside of scans."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan":
            yield equation.params["jaxpr"], equation.params["length"]
            continue
        for value in equation.params.values():
            if isinstance(value, jax.extend.core.ClosedJaxpr):
                yield from _scans(value.jaxpr)


def matmul_rate(product: tuple[int, ...]) -> float:
    """FLOP/s of a plain matrix product (how many at once, rows, inner, columns)."""
    count, rows, inner, columns = product
    left = jr.normal(jr.key(0), (count, rows, inner))
    right = jr.normal(jr.key(1), (count, inner, columns))

    seconds, _ = _best_time(partial(_products, left), right)
    return PRODUCTS * 2.0 * count * rows * inner * columns / seconds


@jax.jit
def _products(left: Array, right: Array) -> Array:
    def one(left: Array, _: None) -> tuple[Array, None]:
        out = jnp.einsum("nri,nic->nrc", left, right)
        return left + 1e-9 * out[..., :1], None  # each waits for the one before

    return jax.lax.scan(one, left, length=PRODUCTS)[0]


def _speed(
    phase: str,
    per_second: float,
    flops: float,
    product: tuple[int, ...],
    unit: str = "updates",
) -> Speed:
    matmul = matmul_rate(product)
    achieved = per_second * flops
    ratio = achieved / matmul
    return Speed(phase, unit, per_second, flops, achieved, product, matmul, ratio)


def _best_time(run: Callable[[Any], Any], argument: Any) -> tuple[float, Any]:
    """The shortest of a few calls, after one that compiles; and what it gave."""
    result = jax.block_until_ready(run(argument))
    times = []
    for _ in range(CHUNKS):
        started = time.perf_counter()
        result = jax.block_until_ready(run(argument))
        times.append(time.perf_counter() - started)
    return min(times), result


def _update_flops(agent: DQN | SAC, spec: Spec) -> float:
    """Of one agent's update."""
    state = agent.init(spec, key=jr.key(0))
    obs = jnp.zeros((agent.batch_size, spec.obs_size))
    action = jax.vmap(lambda k: spec.action.sample(key=k))(
        jr.split(jr.key(1), agent.batch_size)
    )
    batch = Transition(obs, action, jnp.zeros(agent.batch_size), obs)
    return count_flops(partial(agent.update, key=jr.key(2)), state, batch)


def _one_step(policy: BeliefPolicy, memory: Any, step: Transition) -> Any:
    """What a meta-agent computes per step: an action, and a new belief."""
    action = policy.act(memory, step.obs, key=jr.key(0))
    return action, policy.remember(memory, step)


def _middle(hidden: tuple[int, ...]) -> tuple[int, int]:
    """The largest product of a network: between its first two hidden layers."""
    return hidden[0], hidden[min(1, len(hidden) - 1)]


def _first(tree: Any) -> Any:
    """One seed of a pytree [S, …]."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda x: x[0], arrays), rest)
