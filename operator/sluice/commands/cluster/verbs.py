"""Implement `sluice suspend | resume | retry | wait`: act on resources of a cluster by verbs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import click

from sluice import console
from sluice.api.registry import KINDS
from sluice.api.status.common import ConditionType
from sluice.commands.cluster.shared import (
    NAMES,
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
from sluice.core.catalogue import failures
from sluice.errors import EXIT_CODES, Category

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from sluice.administration.naming import Named
    from sluice.administration.resources import Awaited
    from sluice.api.registry import KindSpec
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

_SUSPENDED: Final = tuple(kind for kind in KINDS if kind.suspends)
_RETRIED: Final = tuple(kind for kind in KINDS if kind.uses_stores)

_CHANGED = output_option("json", "yaml", "name")


@click.command()
@NAMES
@NAMESPACE
@_CHANGED
@QUIET
def suspend(names: Sequence[str], namespace: str | None, output: str) -> None:
    """Stop the work for resources, which keep their progress.

    A copy keeps its staged bytes. resume goes on with it.
    """
    _set_suspended(names, namespace, output, suspended=True)


@click.command()
@NAMES
@NAMESPACE
@_CHANGED
@QUIET
def resume(names: Sequence[str], namespace: str | None, output: str) -> None:
    """Go on with the work for resources that are suspended."""
    _set_suspended(names, namespace, output, suspended=False)


def _set_suspended(
    names: Sequence[str], namespace: str | None, output: str, *, suspended: bool
) -> None:
    from sluice.administration import resources  # noqa: PLC0415 - takes a second

    async def act(api: Api, resource: Named) -> Object:
        return await resources.suspend(api, resource, suspended=suspended)

    done = asyncio.run(_each(names, namespace, act, _SUSPENDED, changes=True))
    _tell_changed(done, output, "suspended" if suspended else "resumed")


@click.command()
@NAMES
@NAMESPACE
@_CHANGED
@QUIET
def retry(names: Sequence[str], namespace: str | None, output: str) -> None:
    """Try again at once, in place of waiting, or after a failure that was mended.

    A StreamArchive begins a run, and so does a ScopeCopy with a schedule. Any other ScopeCopy
    copies the streams that are missing. A copy that is whole is checked, and stays as it is.
    """
    from sluice.administration import resources  # noqa: PLC0415 - takes a second

    done = asyncio.run(_each(names, namespace, resources.retry, _RETRIED, changes=True))
    _tell_changed(done, output, "tried again")


def _tell_changed(done: Sequence[tuple[Named, Object]], output: str, word: str) -> None:
    """Print resources that were changed."""
    value = as_list([body for _, body in done], single=True)
    if not print_as(output, value, [one.full for one, _ in done]):
        for one, _ in done:
            say(f"{one} is {word}")


@click.command()
@NAMES
@click.option(
    "--for",
    "wanted",
    type=click.Choice([one.value for one in ConditionType]),
    default=ConditionType.READY.value,
    show_default=True,
    help="The condition that has to be True.",
)
@TIMEOUT
@NAMESPACE
@output_option("json", "yaml", "name")
@QUIET
def wait(
    names: Sequence[str],
    *,
    wanted: str,
    timeout: float | None,
    namespace: str | None,
    output: str,
) -> None:
    """Wait until resources are ready, or are stalled.

    A stalled resource ends the wait at once, with its reason and the exit code of its failure.
    """
    from sluice.administration import resources  # noqa: PLC0415 - takes a second

    async def act(api: Api, resource: Named) -> Awaited:
        return await resources.until(api, resource, ConditionType(wanted), seconds=timeout)

    done = asyncio.run(_each(names, namespace, act, KINDS))
    tell_awaited([end for _, end in done], wanted, output)


def tell_awaited(waits: Sequence[Awaited], wanted: str, output: str) -> None:
    """Print how waits ended, and end the command with the highest of their exit codes."""
    if not print_as(output, list(map(awaited_json, waits)), [one.resource.full for one in waits]):
        for one in waits:
            tell(one, wanted)
    ends(highest(waits))


def highest(waits: Iterable[Awaited]) -> int:
    """Return the highest exit code of some waits."""
    return max(map(_code, waits), default=0)


async def _each(
    names: Sequence[str],
    namespace: str | None,
    act: Callable[[Api, Named], Awaitable[Any]],
    kinds: Sequence[KindSpec],
    *,
    changes: bool = False,
) -> list[tuple[Named, Any]]:
    """Find all resources, then act on them side by side. Nothing is done if one is missing."""
    async with connected(namespace, changes=changes) as place:
        found = [await place.find(name, kinds) for name in names]
        done = await asyncio.gather(*(act(place.api, one) for one in found))
        return list(zip(found, done, strict=True))


def tell(one: Awaited, wanted: str) -> None:
    """Print how a wait ended."""
    if one.condition is None:
        console.err.print(f"{one.resource} is not {wanted} yet: the time is over", markup=False)
    elif one.met:
        say(f"{one.resource} is {wanted}: {console.printable(one.message or '')}")
    else:
        console.show_failed(one.resource, one.condition.reason, one.message or "")


def awaited_json(one: Awaited) -> dict[str, Any]:
    """Convert the end of a wait to JSON values."""
    condition = one.condition
    return {
        "kind": one.resource.spec.name,
        "namespace": one.resource.namespace,
        "name": one.resource.name,
        "met": one.met,
        "condition": None if condition is None else condition.type,
        "reason": None if condition is None else condition.reason,
        "message": one.message,
    }


def _code(one: Awaited) -> int:
    """Return the exit code of a wait; of a stalled resource, that of the failure's category."""
    if one.met:
        return 0
    if one.condition is None:
        return OVER
    categories = {failure.name: failure.category for failure in failures()}
    return EXIT_CODES[categories.get(one.condition.reason, Category.SPEC)]
