"""Open the consoles for stderr and stdout, and print errors and durations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from sluice.core.values import text as words

if TYPE_CHECKING:
    from sluice.core.values.trouble import Trouble
    from sluice.errors import SluiceError

err = Console(stderr=True, highlight=False, soft_wrap=True)
out = Console(highlight=False, soft_wrap=True)
note = Console(stderr=True, highlight=False, soft_wrap=True)
"""The console of progress and of notes that are no errors. `hush` silences it."""


def hush() -> None:
    """Print no progress and no notes from now on: results and errors only."""
    note.quiet = True


def printable(text: str, *, lines: bool = False) -> str:
    """Return a text with a blank for each control character.

    Tenants and stores may have written it, and must not control the terminal.

    Args:
        text: the text.
        lines: whether it may have several lines.
    """
    return "".join(one if one.isprintable() or (lines and one == "\n") else " " for one in text)


def duration(seconds: float | None) -> str:
    """Write seconds as a short text: 3700 -> `1h01m`."""
    return "-" if seconds is None else words.duration(seconds)


def show_error(error: SluiceError) -> None:
    """Print an error with its reason, notes and remedy."""
    err.print(f"[bold red]{error.reason}[/]: ", end="")
    err.print(printable(str(error), lines=True), markup=False)
    for note in getattr(error, "__notes__", ()):
        err.print(f"  {printable(note, lines=True)}", markup=False)
    err.print(f"  {printable(error.remedy, lines=True)}", markup=False)


def show_trouble(failure: Trouble) -> None:
    """Print a failure with its reason, field and remedy."""
    err.print(f"[bold red]{failure.reason}[/]: ", end="")
    said = f"{failure.field}: {failure.message}" if failure.field else failure.message
    err.print(printable(said, lines=True), markup=False)
    err.print(f"  {printable(failure.remedy, lines=True)}", markup=False)
