"""Screens in the guides: the output of commands, compared with the pages.

`SLUICE_UPDATE_SCREENS=1` writes today's screens into the pages instead of comparing them.
"""

from __future__ import annotations

import difflib
import os
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from support.tenants.tenant import Tenant

UPDATE: Final = os.environ.get("SLUICE_UPDATE_SCREENS", "") not in {"", "0"}

SCREEN: Final = re.compile(
    r"^<!-- screen ([a-z-]+) -->\n```console\n(.*?)```\n<!-- end of screen -->$",
    re.MULTILINE | re.DOTALL,
)
"""A screen on a page: its name and its content."""

_YAML: Final = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Screen(NamedTuple):
    """The screen of one command.

    Attributes:
        words: arguments of kubectl.
        only: the line at which the shown part begins; empty for all of it.
    """

    words: str
    only: str = ""

    @property
    def command(self) -> str:
        """The command as a user types it."""
        cut = f" | sed -n '/^{self.only}/,$p'" if self.only else ""
        return f"kubectl {self.words}{cut}"

    def show(self, tenant: Tenant) -> str:
        """Return the command and its present output."""
        printed = tenant.run(*self.words.split(), timeout=630)
        if self.only:
            printed = printed[printed.index(f"\n{self.only}") + 1 :]
        lines = [line.rstrip() for line in printed.splitlines()]
        return f"$ {self.command}\n" + "\n".join(lines).strip("\n") + "\n"


def yaml_blocks(page: Path) -> list[str]:
    """Return the blocks of YAML of a page."""
    return _YAML.findall(page.read_text(encoding="utf-8"))


def shown(page: Path) -> list[tuple[str, str]]:
    """Return the screens of a page, by name."""
    return SCREEN.findall(page.read_text(encoding="utf-8"))


def difference(page: Path, screens: Mapping[str, str]) -> str:
    """Return the difference between a page and these screens. Other screens do not count."""
    found = []
    for name, text in shown(page):
        if name in screens:
            lines = difflib.unified_diff(
                normal(text), normal(screens[name]), page.name, "now", lineterm="", n=1
            )
            told = "\n".join(lines)
            found += [f"screen {name}; SLUICE_UPDATE_SCREENS=1 writes it anew:\n{told}"] * bool(
                told
            )
    return "\n".join(found)


def write(page: Path, screens: Mapping[str, str]) -> None:
    """Write these screens into a page, where they differ."""

    def renewed(old: re.Match[str]) -> str:
        name, text = old.groups()
        if name not in screens or normal(text) == normal(screens[name]):
            return old[0]
        return f"<!-- screen {name} -->\n```console\n{screens[name]}```\n<!-- end of screen -->"

    page.write_text(SCREEN.sub(renewed, page.read_text(encoding="utf-8")))


# -- values that differ from run to run

_VOLATILE: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "<time>"),
    (re.compile(r"^( +Duration): .*"), r"\1: <duration>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<sha256>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"(sluice|plan|positions|results)-[0-9a-f]{10}\b"), r"\1-<hash>"),
    (re.compile(r"\b[\d.]+ [kMG]?B(?= of )"), "<size>"),
    (re.compile(r"\b[\d.]+ [kMG]?B/s"), "<rate>"),
    (re.compile(r"(?<=read within )[\d.]+ m?s\b"), "<spread>"),
    (re.compile(r"\b([1-9]|[1-9]\d)%"), "<percent>"),
    (
        re.compile(
            r"^( +(?:Bytes|Bytes Per Second|Eta Seconds|Percent|Latency Milliseconds"
            r"|Created Milliseconds|Spread Milliseconds)): .*"
        ),
        r"\1: <number>",
    ),
)
_SOMETIMES: Final = re.compile(r"^ +Normal +(Verifying|Publishing) ")
"""Events of states that may be too short for the operator to see."""

_AGE: Final = re.compile(r"^(?:\d+[dhms])+(?: \(x\d+ over (?:\d+[dhms])+\))?$")


def normal(screen: str) -> list[str]:
    """Return a screen's lines, without the parts that differ from run to run.

    Tables are split at the places of their columns. So a value under another heading is a
    difference, and a wider column is none. Events are sorted, since those of one second come in any
    order.
    """
    command, *lines = screen.splitlines() or [""]
    if lines and lines[0].isupper():
        return [command, *_table(lines)]
    found: list[str] = []
    events: list[str] = []
    for line in lines:
        text = line
        for volatile, word in _VOLATILE:
            text = volatile.sub(word, text)
        if re.match(r"^ +(Normal|Warning|Type|----) ", line):
            if not _SOMETIMES.match(line):
                cells = re.split(r" {2,}", text.strip())
                events.append(" | ".join("<age>" if _AGE.match(cell) else cell for cell in cells))
        else:
            found.append(text)
    return [command, *found, *sorted(events)]


def _table(lines: list[str]) -> list[str]:
    """Return a table's rows, cell by cell."""
    begins = [match.start() for match in re.finditer(r"\S+(?: \S+)*", lines[0])]
    ends = [*begins[1:], None]
    heads = [lines[0][begin:end].strip() for begin, end in zip(begins, ends, strict=True)]
    rows = []
    for line in lines:
        cells = [line[begin:end].strip() for begin, end in zip(begins, ends, strict=True)]
        if "Verifying" in cells or "Publishing" in cells:
            continue
        pairs = zip(heads, cells, strict=True)
        rows.append(" | ".join(_cell(head, cell) for head, cell in pairs))
    return sorted(rows) if heads[0] == "LAST SEEN" else rows


def _cell(head: str, cell: str) -> str:
    """Return a cell, without the parts that differ from run to run."""
    if cell.isdigit() and head in {"ETA S", "LATENCY MS"}:
        return "<number>"
    if _AGE.match(cell):
        return "<age>"
    for volatile, word in _VOLATILE:
        cell = volatile.sub(word, cell)
    return cell
