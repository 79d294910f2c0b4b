"""Does a belief on Semi-circle remember where it found nothing?

    python benchmarks/belief_memory.py runs/semicircle-quick-rewards

Of histories without a reward: what the belief expects, on average, where it has been on
the arc and elsewhere, beside the exact posterior, and how the two correlate. First on
rollouts like those that it learned from, then along the best known search.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from borelax.belief.elbo import BeliefModel
from borelax.evaluate.evaluate import Evaluate
from borelax.pipeline import Pipeline
from borelax.progress import ProgressDisplay
from borelax.report.trained import of_seed
from borelax.run_folder import read_experiment
from borelax.tasks.family import draw_tasks
from borelax.types import Transition

ANGLES = np.radians(np.arange(3, 178, 3.0))
PLACES = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
"""Where on the arc the belief is asked."""


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

    def expected(steps: Transition):
        latent = model.encoder.filter(steps).mean[-1]
        at = lambda place: Transition(place, jnp.zeros(2), jnp.zeros(()), place)  # noqa: E731
        reward = model.decoder.expected_reward
        return jax.vmap(lambda place: reward(latent, at(place)))(jnp.asarray(PLACES))

    learned = np.asarray(jax.vmap(expected)(steps))
    seen = near(np.asarray(steps.next_obs), radius).any(axis=1)
    posterior = ~seen / np.maximum((~seen).sum(axis=1, keepdims=True), 1)
    exact = posterior @ near(PLACES, radius).T
    pairs = zip(learned, exact, strict=True)
    return {
        "histories": len(learned),
        "seen": seen.mean(),
        "learned_seen": learned[seen].mean(),
        "learned_elsewhere": learned[~seen].mean(),
        "exact_seen": exact[seen].mean(),
        "exact_elsewhere": exact[~seen].mean(),
        "correlation": float(np.nanmean([np.corrcoef(a, b)[0, 1] for a, b in pairs])),
    }


def measure(folder: Path) -> None:
    """Print both tables of a run, a line for each seed."""
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
        for name, steps in histories.items():
            row = compare(model, steps, radius)
            figures = ", ".join(f"{k} {v:.2f}" for k, v in row.items())
            print(f"{folder.name}, seed {seed}, {name}: {figures}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+")
    for run in parser.parse_args().runs:
        measure(run)
