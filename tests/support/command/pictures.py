"""Pictures in the documents: coloured output of commands, as SVG.

Each picture has its text in `<desc>`, for screen readers, and for tests that compare it with what
the command prints today.
"""

from __future__ import annotations

import io
import re
from html import escape, unescape
from typing import TYPE_CHECKING, Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from pathlib import Path

WIDTH: Final = 100
"""Columns of the terminal."""

_FONTS: Final = re.compile(r"\s*@font-face \{\{.*?\n\s*\}\}", re.DOTALL)
"""Fonts of another server, which a picture must not load."""
_DESC: Final = re.compile(r"<desc>(.*?)</desc>", re.DOTALL)


def draw(name: str, command: str, printed: str) -> str:
    """Return the picture of a command and its output.

    Args:
        name: a name for the picture's styles, different from those of other pictures.
        command: the command as a user types it.
        printed: its output, with the terminal's codes for colours.
    """
    text = Text.assemble(("$ ", "bold"), (command, "bold"), "\n", Text.from_ansi(printed.rstrip()))
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True)
    console.print(text)
    layout = _FONTS.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, monospace", "monospace")
    desc = f"<desc>{escape(text.plain, quote=False)}</desc>"
    for brace in "{}":
        desc = desc.replace(brace, brace * 2)
    head, style, rest = layout.partition("    <style>")
    svg = console.export_svg(
        title="", unique_id=f"picture-{name}", code_format=f"{head}    {desc}\n{style}{rest}"
    )
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def text_of(picture: Path) -> str:
    """Return the text that a picture says it shows."""
    return described(picture.read_text(encoding="utf-8"))


def described(svg: str) -> str:
    """Return the text that a picture's SVG says it shows."""
    (found,) = _DESC.findall(svg)
    return unescape(found)


def drawn_text(picture: Path) -> str:
    """Return the text that a picture draws, without any white space."""
    body = _DESC.sub("", picture.read_text(encoding="utf-8"))
    pieces = re.findall(r"<text [^>]*>([^<]*)</text>", body)
    return "".join("".join(map(unescape, pieces)).split())
