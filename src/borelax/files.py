"""Bytes on disk: atomic writes, hashes, JSON, JSON lines, errors as sentences.

``store.py`` and ``manifest.py`` build on this file. Every failure is a ``DataError``
that names the file and says what to do next.
"""

import contextlib
import errno
import glob
import hashlib
import json
import math
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import jax
import numpy as np

from borelax.errors import DataError

RESTORE = "Restore it from a copy, or delete it and run the phase that writes it again."


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """Give a file to fill, which becomes ``path`` only once it is complete.

    A crash at any moment leaves the old file or the new one, never half of one.

    Args:
        path: The file to create or to replace. Its folder is made if needed.

    Yields:
        A temporary file in the same folder, open for writing bytes.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    with _writing(path):
        try:
            _remove_stale(path)
            # Not tempfile: only their owner could read the files it makes.
            with open(temporary, "xb") as file:
                yield file
                _to_disk(file)
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()


@contextlib.contextmanager
def reading(path: Path, what: str, remedy: str = RESTORE) -> Iterator[None]:
    """Turn any failure to read or decode ``path`` into one sentence.

    Args:
        path: The file.
        what: What it should be, such as "JSON".
        remedy: What to do if it is missing or damaged.
    """
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing. {remedy}") from error
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}. "
            "Make it a readable file, or restore it from a copy."
        ) from error
    except MemoryError as error:
        raise DataError(
            f"{path} does not fit in memory. Use a machine with more of it."
        ) from error
    except Exception as error:  # Decoders answer damage with almost any exception.
        raise DataError(
            f"{path} is damaged: it cannot be read as {what}. {remedy}"
        ) from error


def exists(path: Path) -> bool:
    """Whether ``path`` is there; not being allowed to look is an error."""
    with reading(path, "a file"):
        try:
            path.stat()
        except FileNotFoundError:
            return False
        return True


def inside(folder: Path, name: str) -> Path:
    """The file ``name``, which must lie in ``folder``."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise DataError(f"{name!r} is not a file in {folder}. Name one that is.")
    return folder / name


def sha_of_file(path: Path) -> str:
    """SHA-256 of the file's bytes, in hex."""
    with reading(path, "a file"), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(path: Path) -> dict[str, Any]:
    """The file's size and SHA-256, as a manifest states them."""
    with reading(path, "a file"):
        return {"bytes": path.stat().st_size, "sha256": sha_of_file(path)}


def sha_of_json(path: Path, value: Any, buffers: Iterable[Any] = ()) -> str:
    """SHA-256 of the JSON text of ``value``, then of ``buffers`` in their order."""
    sha = hashlib.sha256(dump_json(path, value).encode())
    for buffer in buffers:
        sha.update(buffer)
    return sha.hexdigest()


def dump_json(path: Path, value: Any, indent: int | None = None) -> str:
    """JSON text of ``value``, meant for ``path``; refuses NaN and infinity."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"{path} was not written, because its content is not plain JSON: {error}. "
            "Use finite numbers, text, lists and dicts with text keys."
        ) from error
    return text


def parse_json(data: bytes | str) -> Any:
    """The value of strict JSON; anything else is a ValueError."""
    text = data.decode() if isinstance(data, bytes) else data
    return json.loads(text, parse_constant=_refuse_constant)


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as JSON, atomically; keys keep their order.

    Args:
        path: The file to create or to replace.
        value: Finite numbers, text, booleans, None, and lists and dicts of them.
    """
    text = dump_json(path, value, indent=2)
    with atomic(path) as file:
        file.write(f"{text}\n".encode())


def read_json(path: Path, kind: type = dict) -> Any:
    """Read a JSON file.

    Args:
        path: The file.
        kind: The Python type its outermost value must have.
    """
    with reading(path, "JSON"):
        value = parse_json(path.read_bytes())
    if not isinstance(value, kind):
        raise DataError(
            f"{path} holds a JSON {type(value).__name__} where a {kind.__name__} "
            f"is expected. {RESTORE}"
        )
    return value


def write_hashed_json(path: Path, content: dict[str, Any]) -> None:
    """Write ``content`` with an entry ``sha256`` that vouches for the others."""
    write_json(path, content | {"sha256": sha_of_json(path, content)})


def read_hashed_json(path: Path, remedy: str) -> dict[str, Any]:
    """Read what ``write_hashed_json`` wrote, and check it."""
    with reading(path, "JSON with its hash", remedy):
        content = parse_json(path.read_bytes())
        if content.pop("sha256") != sha_of_json(path, content):
            raise ValueError("the content differs from its hash")
    return content


def append_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """Append rows to a JSON-lines file and wait until they are on disk.

    Args:
        path: The file, made if needed. A line that an earlier process was
            killed in is dropped first, or the new row would be glued to it.
        rows: Plain values, NumPy or JAX numbers. NaN and infinity become null.
    """
    data = _lines(path, rows)
    with _writing(path), open(path, "a+b") as file:
        _drop_torn_line(file)
        file.write(data)
        _to_disk(file)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a JSON-lines file, without a torn last line."""
    with reading(path, "JSON lines"):
        # A row ends with a newline: what follows the last one was never finished.
        rows = [parse_json(line) for line in path.read_bytes().split(b"\n")[:-1]]
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("a row is not an object")
    return rows


def truncate_lines(path: Path, keep: Callable[[dict[str, Any]], bool]) -> None:
    """Keep only some rows of a JSON-lines file, atomically.

    Args:
        path: The file. If it is not there, there is nothing to drop.
        keep: Says of each row whether it stays.
    """
    if exists(path):
        with reading(path, "JSON lines"):
            rows = [row for row in read_lines(path) if keep(row)]
        with atomic(path) as file:
            file.write(_lines(path, rows))


def delete(path: Path) -> None:
    """Delete a file, if it is there."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{path} could not be deleted: {error.strerror or error}. "
            "Delete it by hand, then run the same command again."
        ) from error


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Make the folder before a write, and have it on disk after."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
        _sync_folder(path.parent)
    except OSError as error:
        raise DataError(
            f"{path} could not be written: {error.strerror or error}. "
            "Free the disk or choose another folder, then run the same command again."
        ) from error


def _remove_stale(path: Path) -> None:
    """Delete what killed processes left of earlier attempts at ``path``."""
    pattern = glob.escape(f".{path.name}.") + "?" * 16 + ".partial"
    for stale in path.parent.glob(pattern):
        stale.unlink(missing_ok=True)


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make a new name survive a power cut; Windows has no such call."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            # Some network disks know no such call; the file itself is safe.
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(descriptor)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _lines(path: Path, rows: list[dict[str, Any]]) -> bytes:
    return "".join(dump_json(path, _finite(row)) + "\n" for row in rows).encode()


def _finite(value: Any) -> Any:
    """The same value with plain numbers, and None for those JSON cannot hold."""
    if isinstance(value, np.generic | np.ndarray | jax.Array):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _drop_torn_line(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return
    file.seek(size - 1)
    if file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
