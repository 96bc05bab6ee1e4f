"""Gather the commands of `sluice streams`."""

import click

from sluice.commands.streams.events import read, write
from sluice.commands.streams.listing import cut, ls, show
from sluice.commands.streams.stale import stale


@click.group()
def streams() -> None:
    """List, show, read and write streams; find those whose resource is gone.

    STREAM is SCOPE/STREAM.
    """


for command in (ls, show, cut, read, write, stale):
    streams.add_command(command)
