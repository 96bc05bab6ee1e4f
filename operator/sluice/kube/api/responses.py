"""Read the API server's answers: pages, refusals, events of watches."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from sluice.errors import ApiUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from sluice.kube.api.kinds import Kind, Object


class Page(NamedTuple):
    """A part of a list.

    Attributes:
        items: the objects, each with apiVersion and kind.
        version: the resource version from which a watch goes on without missing anything.
        more: the token that gets the next part; empty for the last one.
    """

    items: list[Object]
    version: str
    more: str


_FORBIDDEN: Final = 403


class Refused(ApiUnavailable):
    """The API server answered with an error.

    Attributes:
        status: the HTTP status.
        why: the API's own reason, such as AlreadyExists or Forbidden.
    """

    def __init__(self, message: str, *, status: int, why: str) -> None:
        super().__init__(message)
        self.status = status
        self.why = why

    @property
    def forbidden(self) -> bool:
        """Whether the caller lacks the right to do this."""
        return self.status == _FORBIDDEN

    @property
    def reason(self) -> str:
        """The reason of ApiUnavailable. The API's own reason is in the message."""
        return "ApiUnavailable"


MOST_LINE: Final = 1 << 16
"""The most bytes of a line of a log. A longer line is given in parts."""

_VERBS: Final = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}


def asked(method: str, path: str, *, watch: bool) -> tuple[str, str]:
    """Return the verb and the resource of a call, for metrics.

    The resource includes the subresource, but no name and no namespace.
    """
    parts = path.strip("/").split("/")
    parts = parts[2 if parts[0] == "api" else 3 :]
    if parts[0:1] == ["namespaces"] and len(parts) > 2:  # noqa: PLR2004 - else it is one itself
        parts = parts[2:]
    if not parts:
        return "get", "discovery"
    reading = "watch" if watch else "list" if len(parts) == 1 else "get"
    return _VERBS.get(method, reading), "/".join([parts[0], *parts[2:]])


def items_of(kind: Kind, found: Object) -> list[Object]:
    """Return the objects of a list. The API leaves out their apiVersion and kind; add these."""
    items: list[Object] = found.get("items") or []
    for item in items:
        item.setdefault("apiVersion", kind.api_version)
        item.setdefault("kind", kind.name)
    return items


def is_success(status: int) -> bool:
    """Tell whether a status says that a call succeeded."""
    return 200 <= status <= 299  # noqa: PLR2004 - HTTP's range of success


def parsed(data: bytes) -> Object:
    """Parse an answer. One that is not a JSON object becomes a message."""
    text = data.decode(errors="replace")
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"message": text[:200]}


def refusal(what: str, status: int, found: Object) -> Refused:
    """Make the error of an answer that refuses a call."""
    return Refused(
        f"{what}: {found.get('message') or status}",
        status=status,
        why=str(found.get("reason", "")),
    )


@contextmanager
def broken(what: str) -> Iterator[None]:
    """Turn errors of the connection into ApiUnavailable."""
    try:
        yield
    except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
        raise ApiUnavailable(f"{what}: {str(error) or type(error).__name__}") from error


async def events_of(what: str, response: aiohttp.ClientResponse) -> AsyncIterator[Object]:
    """Read the events of a watch until the server ends it."""
    while True:
        with broken(what):
            line = await response.content.readline()
        if not line.endswith(b"\n"):  # the connection ended within an event
            return
        event = parsed(line)
        if event.get("type") == "ERROR":
            found = event.get("object") or {}
            raise refusal(what, int(found.get("code") or 0), found)
        if "object" not in event:
            raise ApiUnavailable(f"{what}: what came is no event")
        yield event


async def lines_of(what: str, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Read the lines of a log, without their ends, until the server ends it."""
    left = b""
    while True:
        with broken(what):
            data = await response.content.readany()
        *lines, left = (left + data).split(b"\n")
        for line in lines:
            for part in _parts(line):
                yield part
        *parts, left = _parts(left)
        for part in parts:
            yield part
        if not data:
            break
    if left:
        yield left


def _parts(line: bytes) -> list[bytes]:
    """Cut a line into parts of bounded length; an empty line is one part."""
    return [line[at : at + MOST_LINE] for at in range(0, max(1, len(line)), MOST_LINE)]
