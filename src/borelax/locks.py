"""One process at a time in a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from borelax.errors import ConfigError


@contextmanager
def alone_in(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other processes out of a folder; the system lets go of it if we are killed.

    Without ``wait``, a folder that another process holds is refused. Windows has no
    such locks, and nothing happens there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if os.name != "posix":
        yield
        return
    fcntl = import_module("fcntl")
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    except BlockingIOError as error:
        raise ConfigError(
            f"Another process is at work in {folder}. Wait until it has ended, or "
            "choose another --out folder."
        ) from error
    finally:
        os.close(descriptor)
