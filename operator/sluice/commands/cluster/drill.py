"""Implement `sluice archive drill`: have a cluster's operator drill the restore of an archive."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from sluice import console
from sluice.commands.cluster.completion import complete_drilled
from sluice.commands.cluster.shared import (
    NAMESPACE,
    OVER,
    QUIET,
    TIMEOUT,
    as_list,
    connected,
    ends,
    output_option,
    print_as,
    say,
)
from sluice.errors import EXIT_CODES, Category

if TYPE_CHECKING:
    from sluice.administration.drilling import Drilled


@click.command()
@click.argument("name", metavar="[KIND/]NAME", shell_complete=complete_drilled)
@click.option("--wait", "waits", is_flag=True, help="Wait for the result of the drill.")
@TIMEOUT
@NAMESPACE
@output_option("json", "yaml", "name")
@QUIET
def drill(
    *, name: str, waits: bool, timeout: float | None, namespace: str | None, output: str
) -> None:
    """Restore the last run of a StreamArchive to a scratch stream now, and compare it.

    NAME is a StreamArchive in a cluster, with spec.verify. The operator carries out the drill as if
    it were due: it waits for a run that goes on, and deletes the scratch stream. With --wait, the
    exit code is 0 if the drill has passed, 6 if the run cannot be restored, and 4 if the drill
    could not be carried out.
    """
    ended = asyncio.run(_drill(name, namespace, output, waits=waits, seconds=timeout))
    if ended is not None:
        _tell(ended, output)


async def _drill(
    name: str, namespace: str | None, output: str, *, waits: bool, seconds: float | None
) -> Drilled | None:
    """Request a drill; with `waits`, return its end, and leave its output to the caller."""
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.administration import drilling  # noqa: PLC0415

    async with connected(namespace, changes=True) as place:
        archive = await place.find(name, drilling.DRILLED)
        body = await drilling.request(place.api, archive)
        if not waits:
            if not print_as(output, as_list([body], single=True), [archive.full]):
                say(f"a restore drill of {archive} is requested")
            return None

        def told(sentence: str) -> None:
            say(f"{archive}: {console.printable(sentence)}")

        return await drilling.until(place.api, archive, seconds=seconds, told=told)


def _tell(ended: Drilled, output: str) -> None:
    """Print the end of a drill, and end the command with its exit code."""
    archive, drill = ended.archive, ended.drill
    if not print_as(output, _json(ended), [archive.full]):
        if drill is None:
            console.err.print(f"the drill of {archive} has not ended yet: the time is over")
        elif drill.result == "Passed":
            say(f"{archive}: Passed: {console.printable(drill.message or '')}")
        else:
            word = f"{drill.result}: {ended.reason}" if ended.reason else f"{drill.result}"
            console.show_failed(archive, word, drill.message or "")
    ends(_code(ended))


def _json(ended: Drilled) -> dict[str, Any]:
    """Convert the end of a drill to JSON values."""
    archive, drill = ended.archive, ended.drill
    return {
        "kind": archive.spec.name,
        "namespace": archive.namespace,
        "name": archive.name,
        "reason": ended.reason,
        "drill": None if drill is None else drill.dump(),
    }


def _code(ended: Drilled) -> int:
    """Return the exit code, which follows from the result alone."""
    match None if ended.drill is None else ended.drill.result:
        case None:
            return OVER
        case "Passed":
            return 0
        case "Failed":
            return EXIT_CODES[Category.INTEGRITY]
        case _:
            return EXIT_CODES[Category.INFRASTRUCTURE]
