"""The settings of a Pravega standalone, on this machine or elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localstore.accounts import User
from localstore.certificates import Certificate

MAIN = "io.pravega.local.LocalPravegaEmulator"

# A smaller cache fills up under a fast writer, and the store then recovers without end. The
# remaining memory outside the heap is for network buffers.
CACHE_BYTES = 1 << 30
DIRECT_MEMORY = "1536m"

# A copy at full speed fills a gigabyte within seconds. Then the store delays each write by up to
# 25 s (`Throttler`, "Reason=Cache"), and containers stop (CacheFullException) and restart. So a
# server for measurements has a store's default cache size.
LARGE_CACHE_BYTES = 4 << 30
LARGE_DIRECT_MEMORY = "5g"

# A store unloads idle segments only after the next checkpoint of their container's log, by default
# every 300 commits. Tests that wait for it would need as many writes to each container.
CHECKPOINT_COMMITS = 50

# With each operation a store scans all loaded segments of the container; by default there is one
# container. Each timer wakes all idle threads of a pool, by default 200. Tests have a thousand
# segments and two processors.
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
class ServerTLS:
    """The certificates of a server, as files.

    Attributes:
        certificate: the server's certificate and key, which the segment store reads again when
            they change. The server trusts its own certificate by them.
        authority: the certificates that clients trust the server by.
        keys: the same certificate and key in a Java keystore, for its REST server and ZooKeeper.
        trusted: a Java keystore with the authority.
        password: a file with the password of both keystores.
    """

    certificate: Certificate
    authority: Path
    keys: Path
    trusted: Path
    password: Path


@dataclass(frozen=True)
class Place:
    """The addresses and files of a server.

    Attributes:
        ports: the port for each of `PORTS`.
        listens: address on which the segment store listens.
        host: host at which clients, and the server itself, find the segment store.
        port: port at which they find it.
        storage: directory of the storage.
        empty: an empty configuration file, because the server's default path does not exist.
        accounts: file with the users, if there are any.
        tls: its certificates; None for a server that speaks no TLS.
    """

    ports: Mapping[str, int]
    listens: str
    host: str
    port: int
    storage: Path
    empty: Path
    accounts: Path
    tls: ServerTLS | None = None


def standalone_properties(
    place: Place, users: Sequence[User] = (), *, cache: int = CACHE_BYTES
) -> dict[str, object]:
    """Return the system properties of a server.

    Args:
        place: the server's addresses and files.
        users: accounts, the first of which the server itself uses; no login is required if left
            out.
        cache: bytes of the cache.

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
    if (tls := place.tls) is not None:
        properties |= {
            "singlenode.security.tls.enable": "true",
            "singlenode.security.tls.certificate.location": tls.certificate.chain,
            "singlenode.security.tls.privateKey.location": tls.certificate.key,
            "singlenode.security.tls.keyStore.location": tls.keys,
            "singlenode.security.tls.keyStore.pwd.location": tls.password,
            "singlenode.security.tls.trustStore.location": tls.trusted,
            "singlenode.segmentStore.tls.certificate.autoReload.enable": "true",
        }
    return properties
