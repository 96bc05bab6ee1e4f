"""Implement `sluice drain`: release resources before the operator is uninstalled."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from typing import TYPE_CHECKING

import click

from sluice import console

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.administration.cleanup.holders import Holder

MOST_COMMANDS, MOST_NAMES = 6, 4
"""How many commands are shown, and how many names in each command. A pod's termination message
keeps only 2,048 bytes of its log.
"""

REFUSED, LEFT = 2, 3
"""Exit codes: resources hold something and were not touched; resources could not be released."""


@click.command()
@click.option(
    "--policy",
    type=click.Choice(["refuse", "delete", "orphan"]),
    required=True,
    help="refuse: only tell what is held. delete: delete EphemeralStreams, archives with "
    "a schedule and all that is not finished, with what they hold. orphan: delete those that hold "
    "something, and leave that in the stores.",
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Only the resources of this namespace; may be repeated.  [default: all]",
)
@click.option(
    "--exclude",
    "excluded",
    multiple=True,
    metavar="PATTERN",
    help="No resources of namespaces of such names, where * stands for any characters; may be "
    "repeated.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="For how long the operator is waited for.",
)
def drain(
    *, policy: str, namespaces: tuple[str, ...], excluded: tuple[str, ...], timeout: float
) -> None:
    """Let everything go that is held in stores, before the operator is uninstalled.

    Without an operator, no process cleans up in the stores, and resources that hold something
    there cannot be deleted. delete needs the operator still; orphan does without it. Exits with 2
    if refuse finds something, and with 3 if something is left in the end.
    """
    left = asyncio.run(_drain(policy, namespaces, excluded, timeout))
    if not left:
        console.note.print("Nothing is held in a store: the operator can be uninstalled.")
        return
    for one in left:
        _show(one)
    _advise(policy, left)
    sys.exit(REFUSED if policy == "refuse" else LEFT)


async def _drain(
    policy: str,
    namespaces: tuple[str, ...],
    excluded: tuple[str, ...],
    timeout: float,  # noqa: ASYNC109 - for the whole
) -> list[Holder]:
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.administration.cleanup.drain import Drainer, DrainPolicy  # noqa: PLC0415
    from sluice.kube.api.client import Api  # noqa: PLC0415
    from sluice.kube.loop.served import Served  # noqa: PLC0415

    async with await Api.connect() as api:
        work = Drainer(api, Served(namespaces, excluded), timeout=timeout, say=_say)
        return await work.run(DrainPolicy(policy))


def _say(line: str) -> None:
    console.err.print(line, markup=False)


def _show(one: Holder) -> None:
    """Print what a resource holds, and why it still exists."""
    state = " (being deleted)" if one.deleting else ""
    _say(f"{one.title}{state}: {one.where}")
    if one.says:
        _say(f"  {one.says}")


def _advise(policy: str, left: list[Holder]) -> None:
    """Print what the result means, and what to do.

    It comes last, since a pod's termination message is the end of its log.
    """
    held = "1 resource is" if len(left) == 1 else f"{len(left)} resources are"
    if policy != "refuse":
        _say(
            f"LEFT: {held} still there. Look at what they say above and run this again; "
            "--policy orphan leaves behind in the stores what they hold."
        )
        return
    _say(
        f"REFUSED: {held} listed above. Without the operator, nothing would delete what they hold "
        "in stores, and neither they nor their StreamStores and namespaces could be deleted."
    )
    _say("To delete just these, with what they hold, while the operator runs:")
    commands = deletions(left)
    for command in commands[:MOST_COMMANDS]:
        _say(f"  {command}")
    if len(commands) > MOST_COMMANDS:
        _say("  then sluice drain --policy refuse, which tells the rest.")
    _say("To leave it behind in the stores: sluice drain --policy orphan. Then uninstall again.")


def deletions(left: Iterable[Holder]) -> list[str]:
    """Write the commands that delete these resources and no others, a few names in each.

    StreamStores need none: the operator lets go of them when nothing uses them any more.
    """
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in left:
        if one.kind.name != "StreamStore":
            names[one.namespace, one.kind.plural].append(one.name)
    return [
        f"kubectl -n {namespace} delete {plural} {' '.join(sorted(found)[at : at + MOST_NAMES])}"
        for (namespace, plural), found in sorted(names.items())
        for at in range(0, len(found), MOST_NAMES)
    ]
