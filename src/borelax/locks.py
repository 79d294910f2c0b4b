"""One process at a time in a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from borelax.errors import ConfigError, DataError


@contextmanager
def alone_in(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other processes out of a folder; the system lets go of it if we are killed.

    Without ``wait``, a folder that another process holds is refused. Windows and some
    network disks have no such locks, and nothing happens there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = os.open(folder, os.O_RDONLY) if os.name == "posix" else None
    except OSError as error:
        raise DataError(
            f"{folder} could not be opened: {error.strerror or error}. Choose another "
            "--out folder, then run the same command again."
        ) from error
    try:
        if held is not None:
            _hold(held, folder, wait)
        yield
    finally:
        if held is not None:
            os.close(held)


def _hold(descriptor: int, folder: Path, wait: bool) -> None:
    import fcntl  # not on Windows

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError as error:
        raise ConfigError(
            f"Another process is at work in {folder}. Wait until it has ended, or "
            "choose another --out folder."
        ) from error
    except OSError:
        return  # the disk has no locks
