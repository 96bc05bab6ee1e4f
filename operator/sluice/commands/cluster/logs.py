"""Implement `sluice logs`: show the log of a resource's driver."""

from __future__ import annotations

import asyncio
import sys

import click

from sluice import console
from sluice.api.registry import WITH_JOBS
from sluice.commands.cluster.completion import complete_with_jobs
from sluice.commands.cluster.shared import NAMESPACE, QUIET, connected, say


@click.command()
@click.argument("name", metavar="[KIND/]NAME", shell_complete=complete_with_jobs)
@NAMESPACE
@click.option("-f", "--follow", is_flag=True, help="Go on until the resource is at rest.")
@click.option("--attempt", type=click.IntRange(min=1), help="This attempt.  [default: the last]")
@click.option("--raw", is_flag=True, help="The lines as the driver wrote them.")
@QUIET
def logs(*, name: str, namespace: str | None, follow: bool, attempt: int | None, raw: bool) -> None:
    """Show the log of the driver that works for a resource.

    --follow waits for a driver's pod, and goes on with the attempts after it.
    """
    asyncio.run(_logs(name, namespace, attempt, follow=follow, raw=raw))


async def _logs(
    name: str, namespace: str | None, attempt: int | None, *, follow: bool, raw: bool
) -> None:
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.administration import driver_logs  # noqa: PLC0415

    pod = None
    async with connected(namespace) as place:
        resource = await place.find(name, WITH_JOBS)
        lines = driver_logs.log(place.api, resource, attempt=attempt, follow=follow)
        async for line in lines:
            if line.pod != pod:
                say(f"{resource}, attempt {line.attempt}, pod {line.pod}:")
                pod = line.pod
            click.echo(_raw(line.text) if raw else console.readable(line.text))


def _raw(text: str) -> str:
    """Return a line as it is; to a terminal, without control characters."""
    return console.printable(text) if sys.stdout.isatty() else text
