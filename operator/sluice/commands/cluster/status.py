"""Implement `sluice status`: show how far a cluster's copies are, and how each stream ended."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import click

from sluice import console
from sluice.api.fields.common import GROUP
from sluice.api.registry import DRIVEN
from sluice.api.status.common import ConditionType
from sluice.commands.cluster.completion import complete_driven
from sluice.commands.cluster.shared import (
    ALL_NAMESPACES,
    NAMESPACE,
    QUIET,
    connected,
    output_option,
    print_as,
    say,
)

if TYPE_CHECKING:
    from sluice.administration.overview import Reported

WATCH_SECONDS: Final = 2.0
"""Seconds between two looks of --watch."""

MOST_STREAMS: Final = 50
"""How many streams of a ScopeCopy are shown without --all."""


@click.command()
@click.argument("name", metavar="[[KIND/]NAME]", required=False, shell_complete=complete_driven)
@NAMESPACE
@ALL_NAMESPACES
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help=f"Show them again every {WATCH_SECONDS:g} seconds, until no copy is at work.",
)
@click.option("--failed", is_flag=True, help="Of the streams, show only those that failed.")
@click.option(
    "--all", "everything", is_flag=True, help=f"Show all streams, not only {MOST_STREAMS} a copy."
)
@output_option("json", "yaml", "name")
@QUIET
def status(
    *,
    name: str | None,
    namespace: str | None,
    all_namespaces: bool,
    watch: bool,
    failed: bool,
    everything: bool,
    output: str,
) -> None:
    """Show copies in a cluster: how far they are, and what became of each stream.

    NAME is that of a copy or an archive; without it, all of them are shown. Streams that failed
    come first. It is the operator's report, so no store is asked.
    """
    if watch and output != "text":
        raise click.UsageError(f"--watch is for people: leave out --output {output}")
    found = asyncio.run(_read(name, namespace, all_namespaces=all_namespaces))
    while watch and any(map(_is_at_work, found)):
        console.out.clear()
        console.show_overview(found, failed=failed, most=None if everything else MOST_STREAMS)
        time.sleep(WATCH_SECONDS)
        found = asyncio.run(_read(name, namespace, all_namespaces=all_namespaces))
    names = [f"{one.kind.lower()}.{GROUP}/{one.name}" for one in found]
    if print_as(output, [_json(one, failed=failed) for one in found], names):
        return
    if not found:
        say("There are no copies.")
    else:
        console.show_overview(found, failed=failed, most=None if everything else MOST_STREAMS)


def _is_at_work(one: Reported) -> bool:
    """Tell whether the operator works on a copy. Nothing but a person ends other states."""
    at_work = one.status.condition(ConditionType.RECONCILING)
    unseen = not one.status.conditions
    return one.deleting or unseen or (at_work is not None and at_work.status == "True")


async def _read(name: str | None, namespace: str | None, *, all_namespaces: bool) -> list[Reported]:
    """Read the copies that the options name."""
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.administration.naming import kinds_of, missing  # noqa: PLC0415
    from sluice.administration.overview import overview  # noqa: PLC0415

    word, slash, bare = (name or "").rpartition("/")
    kinds = kinds_of(word, DRIVEN) if slash else DRIVEN
    async with connected(namespace, everywhere=all_namespaces) as place:
        found = await overview(place.api, place.namespace, bare or None)
        found = [one for one in found if one.kind in {kind.name for kind in kinds}]
        if name is not None and not found:
            raise await missing(place.api, kinds, place.namespace, bare)
    return found


def _json(one: Reported, *, failed: bool) -> dict[str, Any]:
    """Convert a copy to JSON values, with its whole status and the results of its streams."""
    streams = None
    if one.streams is not None:
        shown = console.by_state(one.streams, failed=failed)
        streams = [result.model_dump(mode="json") for result in shown]
    return {
        "kind": one.kind,
        "namespace": one.namespace,
        "name": one.name,
        "source": one.source,
        "target": one.target,
        "deleting": one.deleting,
        "status": one.status.dump(),
        "streams": streams,
    }
