"""Define what commands about streams share: the options that name a store, names of streams."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from sluice.api.fields.backends import Holds, holding
from sluice.commands.copying import read as read_file
from sluice.commands.places import store_of
from sluice.commands.shared import CREDENTIALS, settings_of
from sluice.core.values.model import StreamName
from sluice.errors import InvalidSpec
from sluice.pipelines.programs.stores import Stores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sluice.stores.base import Store

_ADDRESSES = ", ".join(
    f"{' or '.join(kind.forms)} of a {kind.entrance}" for kind in holding(Holds.LIVE)
)

STORE = click.option(
    "--store",
    "-s",
    envvar="SLUICE_STORE",
    metavar="STORE",
    help=f"The store: {_ADDRESSES}, or the name of a StreamStore in --filename.  "
    "[env: SLUICE_STORE]",
)
STORES_FILE = click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="YAML with StreamStores; with one of them, --store can be left out. - reads standard "
    "input.",
)


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


def name_of(text: str) -> StreamName:
    """Read a stream's name.

    Raises:
        InvalidSpec: the text has another form.
    """
    scope, _, stream = text.partition("/")
    if not scope or not stream or "/" in stream:
        raise InvalidSpec(f"{text!r} is no stream", field="STREAM", remedy="Write SCOPE/STREAM.")
    return StreamName(scope=scope, stream=stream)


def existing(text: str, place: Store) -> StreamName:
    """Read a stream's name, and check that there is such a stream.

    Raises:
        InvalidSpec: the text has another form, or there is no such stream.
    """
    name = name_of(text)
    check_exists(name, place)
    return name


def check_exists(name: StreamName, place: Store) -> None:
    """Raise InvalidSpec if there is no such stream."""
    if place.configuration(name) is None:
        raise InvalidSpec(
            f"there is no stream {name}",
            field="STREAM",
            remedy=f"sluice streams ls {name.scope} lists the scope's streams, and "
            "sluice streams write --create SEGMENTS makes one.",
        )
