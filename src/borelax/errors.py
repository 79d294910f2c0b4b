"""Errors a user can act on; each carries the exit code of the command line."""


class BorelaxError(Exception):
    """A failure explained in one sentence, with what to do next."""

    exit_code = 1


class ConfigError(BorelaxError, ValueError):
    """A value the user chose cannot be used."""

    exit_code = 2


class DataError(BorelaxError):
    """A file is missing, damaged, or belongs to something else."""

    exit_code = 3


class SimulationError(BorelaxError):
    """A user's environment failed, or broke its contract, while it was run."""


class NumericalError(BorelaxError):
    """Training produced NaN or infinity."""

    exit_code = 4


class StoppedError(BorelaxError):
    """The user stopped the work; what was done is saved."""

    exit_code = 130


def require(condition: bool, sentence: str) -> None:
    """Refuse a configuration with ``sentence`` unless ``condition`` holds.

    NaN fails every comparison, so ``require(x > 0, ...)`` refuses it too.
    """
    if not condition:
        raise ConfigError(sentence)


def require_positive(owner: object, *names: str) -> None:
    """Refuse ``owner`` unless each named field is a finite number above zero."""
    for name in names:
        value = getattr(owner, name)
        require(
            0 < value < float("inf"),
            f"{type(owner).__name__}.{name} must be above zero, not {value}.",
        )


def require_share(owner: object, *names: str) -> None:
    """Refuse ``owner`` unless each named field lies between 0 and 1."""
    for name in names:
        value = getattr(owner, name)
        require(
            0 <= value <= 1,
            f"{type(owner).__name__}.{name} must lie in [0, 1], not {value}.",
        )


def require_widths(owner: object, *names: str) -> None:
    """Refuse ``owner`` unless each named field holds widths of layers, at least one."""
    for name in names:
        widths = getattr(owner, name)
        require(
            len(widths) > 0 and all(width > 0 for width in widths),
            f"{type(owner).__name__}.{name} must hold positive widths, not {widths}.",
        )


def said(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
