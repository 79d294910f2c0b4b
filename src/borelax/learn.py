"""The one training loop: scan updates on the device, then look up on the host.

``scan_updates`` runs inside a compiled function. ``run_chunks`` calls such functions in
a row; between them it reports metrics, saves checkpoints and notices a stop. All
randomness is folded in from the update's number, so a resumed run repeats its bits.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from borelax.errors import NumericalError, StoppedError
from borelax.types import Episodes, Key, Metrics, Transition

State = TypeVar("State")
Batch = TypeVar("Batch")


def scan_updates(
    update: Callable[..., tuple[State, Metrics]],
    state: State,
    sample_batch: Callable[..., Batch],
    *,
    first: Int[Array, ""],
    num_updates: int,
    key: Key,
) -> tuple[State, Metrics]:
    """Apply ``num_updates`` updates; metrics are averaged over them."""

    def keys_of(number: Int[Array, ""]) -> Array:
        return jr.split(jr.fold_in(key, number))

    def one(state: State, keys: Array) -> tuple[State, Metrics]:
        return update(state, sample_batch(key=keys[0]), key=keys[1])

    keys = jax.vmap(keys_of)(first + jnp.arange(num_updates))  # cheaper at once
    state, metrics = jax.lax.scan(one, state, keys)
    return state, jax.tree.map(lambda x: x.mean(axis=0), metrics)


def sample_steps(
    episodes: Episodes,
    num_rollouts: Int[Array, ""] | int,
    batch_size: int,
    *,
    ahead: int = 1,
    key: Key,
) -> Transition:
    """Draw steps uniformly from the first ``num_rollouts`` rollouts of [R, E, …].

    Where episodes differ in length, the episode is drawn uniformly, then one of its own
    L steps: each of them with probability 1 / (episodes · L), and never padding.

    What follows a step is where ``ahead`` steps lead, or as many as its episode has.
    Rewards are taken as they stand: those of so many steps, summed before.
    """
    num_episodes, horizon = episodes.reward.shape[1:]
    index = jr.randint(key, (batch_size,), 0, num_rollouts * num_episodes * horizon)
    r, e, t = jnp.unravel_index(
        index, (*episodes.reward.shape[:1], num_episodes, horizon)
    )
    ended, length, ends = None, horizon, episodes.ends()
    if episodes.length is not None:
        length = episodes.length[r, e]
        t = jr.randint(jr.fold_in(key, 1), (batch_size,), 0, length)
    after = jnp.minimum(t + ahead, length)
    if ends is not None:
        ended = ends[r, e, after - 1]
    return Transition(
        obs=episodes.obs[r, e, t].astype(jnp.float32),
        action=episodes.action[r, e, t],
        reward=episodes.reward[r, e, t],
        next_obs=episodes.obs[r, e, after].astype(jnp.float32),
        ended=ended,
        ahead=None if ahead == 1 else after - t,
    )


def below(
    limit: int | Int[Array, "..."], chance: Float[Array, "*draws"]
) -> Int[Array, "*draws"]:
    """Whole numbers 0 … limit-1 from chances in [0, 1), for limits up to thousands.

    ``jr.randint`` draws twice for one number, and every draw takes long to compile.
    """
    return (limit * chance).astype(jnp.int32)


@eqx.filter_jit(donate="all-except-first")
def write_rollouts(
    new_and_row: tuple[Episodes, Int[Array, ""]], episodes: Episodes
) -> Episodes:
    """Write rollouts [N, r, …] over those of [N, R, …] from ``row`` on, in place."""
    new, row = new_and_row
    return jax.tree.map(
        lambda old, x: jax.lax.dynamic_update_slice_in_dim(old, x, row, axis=1),
        episodes,
        new,
    )


@eqx.filter_jit
def read_rollouts(episodes: Episodes, row: Int[Array, ""], count: int) -> Episodes:
    """Copy ``count`` rollouts of [N, R, …] from ``row`` on; near the end, the last."""
    return jax.tree.map(
        lambda x: jax.lax.dynamic_slice_in_dim(x, row, count, axis=1), episodes
    )


class Journal:
    """Where a phase reports to. This one forgets everything; see ``journal.py``."""

    def resume(self, state: State) -> tuple[State, int]:
        """The saved state and how many units it has done, or the given one and 0."""
        return state, 0

    def begin(self, total: int, done: int) -> None:
        """Work starts: ``done`` of ``total`` units are already there."""

    def record(self, done: int, metrics: dict[str, np.ndarray]) -> None:
        """Take the metrics of a chunk."""

    def save_due(self) -> bool:
        """Whether a checkpoint is wanted now."""
        return False

    def save(self, state: object, done: int) -> None:
        """Keep a checkpoint."""

    def finish(self, state: object) -> None:
        """All units are done: keep what of the state is part of the output."""

    def end(self) -> None:
        """Work has ended, one way or another."""


def run_chunks(
    advance: Callable[[State, int, int], tuple[State, Metrics]],
    state: State,
    *,
    total: int,
    per_chunk: int,
    journal: Journal,
) -> State:
    """Call ``advance(state, done, count)`` until ``total`` units are done.

    Raises ``NumericalError`` when a metric is not finite and ``StoppedError`` after
    saving when the user asked to stop.
    """
    state, done = journal.resume(state)
    journal.begin(total, done)
    try:
        with _stop_requests() as stop_requested:
            while done < total:
                count = min(per_chunk, total - done)
                state, metrics = advance(state, done, count)
                done += count
                values = {k: np.asarray(v) for k, v in metrics.items()}
                _refuse_non_finite(values, done)
                journal.record(done, values)
                if stop_requested.is_set():
                    journal.save(state, done)
                    raise StoppedError("Stopped; run the same command to continue.")
                if done < total and journal.save_due():
                    journal.save(state, done)
        journal.finish(state)
    finally:
        journal.end()
    return state


def _refuse_non_finite(metrics: dict[str, np.ndarray], done: int) -> None:
    for name, value in metrics.items():
        if not np.isfinite(value).all():
            raise NumericalError(
                f"{name} became NaN or infinite by update {done}. Lower the learning "
                "rate or look for extreme values in the logs."
            )


@contextmanager
def _stop_requests() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C or TERM into an event; a second one stops at once."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event  # only the main thread may handle signals
        return

    def note(number: int, frame: object) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
