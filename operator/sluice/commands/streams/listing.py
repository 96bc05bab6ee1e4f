"""Implement `sluice streams ls | show | cut`: show scopes and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sluice import console
from sluice.commands.shared import OUTPUT, print_json
from sluice.commands.streams.shared import existing, in_store
from sluice.engine.streams.overview import Forbidden, overview, overviews, scopes
from sluice.errors import InvalidSpec, PermissionDenied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.engine.streams.overview import Overview
    from sluice.stores.base import Store


@click.command()
@click.argument("scope", required=False)
@OUTPUT
@in_store
def ls(
    place: Store,
    *,
    scope: str | None,
    output: str,
) -> None:
    """List the streams of SCOPE with their sizes; without SCOPE, list the scopes.

    Streams that the login may not look at are listed as not permitted. Exit code 3: there are some.
    """
    if scope is None:
        found = scopes(place)
        if output == "json":
            print_json([{"scope": name, "streams": count} for name, count in found])
        else:
            console.show_scopes(found)
        forbidden = [name for name, count in found if count is None]
        _end_with(forbidden, "scope", "READ on it and on its streams")
        return
    if not place.scope_exists(scope):
        raise InvalidSpec(
            f"there is no scope {scope}",
            field="SCOPE",
            remedy="sluice streams ls lists the scopes.",
        )
    listed = overviews(place, scope)
    if output == "json":
        print_json([_json(one) for one in listed])
    else:
        console.show_streams(scope, listed)
    forbidden = [str(one.name) for one in listed if isinstance(one, Forbidden)]
    _end_with(forbidden, "stream", "READ_UPDATE on it, since listing segments needs it")


def _end_with(forbidden: Sequence[str], what: str, right: str) -> None:
    """End the command with an error if something was not permitted.

    Args:
        forbidden: the names of these things.
        what: the word for one of them.
        right: the right that is missing.

    Raises:
        PermissionDenied: something was not permitted.
    """
    if not forbidden:
        return
    many = f"1 {what}" if len(forbidden) == 1 else f"{len(forbidden):,} {what}s"
    raise PermissionDenied(
        f"this login may not look at {many}, such as {forbidden[0]}",
        remedy=f"Grant the user {right}, or log in as another user.",
    )


@click.command()
@click.argument("stream")
@OUTPUT
@in_store
def show(
    place: Store,
    *,
    stream: str,
    output: str,
) -> None:
    """Show a stream: policies, tags, segments, and where it begins and ends."""
    found = overview(place, existing(stream, place))
    cuts = {
        "head": place.write_cut(found.name, found.head),
        "tail": place.write_cut(found.name, found.tail),
    }
    if output == "json":
        segments = [
            {
                "segmentID": one.id,
                "lowKey": one.keys.low,
                "highKey": one.keys.high,
                "from": one.start,
                "to": one.end,
                "events": one.events,
            }
            for one in found.segments
        ]
        config = found.stream.config.model_dump(mode="json", by_alias=True)
        print_json({**_json(found), **config, "segmentList": segments, **cuts})
    else:
        console.show_stream(found, cuts)


@click.command()
@click.argument("stream")
@click.option(
    "--at",
    type=click.Choice(["head", "tail"]),
    default="tail",
    show_default=True,
    help="Which end of the stream.",
)
@OUTPUT
@in_store
def cut(
    place: Store,
    *,
    stream: str,
    at: str,
    output: str,
) -> None:
    """Print a StreamCut of a stream's end, as text for ranges of copies and for clients."""
    found = overview(place, existing(stream, place))
    offsets = found.head if at == "head" else found.tail
    text = place.write_cut(found.name, offsets)
    if output == "json":
        entries = [{"segmentID": one, "offset": offset} for one, offset in sorted(offsets.items())]
        print_json({"stream": str(found.name), "streamCut": text, "offsets": entries})
    else:
        click.echo(text)


def _json(one: Overview | Forbidden) -> dict[str, Any]:
    if isinstance(one, Forbidden):
        return {"stream": str(one.name), "error": one.error.reason}
    return {
        "stream": str(one.name),
        "segments": len(one.stream.tail),
        "bytes": one.bytes,
        "events": one.events,
        "sealed": one.stream.sealed,
    }
