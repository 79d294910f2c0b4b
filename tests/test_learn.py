"""The one training loop: the same as a plain loop, stoppable, and resumable."""

import os
import signal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from borelax.errors import NumericalError, StoppedError
from borelax.learn import Journal, below, run_chunks, sample_steps, scan_updates
from borelax.types import Episodes


class InMemory(Journal):
    """Keeps what it is told, and saves after every chunk if asked to."""

    def __init__(self, saves: bool = False):
        self.saves, self.kept, self.calls = saves, None, []

    def resume(self, state):
        return (state, 0) if self.kept is None else self.kept

    def begin(self, total, done):
        self.calls.append(("begin", total, done))

    def record(self, done, metrics):
        assert all(isinstance(value, np.ndarray) for value in metrics.values())
        self.calls.append(("record", done))

    def save_due(self):
        return self.saves

    def save(self, state, done):
        self.calls.append(("save", done))
        self.kept = jax.tree.map(np.asarray, state), done

    def end(self):
        self.calls.append(("end",))


def draw(*, key):
    return jr.normal(key, (3,))


def shrink(state, batch, *, key):
    """An update that depends on the state, the batch and its own key."""
    state = 0.5 * state + batch + jr.uniform(key, (3,))
    return state, {"size": jnp.abs(state).max(), "first": state[0]}


@eqx.filter_jit
def learn(state, first, count: int):
    return scan_updates(
        shrink, state, draw, first=first, num_updates=count, key=jr.key(4)
    )


def advance(state, done: int, count: int):
    return learn(state, jnp.asarray(done), count)


def run(state=None, journal=None, advance=advance):
    return run_chunks(
        advance,
        jnp.ones(3) if state is None else state,
        total=7,
        per_chunk=2,
        journal=journal or Journal(),
    )


def test_scan_equals_a_loop() -> None:
    state, seen = jnp.ones(3), []
    for number in range(5, 9):
        key_batch, key_update = jr.split(jr.fold_in(jr.key(4), number))
        state, metrics = shrink(state, draw(key=key_batch), key=key_update)
        seen.append(metrics)
    scanned, averaged = learn(jnp.ones(3), jnp.asarray(5), 4)
    np.testing.assert_allclose(scanned, state, rtol=1e-6)
    for name in ("size", "first"):
        mean = np.mean([float(metrics[name]) for metrics in seen])
        np.testing.assert_allclose(averaged[name], mean, rtol=1e-6)


def coded_episodes() -> Episodes:
    """Each number says where it is from: obs are (r, e, t), the rest 100r + 10e + t."""
    r, e, t = np.mgrid[:4, :2, :4]
    code = jnp.asarray(100 * r + 10 * e + t)[..., :-1]
    obs = jnp.asarray(np.stack([r, e, t], -1), jnp.uint8)
    return Episodes(obs, code, code.astype(jnp.float32))


@given(limit=st.integers(1, 100_000))
def test_below_never_reaches_its_limit(limit: int) -> None:
    last = jnp.float32(1 - 2**-23)  # the largest number that jr.uniform gives
    chance = jnp.stack([jnp.float32(0), last])
    assert below(limit, chance).tolist() == [0, limit - 1]


def test_below_gives_all_numbers_equally_often() -> None:
    counts = np.bincount(below(7, jr.uniform(jr.key(0), (70_000,))))
    assert counts.shape == (7,)
    assert abs(counts - 10_000).max() < 5 * np.sqrt(10_000)


@pytest.mark.parametrize("num_rollouts", [2, jnp.asarray(2)], ids=["int", "array"])
def test_sampled_steps_are_uniform_and_whole(num_rollouts) -> None:
    steps = sample_steps(coded_episodes(), num_rollouts, 6_000, key=jr.key(0))
    obs = np.asarray(steps.obs)
    assert steps.obs.dtype == steps.next_obs.dtype == jnp.float32
    np.testing.assert_array_equal(obs @ np.float32([100, 10, 1]), steps.action)
    np.testing.assert_array_equal(steps.reward, steps.action)
    ahead = np.broadcast_to(np.float32([0, 0, 1]), obs.shape)
    np.testing.assert_array_equal(steps.next_obs - steps.obs, ahead)
    codes, counts = np.unique(steps.action, return_counts=True)
    expected = [100 * r + 10 * e + t for r in (0, 1) for e in (0, 1) for t in (0, 1, 2)]
    assert codes.tolist() == expected
    assert abs(counts - 500).max() < 5 * np.sqrt(500)


def test_steps_ahead_lead_no_further_than_their_episode() -> None:
    one, two = (
        sample_steps(coded_episodes(), 4, 500, ahead=n, key=jr.key(0)) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.obs, two.obs)
    assert one.ahead is None and two.ahead is not None
    np.testing.assert_array_equal(
        two.ahead, np.minimum(two.obs[:, 2] + 2, 3) - two.obs[:, 2]
    )
    moved = np.asarray(two.next_obs - two.obs)
    np.testing.assert_array_equal(moved[:, 2], two.ahead)
    assert not moved[:, :2].any()


def test_chunks_cover_the_total_and_are_reported() -> None:
    journal = InMemory(saves=True)
    by_chunks = run(journal=journal)
    whole, _ = learn(jnp.ones(3), jnp.asarray(0), 7)
    np.testing.assert_array_equal(by_chunks, whole)
    assert journal.calls == [
        ("begin", 7, 0),
        *(("record", 2), ("save", 2)),
        *(("record", 4), ("save", 4)),
        *(("record", 6), ("save", 6)),
        ("record", 7),  # the end is the phase's own to keep
        ("end",),
    ]


def test_resumed_equals_uninterrupted_bit_for_bit() -> None:
    through = run()
    journal = InMemory(saves=True)

    def fail_at_four(state, done, count):
        if done == 4:
            raise RuntimeError("power cut")
        return advance(state, done, count)

    with pytest.raises(RuntimeError):
        run(journal=journal, advance=fail_at_four)
    assert journal.kept[1] == 4
    assert journal.calls[-1] == ("end",)
    resumed = run(state=jnp.full(3, 99.0), journal=journal)
    assert ("begin", 7, 4) in journal.calls
    np.testing.assert_array_equal(resumed, through)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_metrics_that_are_not_finite_are_named(bad: float) -> None:
    journal = InMemory(saves=True)

    def diverge(state, done, count):
        loss = jnp.asarray([0.0, bad if done == 2 else 1.0])
        return state, {"fine": jnp.zeros(()), "meta/loss": loss}

    with pytest.raises(NumericalError, match=r"meta/loss became NaN .* by update 4"):
        run(journal=journal, advance=diverge)
    assert journal.kept[1] == 2, "what diverged must not be saved"
    assert journal.calls[-1] == ("end",)


@pytest.fixture
def handlers_restored():
    """The stop handlers must be gone after every test, however it ended."""
    watched = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in watched]
    yield
    assert [signal.getsignal(number) for number in watched] == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("handlers_restored")
def test_a_signal_saves_and_stops_after_the_chunk(number: int) -> None:
    journal = InMemory()

    def interrupted(state, done, count):
        if done == 2:
            os.kill(os.getpid(), number)
        return advance(state, done, count)

    with pytest.raises(StoppedError, match="run the same command to continue"):
        run(journal=journal, advance=interrupted)
    assert journal.calls[-3:] == [("record", 4), ("save", 4), ("end",)]
    np.testing.assert_array_equal(run(journal=journal), run())


@pytest.mark.usefixtures("handlers_restored")
def test_a_second_signal_stops_at_once() -> None:
    journal = InMemory()

    def impatient(state, done, count):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("must not get here")

    with pytest.raises(KeyboardInterrupt):
        run(journal=journal, advance=impatient)
    assert journal.kept is None
    assert journal.calls[-1] == ("end",)


@pytest.mark.usefixtures("handlers_restored")
def test_without_signals_handlers_are_restored() -> None:
    run()
