"""Arrays and pytrees on disk: hashed, atomic, no pickle.

In go arrays and pytrees; out come ``.npz`` and ``.safetensors`` files. A crash never
leaves half a file, and damage is never read as data: every failure is a ``DataError``
whose sentence names the file and what to do next. Beside it, ``files.py`` holds JSON
and bytes, and ``manifest.py`` vouches for whole folders; no other code touches files.
"""

import hashlib
import io
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from borelax import files
from borelax.errors import DataError
from borelax.files import RESTORE, atomic, dump_json, reading
from borelax.files import append_lines as append_lines
from borelax.files import read_json as read_json
from borelax.files import read_lines as read_lines
from borelax.files import truncate_lines as truncate_lines
from borelax.files import write_json as write_json

Tree = TypeVar("Tree")

_CHECKPOINT = "checkpoint.safetensors"
_MOST_PER_BYTE = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
"""How many bytes one packed byte can hold at most, per way of packing."""


def save_arrays(
    path: Path, arrays: Mapping[str, np.ndarray | jax.Array], compress: bool = True
) -> None:
    """Write named arrays to one ``.npz`` file; equal arrays give equal bytes.

    Args:
        path: The file to create or to replace.
        arrays: Numbers, booleans or text. The order of the names does not matter.
        compress: Whether to deflate.
    """
    plain = {name: _plain(path, name, arrays[name]) for name in sorted(arrays)}
    packing = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, array in plain.items():
            # The same date whatever the clock says.
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            info.create_system, info.compress_type = 3, packing
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    # A zip overlooks damage to its directory, so its comment is a hash of the rest.
    packed.seek(-2, io.SEEK_END)
    packed.write((64).to_bytes(2, "little"))
    sha = hashlib.sha256(packed.getbuffer()).hexdigest()
    with atomic(path) as file:
        file.write(packed.getbuffer())
        file.write(sha.encode())


def load_arrays(
    path: Path, expected_sha: str | None = None, remedy: str = RESTORE
) -> dict[str, np.ndarray]:
    """Read an ``.npz`` file.

    Args:
        path: The file.
        expected_sha: The SHA-256 it must have, if given.
        remedy: What to do if it is missing or damaged.
    """
    with reading(path, "an .npz file of plain arrays", remedy):
        data = path.read_bytes()
        if expected_sha not in (None, hashlib.sha256(data).hexdigest()):
            raise DataError(
                f"{path} is damaged: its SHA-256 is not the expected one. {remedy}"
            )
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_directory(archive, data)
            return {
                info.filename.removesuffix(".npy"): _read_member(path, archive, info)
                for info in archive.infolist()
            }


def save_tree(path: Path, tree: Any, about: dict[str, Any] | None = None) -> None:
    """Write the array leaves of a pytree to one self-checking ``.safetensors`` file.

    Args:
        path: The file to create or to replace.
        tree: Any pytree, modules included. PRNG keys are stored as their data;
            leaves that are not arrays are left out.
        about: Anything to remember with it, as JSON.
    """
    leaves = _array_leaves(path, tree)
    arrays = {name: _raw(leaf) for name, leaf in leaves.items()}
    buffers = {name: x.reshape(-1).view(np.uint8) for name, x in arrays.items()}
    header: dict[str, Any] = {"about": about or {}, "leaves": _describe(leaves)}
    header["sha256"] = files.sha_of_json(path, header, buffers.values())
    # One entry: safetensors orders several differently from call to call.
    data = safetensors.numpy.save(arrays, {"borelax": dump_json(path, header)})
    with atomic(path) as file:
        file.write(data)


def load_tree(path: Path, like: Tree) -> Tree:
    """Read a pytree written by ``save_tree``, with JAX arrays.

    Args:
        path: The file.
        like: A tree of the same structure, with arrays or ``ShapeDtypeStruct`` where
            arrays go. Its other leaves are returned as they are.
    """
    return _read_tree(path, like, RESTORE)[0]


def save_checkpoint(folder: Path, tree: Any, about: dict[str, Any]) -> None:
    """Replace the folder's checkpoint; ``tree`` and ``about`` share one file."""
    save_tree(folder / _CHECKPOINT, tree, about)


def has_checkpoint(folder: Path) -> bool:
    """Whether the folder holds a checkpoint."""
    return files.exists(folder / _CHECKPOINT)


def load_checkpoint(folder: Path, like: Tree) -> tuple[Tree, dict[str, Any]] | None:
    """Read the folder's checkpoint, if any; ``like`` is as in ``load_tree``."""
    if not has_checkpoint(folder):
        return None
    return _read_tree(folder / _CHECKPOINT, like, "Delete it to start the phase over.")


def delete_checkpoint(folder: Path) -> None:
    """Remove a phase's checkpoint, which its finished output replaces."""
    files.delete(folder / _CHECKPOINT)


def _plain(path: Path, name: str, value: np.ndarray | jax.Array) -> np.ndarray:
    # Not ascontiguousarray, which turns a number into an array of one.
    array = np.asarray(value, order="C")
    if array.dtype.kind not in "biufcSU" or array.dtype.isbuiltin == 2:
        raise DataError(
            f"{path} was not written: an .npz file cannot hold array {name!r} of dtype "
            f"{array.dtype}. Convert it to a dtype that NumPy itself has."
        )
    return array


def _check_directory(archive: zipfile.ZipFile, data: bytes) -> None:
    members = archive.infolist()
    rest = memoryview(data)[:-64]
    sound = archive.comment == hashlib.sha256(rest).hexdigest().encode()
    if data.endswith(b"\0\0"):  # no comment, as from np.savez: count the members
        sound = len(members) == int.from_bytes(data[-12:-10], "little")
    if not sound or sum(info.compress_size for info in members) > len(data):
        raise ValueError("damaged, or members overlap as in a zip bomb")


def _read_member(
    path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> np.ndarray:
    with archive.open(info) as member:
        np.lib.format.read_magic(member)  # plain arrays need no newer header than 1.0
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        claimed = member.tell() + math.prod(shape) * dtype.itemsize
    room = info.compress_size * _MOST_PER_BYTE[info.compress_type]
    if claimed != info.file_size or claimed > room:
        raise DataError(
            f"{path} is damaged: {info.filename!r} in it claims {claimed} bytes, "
            f"which the file does not hold. {RESTORE}"
        )
    with archive.open(info) as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def _read_tree(path: Path, like: Tree, remedy: str) -> tuple[Tree, dict[str, Any]]:
    wanted = _array_leaves(path, like)
    with reading(path, "a tree of arrays", remedy):
        data = path.read_bytes()
        buffers = {name: spec["data"] for name, spec in safetensors.deserialize(data)}
        start = 8 + int.from_bytes(data[:8], "little")
        metadata = files.parse_json(data[8:start])["__metadata__"]
        header = files.parse_json(metadata["borelax"])
        sha, leaves, about = header.pop("sha256"), header["leaves"], header["about"]
        if sha != files.sha_of_json(path, header, (buffers[name] for name in leaves)):
            raise ValueError("the content differs from its hash")
        _check_fit(path, leaves, _describe(wanted))
        arrays = {name: _restore(x, buffers[name]) for name, x in wanted.items()}
    tree = jax.tree_util.tree_map_with_path(
        lambda at, leaf: arrays.get(jax.tree_util.keystr(at), leaf), like
    )
    return tree, about


def _array_leaves(path: Path, tree: Any) -> dict[str, Any]:
    """Array leaves by name; refuses those whose values JAX would change."""
    leaves = {
        jax.tree_util.keystr(at): leaf
        for at, leaf in jax.tree_util.tree_leaves_with_path(tree)
        if eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)
    }
    for name, leaf in leaves.items():
        kept: Any = jax.dtypes.canonicalize_dtype(leaf.dtype, allow_extended_dtype=True)
        if str(leaf.dtype) != kept.name:
            raise DataError(
                f"{path} cannot hold leaf {name} of dtype {leaf.dtype}. Convert it to "
                "32-bit numbers, or set JAX_ENABLE_X64=1 for 64-bit ones."
            )
    return leaves


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _raw(leaf: Any) -> np.ndarray:
    """The numbers of a leaf in C order: safetensors miswrites other layouts."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf, order="C")


def _restore(leaf: Any, data: bytearray) -> jax.Array:
    if not _is_key(leaf):
        return jnp.array(np.frombuffer(data, leaf.dtype).reshape(leaf.shape))
    words = jnp.array(np.frombuffer(data, np.uint32).reshape(*leaf.shape, -1))
    # A ShapeDtypeStruct tells its kind of key only by way of an array.
    kind = jax.random.key_impl(jnp.empty((), leaf.dtype))
    return jax.random.wrap_key_data(words, impl=kind)


def _describe(leaves: dict[str, Any]) -> dict[str, str]:
    return {name: f"{x.dtype.name}{list(x.shape)}" for name, x in leaves.items()}


def _check_fit(path: Path, found: dict[str, str], wanted: dict[str, str]) -> None:
    for name in sorted(found.keys() | wanted.keys()):
        there, here = found.get(name, "absent"), wanted.get(name, "absent")
        if there != here:
            raise DataError(
                f"{path} belongs to something else: leaf {name} is {there} there and "
                f"{here} here. Use the configuration that wrote it, or delete it."
            )
