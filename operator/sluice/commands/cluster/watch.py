"""Implement `sluice watch`: show the progress of many resources until all of them are at rest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from sluice import console
from sluice.api.registry import DRIVEN
from sluice.api.status.common import ConditionType
from sluice.commands.cluster.get import WORDS
from sluice.commands.cluster.shared import (
    ALL_NAMESPACES,
    NAMESPACE,
    OVER,
    QUIET,
    SELECTOR,
    TIMEOUT,
    connected,
    ends,
    output_option,
    print_as,
    say,
)
from sluice.commands.cluster.verbs import awaited_json, highest, tell
from sluice.errors import EXIT_CODES, Category

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.administration.following import FollowedResource
    from sluice.administration.resources import Awaited


@click.command()
@WORDS
@NAMESPACE
@ALL_NAMESPACES
@SELECTOR
@TIMEOUT
@output_option("json", "yaml", "name")
@QUIET
def watch(
    *,
    words: Sequence[str],
    namespace: str | None,
    all_namespaces: bool,
    selector: str | None,
    timeout: float | None,
    output: str,
) -> None:
    """Show the progress of resources until all are ready, stalled or suspended.

    Names are as for get; without KIND, copies and archives are shown. The exit code is that of
    wait. It is 124 if resources are suspended, or the time is over.
    """
    found = asyncio.run(
        _watch(words, namespace, selector, timeout, output, everywhere=all_namespaces)
    )
    if not print_as(
        output,
        [awaited_json(_awaited(one)) for one in found],
        [one.resource.full for one in found],
    ):
        _tell(found)
    ends(max(map(_code, found), default=0))


async def _watch(
    words: Sequence[str],
    namespace: str | None,
    selector: str | None,
    seconds: float | None,
    output: str,
    *,
    everywhere: bool,
) -> list[FollowedResource]:
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.administration import following, naming  # noqa: PLC0415

    wanted = naming.wanted(words) if words else [naming.WantedResources(kind) for kind in DRIVEN]
    naming.require_one_place(wanted, everywhere=everywhere, labels=selector)
    if output != "text":
        console.hush()
    found: list[FollowedResource] = []
    async with connected(namespace, everywhere=everywhere) as place:
        with console.Watching(namespaces=everywhere) as bars:
            looks = following.follow(
                place.api, wanted, place.namespace, labels=selector, seconds=seconds
            )
            async for found in looks:
                bars.show(found)
    if not found:
        say(f"There are no such resources in {place.name}.")
    return found


def _tell(found: Sequence[FollowedResource]) -> None:
    """Print the resources that are not ready, and why."""
    for one in found:
        if one.gone:
            console.err.print(f"{one.resource} was deleted", markup=False)
        elif one.suspended and one.end is None:
            console.err.print(f"{one.resource} is suspended", markup=False)
        elif one.end is None or not one.end.met:
            tell(_awaited(one), ConditionType.READY)


def _awaited(one: FollowedResource) -> Awaited:
    """Return how the wait for a resource ended."""
    from sluice.administration import resources  # noqa: PLC0415 - takes a second

    return one.end or resources.Awaited(one.resource, None, met=False)


def _code(one: FollowedResource) -> int:
    """Return the exit code of a resource: wait's, and that of wrong input if it was deleted."""
    if one.end is not None:
        return highest([one.end])
    return EXIT_CODES[Category.SPEC] if one.gone else OVER
