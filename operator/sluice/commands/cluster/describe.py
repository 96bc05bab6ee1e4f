"""Implement `sluice describe`: show a resource on one page."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from sluice import console
from sluice.api.registry import KINDS
from sluice.commands.cluster.shared import (
    NAMES,
    NAMESPACE,
    QUIET,
    connected,
    output_option,
    print_as,
    shortened,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.administration.description import Description


@click.command()
@NAMES
@NAMESPACE
@output_option("json", "yaml", "name")
@QUIET
def describe(names: Sequence[str], *, namespace: str | None, output: str) -> None:
    """Show a resource on one page: spec, conditions, progress, attempts, events, the next step."""
    found = asyncio.run(_describe(names, namespace))
    if print_as(output, [_json(one) for one in found], [one.resource.full for one in found]):
        return
    for number, one in enumerate(found):
        if number:
            console.out.print()
        console.show_description(one, now=datetime.now(UTC))


async def _describe(names: Sequence[str], namespace: str | None) -> list[Description]:
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.administration import description  # noqa: PLC0415

    async with connected(namespace) as place:
        resources = [await place.find(name, KINDS) for name in names]
        return [await description.describe(place.api, one) for one in resources]


def _json(found: Description) -> dict[str, Any]:
    """Convert a description to JSON values."""
    return {
        "resource": shortened(found.body),
        "attempts": [
            {
                "attempt": one.number,
                "job": shortened(one.job),
                "pods": [shortened(pod) for pod in one.pods],
            }
            for one in found.attempts
        ],
        "events": [shortened(event) for event in found.events],
        "forbidden": found.forbidden,
        "nextStep": found.next_step,
    }
