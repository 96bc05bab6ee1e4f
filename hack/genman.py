"""Generate the manual pages from the commands.

python hack/genman.py           write man/man1/*.1
python hack/genman.py --check   fail if a page is out of date, missing or surplus

The package click-man does not suffice. It supports neither commands that are imported at their
call, nor exit codes, nor lines that begin with a dot, and it lists hidden commands.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sluice.cli import cli
from sluice.commands.shared import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "man" / "man1"
NOTE = r".\" Made by hack/genman.py from the commands: change those."


def pages() -> dict[str, str]:
    """Return all pages, by the names of their files."""
    root = click.Context(cli, info_name=PROGRAM, **cli.context_settings)
    return {f"{title(one)}.1": page(one) for one in commands(root)}


def commands(context: click.Context) -> Iterator[click.Context]:
    """Yield a command, and all below it that are not hidden."""
    yield context
    for _, below in children(context):
        yield from commands(below)


def children(context: click.Context) -> list[tuple[str, click.Context]]:
    """Return the commands of a group that are not hidden, by name."""
    group = context.command
    if not isinstance(group, click.Group):
        return []
    found = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    return [
        (name, click.Context(command, parent=context, info_name=name))
        for name, command in found
        if command is not None and not command.hidden
    ]


def title(context: click.Context) -> str:
    """Return the name of a command's page."""
    return context.command_path.replace(" ", "-")


def page(context: click.Context) -> str:
    """Return the page of a command, in the macros of man(7)."""
    command = context.command
    lines = [NOTE, f'.TH "{title(context).upper()}" "1" "" "Sluice" ""']
    lines += [".SH NAME", rf"{plain(title(context))} \- {plain(summary(command))}", ".SH SYNOPSIS"]
    usage = " ".join(command.collect_usage_pieces(context))
    lines += [rf"\fB{plain(context.command_path)}\fR {plain(usage)}"]
    lines += [".SH DESCRIPTION", *text(command.help or "")]
    options = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)  # the synopsis has the arguments
        and (record := parameter.get_help_record(context)) is not None
    ]
    lines += section("OPTIONS", options)
    lines += section("COMMANDS", [(n, summary(one.command)) for n, one in children(context)])
    if command.epilog:
        lines += [".SH NOTES", *text(command.epilog)]
    above = [context.parent] if context.parent else []
    others = [*above, *(below for _, below in children(context))]
    if others:
        named = ", ".join(rf"\fB{plain(title(one))}\fR(1)" for one in others)
        lines += [".SH SEE ALSO", named]
    return "\n".join(lines) + "\n"


def summary(command: click.Command) -> str:
    """Return the first sentence of a command's help."""
    return " ".join(inspect.cleandoc(command.help or "").partition("\n\n")[0].split()).rstrip(".")


def section(heading: str, records: list[tuple[str, str]]) -> list[str]:
    """Return a list of options or commands under a heading; nothing if there are none."""
    if not records:
        return []
    lines = [f".SH {heading}"]
    for name, means in records:
        lines += [".TP", rf"\fB{plain(name)}\fR", plain(" ".join(means.split()))]
    return lines


def text(written: str) -> list[str]:
    r"""Return paragraphs; one that begins with click's mark \b keeps its lines."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(written)):
        kept = paragraph.startswith("\b\n")
        parts = paragraph.removeprefix("\b\n").splitlines()
        lines.append(".PP")
        lines += [".nf", *map(plain, parts), ".fi"] if kept else [plain(" ".join(parts))]
    return lines


def plain(words: str) -> str:
    """Escape a text that is no macro."""
    escaped = words.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main() -> int:
    """Write the pages, or check them. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    wanted = pages()
    found = {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.1")}
    if wanted == found:
        return 0
    if check:
        wrong = sorted(name for name in wanted | found if wanted.get(name) != found.get(name))
        sys.stderr.write(f"{', '.join(wrong)}: run python hack/genman.py\n")
        return 1
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in found.keys() - wanted.keys():
        (PAGES / name).unlink()
    for name, written in wanted.items():
        (PAGES / name).write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
