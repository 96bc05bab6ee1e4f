"""What makes a Pravega standalone, wherever it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localstore.accounts import User

MAIN = "io.pravega.local.LocalPravegaEmulator"

# A smaller cache fills up under a fast writer, and the store then recovers without end. The rest
# of the memory outside the heap is for the network's buffers.
CACHE_BYTES = 1 << 30
DIRECT_MEMORY = "1536m"

# A gigabyte fills up within seconds of a copy at full speed. Then the store delays each write by up
# to 25 s (`Throttler`, "Reason=Cache"), and containers stop (CacheFullException) and start anew. So
# a server to measure on has the cache that a store has by default.
LARGE_CACHE_BYTES = 4 << 30
LARGE_DIRECT_MEMORY = "5g"

# A store puts idle segments out of memory after the next checkpoint of their container's log only,
# by default every 300 commits: tests that wait for it would have to write as many to each.
CHECKPOINT_COMMITS = 50

# With each operation a store looks at all segments in memory of its container, of which there is
# one by default; and each of its timers wakes all idle threads of a pool, of which there are 200.
# Tests have a thousand segments and two processors.
_CONTAINERS = 8
FEW_THREADS = {
    "pravegaservice.threadPool.core.size": 8,
    "pravegaservice.threadPool.storage.size": 16,
    "controller.service.asyncTaskPool.size": 8,
    "controller.watermarking.bucket.count": 1,
    "controller.watermarking.thread.count": 2,
}

PORTS = ("controller", "segmentstore", "zookeeper", "controller_rest", "segmentstore_rest")


@dataclass(frozen=True)
class Place:
    """Where a server runs.

    Attributes:
        ports: Its port for each of `PORTS`.
        listens: Address on which the segment store listens.
        host: Where clients, and the server itself, find the segment store.
        port: The same for its port.
        storage: Directory of its storage.
        empty: An empty file, read for what the properties leave open; the default is not there.
        accounts: File with the users, where there are any.
    """

    ports: Mapping[str, int]
    listens: str
    host: str
    port: int
    storage: Path
    empty: Path
    accounts: Path


def standalone_properties(
    place: Place, users: Sequence[User] = (), *, cache: int = CACHE_BYTES
) -> dict[str, object]:
    """Gives the system properties of a server.

    Args:
        place: Where it runs.
        users: Accounts, the first of which the server itself uses; nobody has to log in when left
            out.
        cache: Bytes of its cache.

    Returns:
        The properties by name.
    """
    ports = place.ports
    properties: dict[str, object] = {
        "singlenode.configurationFile": place.empty,
        "singlenode.zk.port": ports["zookeeper"],
        "singlenode.controller.rpc.port": ports["controller"],
        "singlenode.controller.rest.port": ports["controller_rest"],
        "singlenode.segmentStore.port": ports["segmentstore"],
        "singlenode.admin.gateway.enable": "false",
        "pravegaservice.service.listener.host.nameOrIp": place.listens,
        "pravegaservice.service.published.host.nameOrIp": place.host,
        "pravegaservice.service.published.port": place.port,
        "pravegaservice.rest.listener.port": ports["segmentstore_rest"],
        "pravegaservice.storage.impl.name": "FILESYSTEM",
        "pravegaservice.cache.size.max": cache,
        "filesystem.root": place.storage,
        "durablelog.checkpoint.commit.count.min": CHECKPOINT_COMMITS,
        "durablelog.checkpoint.commit.threshold.count": CHECKPOINT_COMMITS,
        "pravegaservice.container.count": _CONTAINERS,
        "controller.container.count": _CONTAINERS,
        **FEW_THREADS,
    }
    if users:
        properties |= {
            "singlenode.security.auth.enable": "true",
            "singlenode.security.auth.pwdAuthHandler.accountsDb.location": place.accounts,
            "singlenode.security.auth.credentials.username": users[0].name,
            "singlenode.security.auth.credentials.pwd": users[0].password,
        }
    return properties
