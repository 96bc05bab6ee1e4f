"""Implement `sluice streams`: list, show, read and write streams, and find stale ones."""

from __future__ import annotations

import base64
import itertools
import json
import random
import sys
from functools import partial, wraps
from typing import IO, TYPE_CHECKING, Any, Final

import click

from sluice import console
from sluice.commands.copying import read as read_file
from sluice.commands.places import store_of, writable
from sluice.commands.shared import CREDENTIALS, OUTPUT, print_json, settings_of
from sluice.commands.stale import stale
from sluice.core.copy.planner import Position, Range
from sluice.core.values.model import Scaling, StreamConfig, StreamName
from sluice.engine.streams.overview import Forbidden, overview, overviews, scopes
from sluice.engine.streams.reading import events_of
from sluice.engine.streams.writing import BATCH, MOST_EVENT, EventWriter, Routed
from sluice.errors import InvalidSpec, PermissionDenied, SluiceError
from sluice.pipelines.programs.stores import Stores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from sluice.engine.streams.overview import Overview
    from sluice.engine.streams.reading import Event
    from sluice.stores.base import Store

_MOST_LINE: Final = MOST_EVENT + (1 << 16)
"""Bytes of a line that are read at once: an event with its routing key."""

MOST_SEGMENTS: Final = 1000
"""Most segments of a stream that `write` makes."""

STORE = click.option(
    "--store",
    "-s",
    envvar="SLUICE_STORE",
    metavar="STORE",
    help="The store: tcp://HOST:PORT of a Pravega controller, or the name of a StreamStore in "
    "--filename.  [env: SLUICE_STORE]",
)
STORES_FILE = click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="YAML with StreamStores; with one of them, --store can be left out. - reads standard "
    "input.",
)


@click.group()
def streams() -> None:
    """List, show, read and write streams; find those whose resource is gone.

    STREAM is SCOPE/STREAM.
    """


streams.add_command(stale)


def in_store(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a store. The command gets the open store before its arguments."""

    @STORE
    @STORES_FILE
    @CREDENTIALS
    @wraps(command)
    def opened(
        store: str | None, file: str | None, credentials_dir: Path | None, **arguments: Any
    ) -> None:
        if file == "-" and getattr(arguments.get("events"), "name", "") == "<stdin>":
            raise click.UsageError("both --filename and EVENTS are standard input: name a file")
        resources = None if file is None else read_file(file, copies=False)
        address = store_of(store, resources)
        with Stores(settings_of(credentials_dir)) as stores:
            command(stores[address], **arguments)

    return opened


@streams.command()
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


@streams.command()
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
    found = overview(place, _there(stream, place))
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


@streams.command()
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
    found = overview(place, _there(stream, place))
    offsets = found.head if at == "head" else found.tail
    text = place.write_cut(found.name, offsets)
    if output == "json":
        entries = [{"segmentID": one, "offset": offset} for one, offset in sorted(offsets.items())]
        print_json({"stream": str(found.name), "streamCut": text, "offsets": entries})
    else:
        click.echo(text)


@streams.command()
@click.argument("stream")
@click.option("--from", "begin", metavar="CUT", help="Where to begin.  [default: the head]")
@click.option("--to", "end", metavar="CUT", help="Where to end.  [default: the present tail]")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Print at most N events.")
@OUTPUT
@in_store
def read(
    place: Store,
    *,
    stream: str,
    begin: str | None,
    end: str | None,
    limit: int | None,
    output: str,
) -> None:
    """Print the events that a stream holds now, one a line.

    Events of one routing key come in their order. With --output json, each line is an object with
    segment, offset, and the event as text, or as base64 if it is no UTF-8.
    """
    wanted = Range(begin=Position(text=begin), end=Position(text=end))
    for event in itertools.islice(events_of(place, _there(stream, place), wanted), limit):
        _tell(event, output)


@streams.command()
@click.argument("stream")
@click.argument("events", type=click.File("rb"), default="-")
@click.option(
    "--key-delimiter",
    "-K",
    metavar="TEXT",
    help="The routing key of an event is the text before the first TEXT of its line.",
)
@click.option("--key", metavar="KEY", help="The routing key of all events.")
@click.option(
    "--create",
    type=click.IntRange(1, MOST_SEGMENTS),
    metavar="SEGMENTS",
    help="Make the stream with so many segments, and its scope, if it does not exist.",
)
@OUTPUT
@in_store
def write(
    place: Store,
    *,
    stream: str,
    events: IO[bytes],
    key_delimiter: str | None,
    key: str | None,
    create: int | None,
    output: str,
) -> None:
    """Write each line of EVENTS (a file; by default standard input) to a stream, as an event.

    Each event is stored once, also if connections break. Without a routing key, an event goes to
    any segment.
    """
    if key is not None and key_delimiter is not None:
        raise click.UsageError("give --key or --key-delimiter, not both")
    if key is not None and not key.isprintable():  # bytes that are no UTF-8 are in it
        raise click.UsageError("--key is no text")
    if key_delimiter is not None and not key_delimiter:
        raise click.UsageError("--key-delimiter is empty")
    name = writable(_name(stream), field="STREAM")
    if create is None:
        _check_there(name, place)
    else:
        _make(name, create, place)
    writer = EventWriter(place, name)
    try:
        writer.write(_routed(events, place.place_of, key, key_delimiter))
    except InvalidSpec as error:
        error.remedy = (
            f"The first {writer.whole:,} lines are stored. Correct this one, and write it and the "
            "lines after it."
        )
        raise
    except SluiceError as error:
        error.remedy = _rest(writer)
        raise
    except KeyboardInterrupt:
        console.err.print(f"Interrupted. {_rest(writer)}")
        sys.exit(130)
    count = sum(writer.stored.values())
    if output == "json":
        by_segment = [{"segmentID": one, "events": n} for one, n in writer.stored.items()]
        print_json({"stream": str(name), "events": count, "segments": by_segment})
    else:
        console.note.print(f"{count:,} events were written to {name}.", markup=False)


def _rest(writer: EventWriter) -> str:
    """Say what is stored of a file that could not be written as a whole."""
    return (
        f"The first {writer.whole:,} lines are stored, and perhaps some of the {BATCH:,} after "
        "them. A new run writes its lines anew: give it only the rest."
    )


def _routed(
    file: IO[bytes], place_of: Callable[[str], float], key: str | None, delimiter: str | None
) -> Iterator[Routed]:
    """Read events, and find the place of each one's routing key.

    Raises:
        InvalidSpec: a line is too long, has no routing key, or its key is no UTF-8.
    """
    fixed = None if key is None else place_of(key)
    lines = iter(partial(file.readline, _MOST_LINE), b"")
    for number, line in enumerate(lines, 1):
        data = line.removesuffix(b"\n")
        if len(data) > MOST_EVENT:
            raise InvalidSpec(f"line {number} has more than {MOST_EVENT:,} bytes", field="EVENTS")
        if delimiter is None:
            yield Routed(random.random() if fixed is None else fixed, data)  # noqa: S311 - no secret
            continue
        before, found, data = data.partition(delimiter.encode())
        try:
            text = before.decode()
        except UnicodeDecodeError:
            found = b""
        if not found:
            raise InvalidSpec(
                f"line {number} does not begin with a routing key in UTF-8 and {delimiter!r}",
                field="EVENTS",
            )
        yield Routed(place_of(text), data)


def _name(text: str) -> StreamName:
    """Read a stream's name.

    Raises:
        InvalidSpec: the text has another form.
    """
    scope, _, stream = text.partition("/")
    if not scope or not stream or "/" in stream:
        raise InvalidSpec(f"{text!r} is no stream", field="STREAM", remedy="Write SCOPE/STREAM.")
    return StreamName(scope=scope, stream=stream)


def _there(text: str, place: Store) -> StreamName:
    """Read a stream's name, and check that there is such a stream.

    Raises:
        InvalidSpec: the text has another form, or there is no such stream.
    """
    name = _name(text)
    _check_there(name, place)
    return name


def _check_there(name: StreamName, place: Store) -> None:
    """Raise InvalidSpec if there is no such stream."""
    if place.configuration(name) is None:
        raise InvalidSpec(
            f"there is no stream {name}",
            field="STREAM",
            remedy=f"sluice streams ls {name.scope} lists the scope's streams, and "
            "sluice streams write --create SEGMENTS makes one.",
        )


def _make(name: StreamName, segments: int, place: Store) -> None:
    """Make a stream with so many segments, and its scope, if they do not exist."""
    # Look first: a user who may not make scopes can still write to one that exists.
    if not place.scope_exists(name.scope):
        place.create_scope(name.scope)
    place.create_stream(name, StreamConfig(scaling=Scaling(min_segments=segments)))


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


def _tell(event: Event, output: str) -> None:
    """Print an event as a line: its bytes, or a JSON object."""
    if output == "text":
        sys.stdout.buffer.write(event.data + b"\n")
        return
    told: dict[str, Any] = {"segmentID": event.segment, "offset": event.offset}
    try:
        told["event"] = event.data.decode()
    except UnicodeDecodeError:
        told["base64"] = base64.b64encode(event.data).decode()
    click.echo(json.dumps(told))
