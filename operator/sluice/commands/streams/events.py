"""Implement `sluice streams read | write`: print events, and write lines as events."""

from __future__ import annotations

import base64
import itertools
import json
import random
import sys
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

import click

from sluice import console
from sluice.commands.places import writable
from sluice.commands.shared import OUTPUT, print_json
from sluice.commands.streams.shared import check_exists, existing, in_store, name_of
from sluice.core.copy.planner import Range, RangeEnd
from sluice.core.values.model import Scaling, StreamConfig, StreamName
from sluice.engine.streams.reading import events_of
from sluice.engine.streams.writing import BATCH, MOST_EVENT, EventWriter, Routed
from sluice.errors import InvalidSpec, SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.engine.streams.reading import Event
    from sluice.stores.base import Store

_MOST_LINE: Final = MOST_EVENT + (1 << 16)
"""Bytes of a line that are read at once: an event with its routing key."""

MOST_SEGMENTS: Final = 1000
"""Most segments of a stream that `write` makes."""


@click.command()
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
    wanted = Range(begin=RangeEnd(text=begin), end=RangeEnd(text=end))
    for event in itertools.islice(events_of(place, existing(stream, place), wanted), limit):
        sys.stdout.buffer.write(line_of(event, output, terminal=sys.stdout.isatty()))


@click.command()
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
    name = writable(name_of(stream), field="STREAM")
    if create is None:
        check_exists(name, place)
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
    """Say how much is stored of a file that could not be written as a whole."""
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


def _make(name: StreamName, segments: int, place: Store) -> None:
    """Make a stream with so many segments, and its scope, if they do not exist."""
    # Look first: a user who may not make scopes can still write to one that exists.
    if not place.scope_exists(name.scope):
        place.create_scope(name.scope)
    place.create_stream(name, StreamConfig(scaling=Scaling(min_segments=segments)))


def line_of(event: Event, output: str, *, terminal: bool) -> bytes:
    """Return an event as a line: its bytes, or a JSON object.

    Args:
        event: the event.
        output: the format, `text` or `json`.
        terminal: whether the line goes to a terminal, which no control character must reach.
    """
    if output == "text" and terminal:
        text = event.data.decode(errors="replace")
        return console.printable(text, lines=True).encode() + b"\n"
    if output == "text":
        return event.data + b"\n"
    told: dict[str, Any] = {"segmentID": event.segment, "offset": event.offset}
    try:
        told["event"] = event.data.decode()
    except UnicodeDecodeError:
        told["base64"] = base64.b64encode(event.data).decode()
    return json.dumps(told).encode() + b"\n"
