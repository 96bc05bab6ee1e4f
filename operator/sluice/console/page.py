"""Open the consoles for stderr and stdout, and print errors and durations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from sluice.core.values import text as words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import ConsoleOptions, RenderResult

    from sluice.core.values.trouble import Trouble
    from sluice.errors import SluiceError


class _Page(Console):
    """A console that control characters in a string do not reach. Lines are not wrapped."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, soft_wrap=True)

    def render_str(self, text: str, **options: Any) -> Text:
        """Make the text of a string, such as each that is printed."""
        return super().render_str(printable(text, lines=True), **options)


err = _Page(stderr=True)
out = _Page()
note = _Page(stderr=True)
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


class Words:
    """A text whose lines a terminal breaks between words only.

    Elsewhere lines stay whole, so that users can search them. Markup is shown as it is, and control
    characters are not.

    Args:
        text: the text.
        style: its style.
        indent: blanks before each line.
    """

    def __init__(self, text: str | Text, style: str = "", *, indent: int = 0) -> None:
        self._text = Text(text, style) if isinstance(text, str) else text
        self._text.plain = printable(self._text.plain, lines=True)
        self._indent = indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the lines for a page of this width."""
        width = options.max_width - self._indent
        for whole in self._text.split(allow_blank=True):
            breaks = _breaks(whole.plain, width) if console.is_terminal else ()
            for line in whole.divide(breaks):
                line.rstrip()
                shown = Text.assemble(" " * self._indent, line, no_wrap=True, overflow="ignore")
                yield from console.render(shown, options)


def _breaks(text: str, width: int) -> Iterator[int]:
    """Yield where the lines of a text begin, but for the first. No word is broken."""
    begin = 0
    for word in re.finditer(r"\S+", text):
        if word.end() - begin > width and word.start() > begin:
            begin = word.start()
            yield begin


def duration(seconds: float | None) -> str:
    """Write seconds as a short text: 3700 -> `1h01m`."""
    return "-" if seconds is None else words.duration(seconds)


def show_error(error: SluiceError) -> None:
    """Print an error with its reason, notes and remedy."""
    err.print(_named(error.reason, str(error)))
    for note in getattr(error, "__notes__", ()):
        err.print(Words(note, indent=2))
    err.print(Words(error.remedy, indent=2))


def show_trouble(failure: Trouble) -> None:
    """Print a failure with its reason, field and remedy."""
    said = f"{failure.field}: {failure.message}" if failure.field else failure.message
    err.print(_named(failure.reason, said))
    err.print(Words(failure.remedy, indent=2))


def show_failed(resource: object, reason: str, message: str) -> None:
    """Print why a resource of a cluster has failed, in the words of its status."""
    err.print(Words(Text.assemble(f"{resource}: ", (reason, "bold red"), f": {message}")))


def _named(reason: str, said: str) -> Words:
    """Write a failure behind its reason."""
    return Words(Text.assemble((reason, "bold red"), ": ", said))
