"""Define the addresses of stores' servers."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from sluice.api.rules import Rule, rules

_MOST_PORT: Final = 65535
_HOST: Final = r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+)"

_CONTROLLER: Final = f"^(tcp|tls)://{_HOST}:[0-9]{{1,5}}$"
_NO_CONTROLLER: Final = (
    "the address of a controller is tcp://host:port, or with TLS tls://host:port, with its port "
    "and nothing else: tcp://host:9090"
)
_NO_PORT: Final = f"the address ends in a port from 1 to {_MOST_PORT}: tcp://host:9090"

_SERVER: Final = r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$"
_NO_SERVER: Final = (
    "the name of a server is that in its certificate, without scheme, port and *: "
    "pravega.example.com"
)

_ENDPOINT: Final = f"^https?://{_HOST}(:[0-9]{{1,5}})?/?$"
_NO_ENDPOINT: Final = (
    "the address of an S3 server is https://host or https://host:port, with nothing else: the "
    "bucket and the keys have fields of their own"
)


def _controller(uri: str) -> str:
    """Return the address of a controller. ValueError if it is none."""
    if not re.fullmatch(_CONTROLLER, uri):
        raise ValueError(_NO_CONTROLLER)
    if not 1 <= int(uri.rpartition(":")[2]) <= _MOST_PORT:
        raise ValueError(_NO_PORT)
    return uri


def _server(name: str) -> str:
    """Return the name of a server. ValueError if it is none."""
    if not re.fullmatch(_SERVER, name):
        raise ValueError(_NO_SERVER)
    return name


def _endpoint(url: str) -> str:
    """Return the address of an S3 server. ValueError if it is none."""
    if not re.fullmatch(_ENDPOINT, url):
        raise ValueError(_NO_ENDPOINT)
    return url


# CEL reads these patterns as raw strings, in which a backslash is a backslash.
_PORT: Final = "int(self.substring(self.lastIndexOf(':') + 1))"

ControllerURI = Annotated[
    str,
    Field(
        max_length=300,
        json_schema_extra=rules(
            Rule(f"self.matches(r'{_CONTROLLER}')", _NO_CONTROLLER),
            Rule(
                f"!self.matches(r'{_CONTROLLER}') || ({_PORT} >= 1 && {_PORT} <= {_MOST_PORT})",
                _NO_PORT,
            ),
        ),
    ),
    AfterValidator(_controller),
]
"""The address of a Pravega controller."""

ServerName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        json_schema_extra=rules(Rule(f"self.matches(r'{_SERVER}')", _NO_SERVER)),
    ),
    AfterValidator(_server),
]
"""The name of a server in its certificate."""

Endpoint = Annotated[
    str,
    Field(
        max_length=300, json_schema_extra=rules(Rule(f"self.matches(r'{_ENDPOINT}')", _NO_ENDPOINT))
    ),
    AfterValidator(_endpoint),
]
"""The address of an S3 server."""
