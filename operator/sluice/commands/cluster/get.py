"""Implement `sluice get`: list resources of a cluster, as kubectl lists them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from sluice import console
from sluice.commands.cluster.completion import complete_words
from sluice.commands.cluster.shared import (
    ALL_NAMESPACES,
    NAMESPACE,
    QUIET,
    SELECTOR,
    as_list,
    connected,
    output_option,
    print_as,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS = click.argument(
    "words",
    nargs=-1,
    metavar="[KIND[,KIND] [NAME...] | KIND/NAME...]",
    shell_complete=complete_words,
)


@click.command()
@WORDS
@NAMESPACE
@ALL_NAMESPACES
@SELECTOR
@output_option("wide", "json", "yaml", "name")
@QUIET
def get(
    *,
    words: Sequence[str],
    namespace: str | None,
    all_namespaces: bool,
    selector: str | None,
    output: str,
) -> None:
    """List resources, in the columns of kubectl get; without KIND, those of all kinds.

    A KIND is any name of it, such as streamcopy, streamcopies or scopy.
    """
    asyncio.run(_get(words, namespace, selector, output, everywhere=all_namespaces))


async def _get(
    words: Sequence[str],
    namespace: str | None,
    selector: str | None,
    output: str,
    *,
    everywhere: bool,
) -> None:
    from sluice.administration import naming, tables  # noqa: PLC0415 - takes a second

    wanted = naming.wanted(words)
    naming.require_one_place(wanted, everywhere=everywhere, labels=selector)
    single = len(wanted) == 1 and wanted[0].name is not None
    async with connected(namespace, everywhere=everywhere) as place:
        if output in {"json", "yaml"}:
            pairs = await tables.bodies(place.api, wanted, place.namespace, labels=selector)
            print_as(output, as_list([body for _, body in pairs], single=single), ())
            return
        found = await tables.tables(place.api, wanted, place.namespace, labels=selector)
    names = [row.resource.full for table in found for row in table.rows]
    if print_as(output, None, names):
        return
    if not names:
        say(f"There are no resources in {place.name}.")
    console.show_tables(
        found,
        wide=output == "wide",
        namespaces=everywhere,
        kinds=len({one.spec.name for one in wanted}) > 1,
    )
