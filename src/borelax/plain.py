"""Settings as plain values: frozen dataclasses to JSON, back, and checked by type."""

import math
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from borelax.errors import ConfigError, require

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def encode(value: Any) -> Any:
    """Dataclasses as dicts, each tagged with its ``kind``; code is left out."""
    if is_dataclass(value):
        told = [f.name for f in fields(value) if "code" not in f.metadata]
        inner = {name: encode(getattr(value, name)) for name in told}
        return {"kind": type(value).__name__, **inner}
    return list(value) if isinstance(value, tuple) else value


def is_plain(value: Any) -> bool:
    """Whether JSON can hold it, all of it."""
    if is_dataclass(value) and not isinstance(value, type):
        return all(is_plain(getattr(value, f.name)) for f in fields(value))
    if isinstance(value, tuple):
        return all(isinstance(x, int | float | str) for x in value)
    return value is None or isinstance(value, int | float | str)


def decode(value: Any, kinds: dict[str, type]) -> Any:
    """Undo ``encode``, given the classes by name; raises ``ConfigError``."""
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    kind = kinds.get(str(value.get("kind")))
    if kind is None:
        raise ConfigError(f"Unknown part {value.get('kind')!r} in the configuration.")
    inner = {k: decode(v, kinds) for k, v in value.items() if k != "kind"}
    unknown = set(inner) - {f.name for f in fields(kind)}
    if unknown:
        raise ConfigError(f"{kind.__name__} has no {', '.join(sorted(unknown))}.")
    _refuse_wrong_types(kind, inner)
    return kind(**inner)


def refuse_wrong_values(part: Any, parts: tuple[type, ...]) -> None:
    """Refuse values of another type than their field's, NaN and infinity.

    In a part, and in all of its own that are ``parts``: other classes are the user's.

    JSON and Python callers bring such values; flags are parsed by their types.
    """
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    _refuse_wrong_types(type(part), values)
    for name, value in values.items():
        if isinstance(value, parts):
            refuse_wrong_values(value, parts)
        infinite = isinstance(value, float) and not math.isfinite(value)
        require(
            not infinite, f"{type(part).__name__}.{name} must be finite, not {value}."
        )


def _refuse_wrong_types(kind: type, values: dict[str, Any]) -> None:
    hints = get_type_hints(kind)
    for name, value in values.items():
        require(
            _fits(value, hints[name]),
            f"{kind.__name__}.{name} must be {_in_words(hints[name])}, not {value!r}.",
        )


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return isinstance(value, tuple) and all(_fits(x, item) for x in value)
    if isinstance(value, bool):  # to Python, a boolean is a number too
        return hint is bool
    return isinstance(value, int | float if hint is float else hint)


def _in_words(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_in_words(choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return f"a list, each {_in_words(get_args(hint)[0])}"
    return _WORDS.get(hint) or f"a {hint.__name__}"
