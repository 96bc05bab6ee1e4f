"""Ports, files and command lines of the cluster's four servers."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, Self, get_args

from localstore.foreign_jvm import compiled_client
from localstore.jars import classpath
from localstore.java import java_command
from localstore.ports import HOST
from localstore.security import Security
from localstore.standalone_config import (
    CACHE_BYTES,
    CHECKPOINT_COMMITS,
    DIRECT_MEMORY,
    FEW_THREADS,
)
from localstore.state import kept_ports

Name = Literal["zookeeper", "bookie", "controller", "segmentstore", "segmentstore2"]
ALL: tuple[Name, ...] = get_args(Name)  # in order of dependence
NAMES = ALL[:4]
"""The servers of a cluster with one segment store."""

_CLUSTER = "pravega-cluster"
_LEDGERS = "/ledgers"  # at the root, so that no parent has to be made in ZooKeeper first
_CONTAINERS = 4

# A killed server's session delays its successor for up to this time. A server on a busy machine may
# pause for this time before it counts as dead.
_SESSION_MILLIS = 8000


@dataclass(frozen=True)
class Ports:
    """The ports, as kept in the data directory."""

    zookeeper: int
    bookie: int
    controller: int
    controller_rest: int
    segmentstore: int
    segmentstore_rest: int
    segmentstore2: int = 0
    segmentstore2_rest: int = 0


@dataclass(frozen=True)
class Layout:
    """The files and ports of one cluster.

    Attributes:
        data: the cluster's directory.
        ports: the servers' ports.
        security: the logins and TLS of the servers.
        published: port at which clients and the controller find the segment store; the segment
            store's own port if left out.
    """

    data: Path
    ports: Ports
    security: Security
    published: int | None = None

    @classmethod
    def load(cls, data: Path, security: Security, *, published: int | None = None) -> Self:
        """Return the layout of a data directory, and write the servers' settings into it."""
        names = [field.name for field in fields(Ports)]
        layout = cls(data, Ports(**kept_ports(data, names)), security, published)
        layout._write_files()
        return layout

    @property
    def controller_uri(self) -> str:
        """The controller's address in the form that Pravega's clients expect."""
        scheme = "tcp" if self.security.tls is None else "tls"
        return f"{scheme}://{HOST}:{self.ports.controller}"

    def log(self, name: Name) -> Path:
        """Return a server's log file."""
        return self.data / f"{name}.log"

    def command(self, name: Name) -> list[str]:
        """Return a server's command line."""
        commands = {
            "zookeeper": self._zookeeper,
            "bookie": self._bookie,
            "controller": self._controller,
            "segmentstore": self._segmentstore,
            "segmentstore2": self._another,
        }
        return commands[name]()

    def format_command(self) -> list[str]:
        """Return the command line that makes BookKeeper's nodes in a new ZooKeeper."""
        return java_command(
            main="org.apache.bookkeeper.bookie.BookieShell",
            classpath=classpath(),
            heap="192m",
            arguments=["-conf", str(self._bookie_file), "initnewcluster"],
        )

    @property
    def _zookeeper_uri(self) -> str:
        return f"{HOST}:{self.ports.zookeeper}"

    @property
    def _zookeeper_file(self) -> Path:
        return self.data / "zookeeper.cfg"

    @property
    def _bookie_file(self) -> Path:
        return self.data / "bookie.conf"

    def _write_files(self) -> None:
        _write_settings(
            self._zookeeper_file,
            {
                "tickTime": 1000,
                "dataDir": self.data / "zookeeper",
                "clientPort": self.ports.zookeeper,
                "clientPortAddress": HOST,
                "admin.enableServer": "false",
            },
        )
        _write_settings(
            self._bookie_file,
            {
                "bookiePort": self.ports.bookie,
                "advertisedAddress": HOST,
                "allowLoopback": "true",
                "metadataServiceUri": f"zk://{self._zookeeper_uri}{_LEDGERS}",
                "journalDirectories": self.data / "journal",
                "ledgerDirectories": self.data / "ledgers",
                "indexDirectories": self.data / "index",
                # The kernel keeps the written pages of a killed process. Only a power cut, which no
                # test makes, would need them synced to the disk.
                "journalSyncData": "false",
                "httpServerEnabled": "false",
                "diskUsageThreshold": "0.99",
                "diskUsageWarnThreshold": "0.98",
            },
        )

    def _zookeeper(self) -> list[str]:
        return java_command(
            main="org.apache.zookeeper.server.ZooKeeperServerMain",
            classpath=classpath(),
            heap="192m",
            arguments=[str(self._zookeeper_file)],
        )

    def _bookie(self) -> list[str]:
        return java_command(
            main="org.apache.bookkeeper.server.Main",
            classpath=classpath(),
            heap="512m",
            direct_memory="512m",
            arguments=["--conf", str(self._bookie_file)],
        )

    def _controller(self) -> list[str]:
        return java_command(
            main="io.pravega.controller.server.Main",
            classpath=classpath(),
            heap="512m",
            properties={
                "pravega.configurationFile": "/dev/null",  # all settings are below
                **self.security.of_controller(),
                "controller.zk.connect.uri": self._zookeeper_uri,
                "controller.zk.connect.session.timeout.milliseconds": _SESSION_MILLIS,
                "controller.container.count": _CONTAINERS,
                "controller.service.cluster": _CLUSTER,
                "controller.service.rpc.listener.port": self.ports.controller,
                "controller.service.rpc.published.host.nameOrIp": HOST,
                "controller.service.rpc.published.port": self.ports.controller,
                "controller.service.rest.listener.port": self.ports.controller_rest,
                **FEW_THREADS,
            },
        )

    def _segmentstore(self) -> list[str]:
        ports = self.ports
        return self._segment_store(
            ports.segmentstore, ports.segmentstore_rest, self.published or ports.segmentstore
        )

    def _another(self) -> list[str]:
        ports = self.ports
        return self._segment_store(
            ports.segmentstore2, ports.segmentstore2_rest, ports.segmentstore2
        )

    def _segment_store(self, port: int, rest: int, published: int) -> list[str]:
        return java_command(
            main="io.pravega.segmentstore.server.host.ServiceStarter",
            classpath=classpath(compiled_client()),
            heap="1g",
            direct_memory=DIRECT_MEMORY,
            mended=True,
            properties={
                "pravega.configurationFile": "/dev/null",
                "pravegaservice.clusterName": _CLUSTER,
                "pravegaservice.container.count": _CONTAINERS,
                "pravegaservice.zk.connect.uri": self._zookeeper_uri,
                "pravegaservice.zk.connect.sessionTimeout.milliseconds": _SESSION_MILLIS,
                "pravegaservice.service.listener.host.nameOrIp": HOST,
                "pravegaservice.service.listener.port": port,
                "pravegaservice.service.published.host.nameOrIp": HOST,
                "pravegaservice.service.published.port": published,
                "pravegaservice.rest.listener.port": rest,
                "pravegaservice.cache.size.max": CACHE_BYTES,
                "pravegaservice.storage.impl.name": "FILESYSTEM",
                "filesystem.root": self.data / "storage",
                "durablelog.checkpoint.commit.count.min": CHECKPOINT_COMMITS,
                "durablelog.checkpoint.commit.threshold.count": CHECKPOINT_COMMITS,
                "pravegaservice.dataLog.impl.name": "BOOKKEEPER",
                "bookkeeper.zk.connect.uri": self._zookeeper_uri,
                "bookkeeper.ledger.path": _LEDGERS,
                "bookkeeper.ensemble.size": 1,
                "bookkeeper.write.quorum.size": 1,
                "bookkeeper.ack.quorum.size": 1,
                "autoscale.controller.connect.uri": self.controller_uri,
                **self.security.of_segment_store(),
                **FEW_THREADS,
            },
        )


def _write_settings(file: Path, settings: dict[str, object]) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
