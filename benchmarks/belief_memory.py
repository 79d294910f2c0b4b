"""Does a belief on Semi-circle remember where it found nothing?

    python benchmarks/belief_memory.py runs/semicircle-quick-rewards

Of histories without a reward: what the belief expects, on average, where it has been on
the arc and elsewhere, beside the exact posterior, and how the two correlate. First on
rollouts like those that it learned from, then along the best known search. Last, step
by step in the tests of all runs that were named: the correlation, and how often the
place that a belief expects most of has been ruled out already.
"""

import argparse
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from borelax.belief.elbo import BeliefModel
from borelax.evaluate.evaluate import Evaluate
from borelax.pipeline import Pipeline
from borelax.progress import ProgressDisplay, Quiet
from borelax.report.trained import of_seed
from borelax.run_folder import read_experiment
from borelax.tasks.family import draw_tasks
from borelax.types import Transition

ANGLES = np.radians(np.arange(3, 178, 3.0))
PLACES = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
"""Where on the arc the belief is asked."""
STEPS = ((0, 20), (20, 40), (40, 60), (60, 90), (90, 120))
"""Of a rollout that has found nothing yet."""


def near(points: np.ndarray, radius: float) -> np.ndarray:
    """Which places lie within the goal's radius of each of points [..., 2]."""
    away = np.linalg.norm(points[..., None, :] - PLACES, axis=-1)
    return away <= radius


def fruitless(steps: Transition, length: int, most: int) -> Transition:
    """The beginnings of rollouts [B, T] in which nothing was found by then."""
    nothing = np.asarray(steps.reward[:, :length]).sum(axis=1) == 0
    chosen = np.flatnonzero(nothing)[:most]
    return jax.tree.map(lambda x: x[chosen, :length], steps)


def compare(model: BeliefModel, steps: Transition, radius: float) -> dict[str, float]:
    """What a model expects after histories [B, T] without a reward."""

    learned = expected(model, steps)[:, -1]
    seen = near(np.asarray(steps.next_obs), radius).any(axis=1)
    exact = exactly(seen, radius)
    return {
        "histories": len(learned),
        "seen": seen.mean(),
        "learned_seen": learned[seen].mean(),
        "learned_elsewhere": learned[~seen].mean(),
        "exact_seen": exact[seen].mean(),
        "exact_elsewhere": exact[~seen].mean(),
        "correlation": correlation(learned, exact),
    }


@eqx.filter_jit
def _expected(model: BeliefModel, steps: Transition):
    def at(place) -> Transition:
        return Transition(place, jnp.zeros(2), jnp.zeros(()), place)

    def of_latent(latent):
        reward = model.decoder.expected_reward
        return jax.vmap(lambda place: reward(latent, at(place)))(jnp.asarray(PLACES))

    return jax.vmap(of_latent)(model.encoder.filter(steps).mean[1:])


def expected(model: BeliefModel, steps: Transition) -> np.ndarray:
    """What a model expects at each place after each step of histories [B, T]."""
    rows = (jax.tree.map(lambda x, i=i: x[i], steps) for i in range(len(steps.reward)))
    return np.stack([np.asarray(_expected(model, row)) for row in rows])


def exactly(seen: np.ndarray, radius: float) -> np.ndarray:
    """What the posterior expects, given the places seen in vain [..., places]."""
    posterior = ~seen / np.maximum((~seen).sum(axis=-1, keepdims=True), 1)
    return posterior @ near(PLACES, radius).T.astype(float)


def correlation(learned: np.ndarray, exact: np.ndarray) -> float:
    """Over the arc, mean of all rows."""
    pairs = zip(learned, exact, strict=True)
    return float(np.nanmean([np.corrcoef(a, b)[0, 1] for a, b in pairs]))


def by_step(model: BeliefModel, steps: Transition, radius: float) -> dict[str, str]:
    """Correlation and best guesses, while histories [B, T] have found nothing."""
    learned = expected(model, steps)
    seen = near(np.asarray(steps.next_obs), radius)
    seen = np.logical_or.accumulate(seen, axis=1)
    exact = exactly(seen, radius)
    vain = np.cumsum(np.asarray(steps.reward) > 0, axis=1) == 0
    some = vain & (seen.sum(-1) > 3) & ((~seen).sum(-1) > 3)  # else all are alike
    rows = {}
    for first, last in STEPS:
        here = np.zeros_like(some)
        here[:, first:last] = some[:, first:last]
        if here.any():
            guess = learned[here].argmax(axis=1)
            ruled_out = seen[here][np.arange(len(guess)), guess].mean()
            found = correlation(learned[here][::7], exact[here][::7])  # enough of them
            rows[f"{first}-{last}"] = f"{found:.2f} ({ruled_out:.0%} ruled out)"
    return rows


def tested(folders: list[Path], tasks: int = 250) -> Transition:
    """Rollouts of all seeds of these runs in their first test tasks, pooled."""
    made = []
    for folder in folders:
        pipeline = Pipeline(read_experiment(folder), folder, Quiet())
        some = jax.tree.map(lambda x: x[:, :tasks, 0], pipeline.rollouts)
        made.append(jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), some))
    return jax.tree.map(lambda *x: jnp.concatenate(x), *made).transitions()


def measure(folder: Path, rollouts: Transition) -> None:
    """Print all tables of a run, a line for each seed."""
    experiment = read_experiment(folder)
    pipeline = Pipeline(experiment, folder, ProgressDisplay())
    family = experiment.family
    pieces = pipeline.source.for_belief().draw(1_000, key=jr.key(0)).transitions()
    tasks = draw_tasks(family, 200, key=jr.key(1))
    search = Evaluate(num_tasks=200)(
        pipeline.simulator, tasks, pipeline.oracle.policy(), key=jr.key(2)
    )
    searched = jax.tree.map(lambda x: x[0, :, 0], search).transitions()
    half, radius = family.spec.horizon, family.goal_radius
    found = np.asarray(searched.reward > 0).argmax(axis=1)
    histories = {
        "as it learned": fruitless(pieces, half, 100),
        "a search, three quarters done": fruitless(
            searched, int(np.quantile(found, 0.75)), 1
        ),
    }
    for seed in range(experiment.num_seeds):
        model = of_seed(pipeline.model, seed)
        steps = by_step(model, rollouts, radius).items()
        print(f"{folder.name}, seed {seed}, by step:", *(f"{k} {v}" for k, v in steps))
        for name, steps in histories.items():
            row = compare(model, steps, radius)
            figures = ", ".join(f"{k} {v:.2f}" for k, v in row.items())
            print(f"{folder.name}, seed {seed}, {name}: {figures}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+")
    runs = parser.parse_args().runs
    rollouts = tested(runs)
    for run in runs:
        measure(run, rollouts)
