"""Manual pages are made from the commands, whatever characters their help has."""

from __future__ import annotations

import shutil
import subprocess

import click
import pytest

import genman

PAGES = genman.pages()


def test_each_command_has_a_page_unless_it_is_hidden() -> None:
    """Commands of groups have pages too. The hidden commands that pods run have none."""
    assert {"sluice.1", "sluice-get.1", "sluice-archive-ls.1"} <= PAGES.keys()
    assert not {"sluice-driver.1", "sluice-operator.1"} & PAGES.keys()
    assert r"\fBoperator\fR" not in PAGES["sluice.1"]


def test_a_page_has_options_commands_and_exit_codes() -> None:
    """A command's page has its options. The first page has exit codes and names all other pages."""
    assert r"\fB\-l, \-\-selector LABELS\fR" in PAGES["sluice-get.1"]
    assert r"\fBsluice\-get\fR(1)" in PAGES["sluice.1"]
    assert "Exit codes: 0 done" in PAGES["sluice.1"]


def test_help_is_no_macro() -> None:
    """Backslashes, and dots and apostrophes at the start of a line, stay text."""

    @click.command(help=".PP is \\fBtext\\fR\n\n'quoted'\n\n\b\n.kept\n lines")
    def odd() -> None: ...

    text = genman.page(click.Context(odd, info_name="odd"))
    assert r"\&.PP is \efBtext\efR" in text
    assert r"\&'quoted'" in text
    assert ".nf\n\\&.kept\n lines\n.fi" in text


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_formatter_of_man_takes_each_page(name: str) -> None:
    """If groff is installed, it formats each page without a warning."""
    if (groff := shutil.which("groff")) is None:
        assert PAGES[name].startswith('.\\"')
        return
    said = subprocess.run(
        [groff, "-man", "-Tascii", "-ww", "-z"],
        input=PAGES[name],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stderr == ""
