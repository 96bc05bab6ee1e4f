"""Functions that make thousands of resources at the API server, and delete them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from sluice.core.reconcile.copies.decide import reconcile
from sluice.core.workloads.request import identity_of
from sluice.kube.api.kinds import OWN, STREAM_COPY
from sluice.kube.api.objects import parse_copy
from support.cases import resources
from support.reconcile import copies

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Kind, Object

AT_ONCE: Final = 16
"""The most calls at a time."""

STORE: Final = "local"


def store(uri: str) -> Object:
    """Return the StreamStore that all resources name."""
    return resources.STORE | {"spec": {"pravega": {"controllerURI": uri}}}


def stream(scope: str, name: str) -> Object:
    """Return an EphemeralStream without an owner. It has its stream until it is deleted."""
    spec = {"storeRef": {"name": STORE}, "scope": scope, "stream": name}
    return resources.EPHEMERAL | {"metadata": {"name": name}, "spec": spec}


def copy(scope: str, name: str, source: str = "source", **spec: Any) -> Object:
    """Return a StreamCopy within a scope."""
    sides = {
        side: {"storeRef": {"name": STORE}, "scope": scope, "stream": stream}
        for side, stream in (("source", source), ("target", name))
    }
    return resources.COPY | {"metadata": {"name": name}, "spec": sides | spec}


async def make(api: Api, namespace: str, kind: Kind, bodies: Iterable[Object]) -> None:
    """Make resources."""

    async def one(body: Object) -> None:
        await api.create(kind, namespace, body)

    await each(one, bodies)


async def make_done(api: Api, namespace: str, bodies: Iterable[Object]) -> None:
    """Make StreamCopies that were done long ago, with the status that the operator left.

    The operator's cluster has the name of the namespace, so it has nothing to change.
    """
    decided = reconcile(copies.begun(), copies.world(answer=copies.WHOLE)).status
    status = decided.model_copy(update={"job_ref": None}).dump()

    async def one(body: Object) -> None:
        made = await api.create(STREAM_COPY, namespace, body)
        if made is None:
            return
        said = {key: body[key] for key in ("apiVersion", "kind", "metadata")}
        copy_id = identity_of(parse_copy(made), cluster=namespace)
        said["status"] = (
            status
            | {"copyID": copy_id}
            | {
                side: "/".join((STORE, body["spec"][side]["scope"], body["spec"][side]["stream"]))
                for side in ("source", "target")
            }
        )
        await api.apply(STREAM_COPY, namespace, said, subresource="status")

    await each(one, bodies)


async def free(api: Api, namespace: str) -> None:
    """Remove the finalizers of all resources in a namespace that is being deleted."""
    for kind in OWN.values():
        held = [
            body["metadata"]["name"]
            async for page in api.pages(kind, namespace, only_metadata=True)
            for body in page
            if body["metadata"].get("finalizers")
        ]

        async def one(name: str, kind: Kind = kind) -> None:
            await api.patch(kind, namespace, name, {"metadata": {"finalizers": None}})

        await each(one, held)


async def each(work: Callable[[Any], Coroutine[Any, Any, None]], items: Iterable[Any]) -> None:
    """Run a coroutine for each item, at most `AT_ONCE` at a time."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(item: Any) -> None:
        async with turns:
            await work(item)

    await asyncio.gather(*map(in_turn, items))
