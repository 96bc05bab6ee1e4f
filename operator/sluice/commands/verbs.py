"""Implement `sluice suspend | resume | retry | wait`: act on resources of a cluster by verbs."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from sluice import console
from sluice.api.registry import KINDS
from sluice.api.status.common import ConditionType
from sluice.commands.shared import EXIT_CODES, OUTPUT, print_json
from sluice.core.catalogue import failures
from sluice.errors import Category

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sluice.administration.resources import Awaited, Named
    from sluice.kube.api.client import Api

MANAGER: Final = "sluice"
"""The name under which the API server notes what a person has changed."""

OVER: Final = 124
"""Exit code of a wait whose time was over, as of timeout(1)."""

_SUSPENDED: Final = tuple(kind for kind in KINDS if kind.suspends)
_RETRIED: Final = tuple(kind for kind in KINDS if kind.uses_stores)

NAMES = click.argument("names", nargs=-1, required=True, metavar="[KIND/]NAME...")
NAMESPACE = click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    help="The namespace.  [default: the namespace of KUBECONFIG's context, or the pod's]",
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print errors only.")


@click.command()
@NAMES
@NAMESPACE
@QUIET
def suspend(names: Sequence[str], namespace: str | None, *, quiet: bool) -> None:
    """Stop the work for resources, which keep their progress.

    A copy keeps its staged bytes. resume goes on with it.
    """
    _set_suspended(names, namespace, suspended=True, quiet=quiet)


@click.command()
@NAMES
@NAMESPACE
@QUIET
def resume(names: Sequence[str], namespace: str | None, *, quiet: bool) -> None:
    """Go on with the work for resources that are suspended."""
    _set_suspended(names, namespace, suspended=False, quiet=quiet)


def _set_suspended(
    names: Sequence[str], namespace: str | None, *, suspended: bool, quiet: bool
) -> None:
    from sluice.administration import resources  # noqa: PLC0415 - takes a second

    async def act(api: Api, resource: Named) -> None:
        await resources.suspend(api, resource, suspended=suspended)
        _say(f"{resource} is {'suspended' if suspended else 'resumed'}", quiet=quiet)

    asyncio.run(_each(names, namespace, act, _SUSPENDED))


@click.command()
@NAMES
@NAMESPACE
@QUIET
def retry(names: Sequence[str], namespace: str | None, *, quiet: bool) -> None:
    """Try again at once, in place of waiting, or after a failure that was mended.

    A StreamArchive begins a run. A ScopeCopy copies the streams that are missing. A copy that is
    whole is checked, and stays as it is.
    """
    from sluice.administration import resources  # noqa: PLC0415 - takes a second

    async def act(api: Api, resource: Named) -> None:
        await resources.retry(api, resource)
        _say(f"{resource} is tried again", quiet=quiet)

    asyncio.run(_each(names, namespace, act, _RETRIED))


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
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help=f"Exit with {OVER} after this time.  [default: no limit]",
)
@NAMESPACE
@OUTPUT
@QUIET
def wait(
    names: Sequence[str],
    *,
    wanted: str,
    timeout: float | None,
    namespace: str | None,
    output: str,
    quiet: bool,
) -> None:
    """Wait until resources are ready, or are stalled.

    A stalled resource ends the wait at once, with its reason and the exit code of its failure.
    """
    from sluice.administration import resources  # noqa: PLC0415 - takes a second

    async def act(api: Api, resource: Named) -> Awaited:
        return await resources.until(api, resource, ConditionType(wanted), seconds=timeout)

    ends = asyncio.run(_each(names, namespace, act, KINDS))
    if output == "json":
        print_json([_json(one) for one in ends])
    else:
        for one in ends:
            _tell(one, wanted, quiet=quiet)
    sys.exit(max(map(_code, ends)))


async def _each(
    names: Sequence[str],
    namespace: str | None,
    act: Callable[[Api, Named], Awaitable[Any]],
    kinds: Sequence[Any],
) -> list[Any]:
    """Find all resources, then act on them side by side. Nothing is done if one is missing."""
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.administration.resources import find  # noqa: PLC0415
    from sluice.kube.api.client import Api  # noqa: PLC0415
    from sluice.kube.api.context import current_namespace  # noqa: PLC0415

    async with await Api.connect(manager=MANAGER) as api:
        place = namespace or current_namespace()
        found = [await find(api, place, name, kinds=kinds) for name in names]
        return list(await asyncio.gather(*(act(api, one) for one in found)))


def _say(text: str, *, quiet: bool) -> None:
    if not quiet:
        console.err.print(text, markup=False)


def _tell(one: Awaited, wanted: str, *, quiet: bool) -> None:
    """Print how a wait ended."""
    if one.condition is None:
        console.err.print(f"{one.resource} is not {wanted} yet: the time is over", markup=False)
    elif one.met:
        message = console.printable(one.message or "")
        _say(f"{one.resource} is {wanted}: {message}", quiet=quiet)
    else:
        console.err.print(f"{one.resource}: [bold red]{one.condition.reason}[/]: ", end="")
        console.err.print(console.printable(one.message or ""), markup=False)


def _json(one: Awaited) -> dict[str, Any]:
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
