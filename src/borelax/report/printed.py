"""Where commands print their tables."""

from rich.console import Console


class Printed(Console):
    """Standard output. Where nobody reads on, the command ends, as others do."""

    def on_broken_pipe(self) -> None:
        """Rich would exit with 1, whatever called it."""
        raise BrokenPipeError
