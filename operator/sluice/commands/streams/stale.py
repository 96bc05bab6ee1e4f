"""Implement `sluice streams stale`: find streams whose resource is gone, and delete them."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from sluice import console
from sluice.commands.shared import OUTPUT, print_json, settings_of
from sluice.errors import EXIT_CODES, SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.administration.cleanup.stale import Search, Stale, StaleStreams


@click.command()
@click.option("--store", metavar="STREAMSTORE", help="Only the StreamStore of this name.")
@click.option("--namespace", metavar="NAME", help="Only the StreamStores of this namespace.")
@click.option(
    "--cluster-id",
    envvar="SLUICE_CLUSTER_ID",
    default="",
    help="The operator's clusterID, where it was given one.  [default: the UID of kube-system]",
)
@click.option("--delete", is_flag=True, help="Seal and delete them.")
@click.option("--yes", is_flag=True, help="With --delete: do not ask.")
@OUTPUT
def stale(
    *,
    store: str | None,
    namespace: str | None,
    cluster_id: str,
    delete: bool,
    yes: bool,
    output: str,
) -> None:
    """List this cluster's streams whose EphemeralStream is gone.

    Each StreamStore's store is asked for streams with this cluster's tag. Those of another cluster
    are neither listed nor touched. --delete looks at resources and tags once more before each.
    """
    sure = (lambda _: True) if yes else _confirmed
    asked = _stale(store, namespace, cluster_id, output=output, sure=sure if delete else None)
    sys.exit(asyncio.run(asked))


async def _stale(
    store: str | None,
    namespace: str | None,
    given: str,
    *,
    output: str,
    sure: Callable[[list[Stale]], bool] | None,
) -> int:
    """List stale streams, and delete them if `sure` confirms it; without `sure` only list them.

    Returns:
        The exit code, which is that of the worst failure.
    """
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.administration.cleanup.stale import StaleStreams  # noqa: PLC0415
    from sluice.kube.api.client import Api  # noqa: PLC0415
    from sluice.kube.api.identity import cluster_id  # noqa: PLC0415
    from sluice.kube.stores.connections import Connections  # noqa: PLC0415

    async with await Api.connect() as api:
        cluster = await cluster_id(api, given)
        connections = Connections(api, replace(settings_of(None), cluster_id=cluster))
        try:
            work = StaleStreams(api, connections, cluster)
            search = await work.find(namespace, store)
            if output == "text":
                _show(search.found)
            code = _tell_unasked(search)
            deleted: dict[Stale, int | None] = {}
            if sure is not None and search.found and sure(search.found):
                deleted, failed = await _delete(work, search.found)
                code = max(code, failed)
            if output == "json":
                print_json([_json(one, deleted.get(one)) for one in search.found])
            return code
        finally:
            connections.close()


def _show(found: list[Stale]) -> None:
    if not found:
        console.out.print("There are no streams whose EphemeralStream is gone.")
    for one in found:
        store = f"StreamStore {one.namespace}/{one.store} ({one.address.uri})"
        names = ", ".join(one.tagged.streams) or "none now"
        what = names if one.tagged.prefix is None else f"{one.tagged.prefix}*: {names}"
        console.out.print(
            f"{store} scope {one.tagged.scope}: {what}; was of {one.tagged.resource}",
            markup=False,
        )


def _tell_unasked(search: Search) -> int:
    """Print the StreamStores that could not be asked, and return the exit code."""
    for name, error in search.unasked:
        console.err.print(f"StreamStore {name} could not be asked:", markup=False)
        console.show_error(error)
    return max((EXIT_CODES[error.category] for _, error in search.unasked), default=0)


def _confirmed(found: list[Stale]) -> bool:
    """Ask the user at the terminal to confirm the deletion."""
    count = sum(len(one.tagged.streams) for one in found)
    try:
        sure = click.confirm(f"Delete these {count} streams and what is in them?", err=True)
    except click.Abort:
        raise click.UsageError(
            "there is no terminal to ask: add --yes to delete without a question"
        ) from None
    if not sure:
        console.err.print("Nothing was deleted.")
    return sure


async def _delete(work: StaleStreams, found: list[Stale]) -> tuple[dict[Stale, int | None], int]:
    """Delete stale streams, one claim after the other.

    Returns:
        How many streams of each were deleted, None if it has an owner again; and the exit code.
    """
    deleted: dict[Stale, int | None] = {}
    code = 0
    for one in found:
        what = f"{one.tagged.scope}/{one.tagged.prefix or one.tagged.stream}"
        try:
            deleted[one] = await work.delete(one)
        except SluiceError as error:
            console.err.print(f"{what} could not be deleted:", markup=False)
            console.show_error(error)
            code = max(code, EXIT_CODES[error.category])
        else:
            left = deleted[one] is None
            said = "left alone: it has an owner by now" if left else f"{deleted[one]} deleted"
            console.note.print(f"{what}: {said}", markup=False)
    return deleted, code


def _json(one: Stale, deleted: int | None) -> dict[str, Any]:
    """Convert a stale stream or prefix to JSON values; `deleted` counts its deleted streams."""
    return {
        "namespace": one.namespace,
        "streamStore": one.store,
        "uri": one.address.uri,
        "scope": one.tagged.scope,
        "stream": None if one.tagged.prefix else one.tagged.stream,
        "streamPrefix": one.tagged.prefix,
        "streams": list(one.tagged.streams),
        "resource": one.tagged.resource,
        "uid": one.tagged.uid,
        "deleted": deleted,
    }
