"""Free ports for servers."""

import random
import socket
from pathlib import Path

from localstore.errors import LocalStoreError

HOST = "127.0.0.1"

_LOWEST = 10240
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_ATTEMPTS = 1000


def free_ports(count: int) -> list[int]:
    """Return different ports that are free now.

    They lie below the kernel's ephemeral range. The kernel may give a port of that range to an
    outgoing connection before the server binds it. And while a server is down, a client that keeps
    dialling such a port may connect to itself.

    Args:
        count: number of ports.

    Returns:
        The ports.

    Raises:
        LocalStoreError: too few ports are free.
    """
    lowest_ephemeral = int(_EPHEMERAL.read_text().split()[0])
    highest = max(lowest_ephemeral, _LOWEST + 10_000) - 1
    chosen: set[int] = set()
    for _ in range(_ATTEMPTS):
        port = random.randint(_LOWEST, highest)  # noqa: S311 - spread, not secrecy
        if port not in chosen and _is_free(port):
            chosen.add(port)
        if len(chosen) == count:
            return list(chosen)
    raise LocalStoreError(f"no {count} free ports between {_LOWEST} and {highest}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
