"""A phase's folder as one thing: complete or not, whole or damaged, known by a hash.

``seal`` writes ``manifest.json`` last, with the size and SHA-256 of every other file:
a folder that has one is complete, and any damage to it is found.
"""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from borelax import files
from borelax.errors import DataError
from borelax.files import atomic, reading

_SCHEMA = 1
_MANIFEST = "manifest.json"


class Entry(NamedTuple):
    """What the manifest says of one file."""

    size: int
    sha: str


def seal(folder: Path, names: Iterable[str], about: dict[str, Any]) -> None:
    """Write ``manifest.json``, which says that the folder is complete.

    Args:
        folder: A phase's output.
        names: Its files, relative to the folder. Leave out those that differ
            between equal runs, such as wall-clock times: ``identity`` reads them.
        about: Anything to remember, as JSON.
    """
    entries = {
        name: files.fingerprint(files.inside(folder, name))
        for name in sorted(set(names) - {_MANIFEST})
    }
    content = {"schema": _SCHEMA, "about": about, "files": entries}
    files.write_hashed_json(folder / _MANIFEST, content)


def is_sealed(folder: Path) -> bool:
    """Whether the folder has a manifest: its phase has finished."""
    return files.exists(folder / _MANIFEST)


def open_sealed(folder: Path, verify: bool = True) -> dict[str, Any]:
    """Check a sealed folder and return what ``seal`` was told about it.

    Args:
        folder: A phase's output.
        verify: Whether to hash the files; if not, only their sizes are checked.
    """
    about, entries = _read_manifest(folder)
    remedy = _remedy(folder)
    for name, entry in entries.items():
        path = files.inside(folder, name)
        with reading(path, "a file", remedy):
            resized = path.stat().st_size != entry.size
        if resized:
            raise _damaged(path, "size", remedy)
        if verify and files.sha_of_file(path) != entry.sha:
            raise _damaged(path, "SHA-256", remedy)
    return about


def copy_sealed(source: Path, target: Path) -> None:
    """Have a sealed folder a second time, checking every file on the way.

    Its files are shared where the disk can do that: sealed ones do not change. The
    manifest comes last, so that half a copy is not sealed.
    """
    open_sealed(source)
    for name in sealed_files(source):
        _share(source / name, target / name)
    _copy(source / _MANIFEST, target / _MANIFEST)


def _share(path: Path, target: Path) -> None:
    """The same file under a second name, or a copy where disks cannot do that.

    Lines can be appended to, so that they are copied, too.
    """
    if path.suffix == ".jsonl":
        return _copy(path, target)
    files.delete(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, target)
    except OSError:
        _copy(path, target)


def _copy(path: Path, target: Path) -> None:
    with atomic(target) as file, open(path, "rb") as own:
        shutil.copyfileobj(own, file)


def sealed_files(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file by its name, as the folder's manifest states it."""
    return {
        name: entry.sha for name, entry in sorted(_read_manifest(folder)[1].items())
    }


def identity(folder: Path) -> str:
    """One hash for a phase's output, of its files' names and hashes alone."""
    return files.sha_of_json(folder / _MANIFEST, sealed_files(folder))


def _read_manifest(folder: Path) -> tuple[dict[str, Any], dict[str, Entry]]:
    """What ``seal`` was told, and what it saw of each file."""
    path = folder / _MANIFEST
    if not files.exists(path):
        raise DataError(
            f"{folder} is not complete: it has no {_MANIFEST}. Run its phase again."
        )
    remedy = f"Delete the folder {folder} and run the phase again."
    content = files.read_hashed_json(path, remedy)
    if content.get("schema") != _SCHEMA:
        raise DataError(f"{path} comes from another version of borelax. {remedy}")
    with reading(path, "a manifest", remedy):
        entries = content["files"].items()
        return content["about"], {n: Entry(x["bytes"], x["sha256"]) for n, x in entries}


def _remedy(folder: Path) -> str:
    return f"Delete the folder {folder} and run the phase again, or restore the file."


def _damaged(path: Path, what: str, remedy: str) -> DataError:
    return DataError(
        f"{path} is damaged: its {what} differs from the manifest. {remedy}"
    )
