"""Implement `sluice ui`: show resources of a cluster on a page in the browser."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import webbrowser
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from sluice.commands.cluster.shared import (
    ALL_NAMESPACES,
    NAMESPACE,
    QUIET,
    connected,
    for_users,
    say,
)
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from sluice.administration.naming import Named
    from sluice.commands.cluster.shared import ClusterPlace

_SCREENS: Final = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables that say that there is a screen, or which browser to take."""


@click.command()
@NAMESPACE
@ALL_NAMESPACES
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="The port on 127.0.0.1.  [default: any that is free]",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@QUIET
def ui(*, namespace: str | None, all_namespaces: bool, port: int, no_browser: bool) -> None:
    """Show resources on a page in the browser: state, progress, conditions, events.

    The page is served on 127.0.0.1 until Ctrl-C, and shows what you have the right to see. It
    changes nothing. The printed address has a token, without which the server shows nothing.
    """
    asyncio.run(_ui(namespace, everywhere=all_namespaces, port=port, browser=not no_browser))


async def _ui(namespace: str | None, *, everywhere: bool, port: int, browser: bool) -> None:
    # Imported here: few commands need Kubernetes' client, which takes a second.
    from sluice.console.web.server import serve  # noqa: PLC0415

    async with connected(namespace, everywhere=everywhere) as place:
        looks = PageLooks(place)
        await looks.all()  # an error of the connection ends the command
        async with serve(looks.all, looks.details, port=port) as links:
            ended = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, ended.set)
            say(f"Resources in {place.name}, for you alone, until Ctrl-C:")
            click.echo(links.page)
            if browser and _has_screen():
                # Not the printed address: other users of this machine see a program's arguments.
                await asyncio.to_thread(webbrowser.open, links.once)
            await ended.wait()


def _has_screen() -> bool:
    """Tell whether a browser would get a window. One of the terminal would take this terminal."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in _SCREENS)


class PageLooks:
    """The looks at a cluster that the page asks for, as JSON values.

    Args:
        place: the API server and the namespace.
    """

    def __init__(self, place: ClusterPlace) -> None:
        self._place = place
        self._known: dict[str, Named] = {}

    async def all(self) -> dict[str, Any]:
        """Return all resources.

        Raises:
            ApiUnavailable: see `board.look`.
        """
        from sluice.administration import board  # noqa: PLC0415 - takes a second
        from sluice.console.web import views  # noqa: PLC0415 - as above

        api, namespace = self._place
        with for_users():
            found = await board.look(api, namespace)
        self._known = {body["metadata"]["uid"]: one.resource for one, body in found.resources}
        return views.board(found, now=datetime.now(UTC), namespaces=namespace is None)

    async def details(self, uid: str) -> dict[str, Any]:
        """Return a resource that the last look has found, by its UID.

        Raises:
            InvalidSpec: it is gone.
            ApiUnavailable: see `description.describe`.
        """
        from sluice.administration.description import describe  # noqa: PLC0415 - takes a second
        from sluice.console.web import views  # noqa: PLC0415 - as above

        resource = self._known.get(uid)
        if resource is not None:
            with for_users():
                found = await describe(self._place.api, resource)
            if found.body["metadata"]["uid"] == uid:  # and not another one of the same name
                return views.details(found, now=datetime.now(UTC))
        raise InvalidSpec("this resource was deleted", remedy="Close its details.")
