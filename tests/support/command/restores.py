"""StreamCopies from archives, in a file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from segment_hash import segment_report
from sluice.api.load import load
from sluice.core.values.model import (
    RetentionType,
    ScaleType,
    Scaling,
    StoreAddress,
    StreamConfig,
    StreamName,
    StreamRetention,
)
from sluice.core.workloads.request import store_address
from sluice.engine.copy.progress import staged_bytes
from sluice.engine.copy.report import Outcome
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.pipelines.programs.jobs import jobs
from sluice.pipelines.programs.stores import Stores
from support.archiving.archiving import archive_stream
from support.command.sluice_command import Filed
from support.store.inline import SETTINGS, run_copies

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from s3gateway import Gateway
    from sluice.archive.runs.archive import Archive
    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.config import Settings
    from sluice.core.archive.manifest import Manifest
    from sluice.core.archive.names import Format
    from sluice.core.copy.plan import OnTruncation
    from sluice.engine.copy.report import StreamReport
    from sluice.stores.base import Store

_KEYS = 64
_EPOCH: Final = 1 << 32
SPLIT: Final = ([0], [(0.0, 0.2), (0.2, 0.5)])
MERGED: Final = ([_EPOCH | 3, 1], [(0.2, 1.0)])
"""Scale events of a stream of two segments: the segments that end, and the keys of new ones."""

LOGIN = "keys"
"""The name of the Secret with the gateway's keys."""


@dataclass
class Restore(Filed):
    """A StreamCopy whose source is an archive.

    Args:
        folder: directory of the file, the volumes and the credentials.
        uri: the target store's address.
        target: scope and stream.
        backend: backend of the archive's store, as YAML has it.
        path: the archive's path there.
        which: run or until, as YAML has them.
        exists: the copy's `onExists`.
        scope_policy: its `scopePolicy`.
        on_truncation: the copy's `onTruncation`.
        seal: whether the target is sealed when it is whole.
        limits: the copy's limits.
        name: the resource's name; the target's by default.
    """

    folder: Path
    uri: str
    target: tuple[str, str]
    backend: dict[str, object]
    path: str = "team/orders"
    which: dict[str, object] = field(default_factory=dict)
    exists: str = "Fail"
    scope_policy: str = "MustExist"
    on_truncation: str = "Fail"
    seal: bool = False
    limits: dict[str, object] = field(default_factory=dict)
    name: str = ""

    @property
    def environment(self) -> dict[str, str]:  # type: ignore[override]
        """The variables by which a command finds volumes and credentials.

        Restores of a few objects go through Spark, as those of many do.
        """
        return {
            "SLUICE_SPARK_BYTES": str(8 << 20),
            "SLUICE_VOLUMES_DIR": str(self.settings.volumes_dir),
            "SLUICE_CREDENTIALS_DIR": str(self.settings.credentials_dir),
        }

    @property
    def settings(self) -> Settings:
        """The settings for this process, with the same paths."""
        return replace(
            SETTINGS,
            volumes_dir=self.folder / "volumes",
            credentials_dir=self.folder / "credentials",
        )

    @property
    def text(self) -> str:
        """The file's text."""
        target = {
            "storeRef": {"name": "local"},
            "scope": self.target[0],
            "stream": self.target[1],
            "onExists": self.exists,
            "scopePolicy": self.scope_policy,
            "sealWhenDone": self.seal,
        }
        archive = {"storeRef": {"name": "backup"}, "path": self.path, **self.which}
        resources = [
            _resource("StreamStore", "local", {"pravega": {"controllerURI": self.uri}}),
            _resource("StreamStore", "backup", self.backend),
            _resource(
                "StreamCopy",
                self.name or self.target[1],
                {
                    "source": {"archive": archive},
                    "target": target,
                    "onTruncation": self.on_truncation,
                    "limits": self.limits,
                },
            ),
        ]
        return "\n---\n".join(map(json.dumps, resources))

    @property
    def file(self) -> Path:
        """The file, written anew."""
        path = self.folder / "restore.yaml"
        path.write_text(self.text)
        return path

    def run_inline(self) -> StreamReport:
        """Do the work of `sluice run`, with the slices in this process."""
        (report,) = run_copies(self.text, settings=self.settings)
        return report


def _resource(kind: str, name: str, spec: dict[str, object]) -> dict[str, object]:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


class Env:
    """A stream, and archives of it.

    Args:
        restore: the copy; its file names the stores.
        foreign: the official client.

    Attributes:
        taken: the source's ranges at the beginning of its last run; see `ranges`.
    """

    def __init__(self, restore: Restore, foreign: ForeignClient) -> None:
        self.restore = restore
        self.source = (restore.target[0], "source")
        self.foreign = foreign
        self.events = 0
        self.taken: list[tuple[int, float, float]] = []
        self.stores = Stores(restore.settings)

    @property
    def name(self) -> StreamName:
        """The source stream's name."""
        return StreamName(scope=self.source[0], stream=self.source[1])

    @property
    def root(self) -> ArchiveRoot:
        """The root of the archives."""
        backup = load(self.restore.text).stores["default", "backup"]
        return self.stores.root(store_address(backup))

    @property
    def archive(self) -> Archive:
        """The archive that is restored."""
        return self.root.archive(self.restore.path)

    @property
    def manifest(self) -> Manifest:
        """The manifest of the archive's last run."""
        head = self.archive.head()
        assert head is not None
        return self.archive.manifest(head.runs[-1])

    @property
    def target(self) -> StreamName:
        """The restored stream's name."""
        return StreamName(scope=self.restore.target[0], stream=self.restore.target[1])

    @property
    def store(self) -> Store:
        """The store of the source stream, which is also the target's."""
        return self.stores[StoreAddress(uri=self.restore.uri)]

    @property
    def staged(self) -> int:
        """The bytes of the restore that its drivers have staged so far."""
        (job,) = jobs(load(self.restore.text), self.restore.settings)
        journal = CopyJournal(self.store, job.request.copy_id, job.request.target)
        known = journal.load()
        found = None if known is None else staged_bytes(known.plan, journal, self.store)
        return 0 if found is None else found[0]

    def make(self) -> None:
        """Make the stream, of two segments, with a policy and tags."""
        self.foreign.create(*self.source, segments=2)
        config = StreamConfig(
            scaling=Scaling(type=ScaleType.BY_EVENTS, target_rate=10**9, scale_factor=2),
            retention=StreamRetention(type=RetentionType.TIME, minimum=10**10),
            tags=("team=a",),
        )
        self.store.update_stream(self.name, config)

    def write(self, events: int = 5000) -> None:
        """Write events."""
        self.foreign.write(*self.source, events=events, keys=_KEYS, first=self.events)
        self.events += events

    def scale(self, ended: list[int], ranges: list[tuple[float, float]]) -> None:
        """Scale the stream."""
        assert self.foreign.scale(*self.source, segments=ended, ranges=ranges)

    def ranges(self, stream: tuple[str, str]) -> list[tuple[int, float, float]]:
        """Return id and keys of the segments that take events now, by the official client."""
        return [(one.id, one.low, one.high) for one in self.foreign.info(*stream).segments]

    def take(self, form: Format, *, on_truncation: OnTruncation = "Fail") -> None:
        """Record a run."""
        # The ranges may change after a long run: the policy lets the store scale the stream.
        self.taken = self.ranges(self.source)
        archive_stream(
            self.root,
            self.restore.path,
            form,
            self.store,
            self.name,
            on_truncation=on_truncation,
        )


def volume(folder: Path) -> dict[str, object]:
    """Return a volume as a StreamStore's spec. It is mounted in `folder`."""
    (folder / "volumes" / "backups").mkdir(parents=True)
    return {"volume": {"claimName": "backups", "path": "streams"}}


def bucket_store(
    folder: Path, gateway: Gateway, name: str, *, endpoint: str | None = None
) -> dict[str, object]:
    """Return a bucket as a StreamStore's spec, and write the keys into the folder.

    Args:
        folder: directory for the credentials.
        gateway: the gateway with the bucket.
        name: the bucket's name.
        endpoint: the gateway's endpoint; the direct one by default.
    """
    secret = folder / "credentials" / LOGIN
    secret.mkdir(parents=True)
    (secret / "accessKeyId").write_text(gateway.access)
    (secret / "secretAccessKey").write_text(gateway.secret)
    return {
        "s3": {
            "bucket": name,
            "prefix": "streams",
            "endpoint": endpoint or gateway.endpoint,
            "credentialsSecretRef": {"name": LOGIN},
        }
    }


def assert_like_the_source(env: Env, server: Standalone, report: StreamReport) -> None:
    """Check ids and bytes of the segments, and that a foreign reader finds the same events."""
    assert report.outcome is Outcome.COPIED, report.error
    for one in report.segments:
        assert one.source == one.target
        original, restored = (
            segment_report(*server.segment_store, *stream, one.source, start=one.start, end=one.end)
            for stream in (env.source, env.restore.target)
        )
        assert (restored["length"], restored["sha256"]) == (one.end - one.start, original["sha256"])
        assert (restored["events"], restored["broken_at"]) == (one.events, None)
    original_read, restored_read = (
        env.foreign.read(*stream) for stream in (env.source, env.restore.target)
    )
    assert restored_read.clean, restored_read
    assert (restored_read.events, restored_read.digest) == (env.events, original_read.digest)
    assert env.ranges(env.restore.target) == env.taken
    store = env.store
    config, restored_config = (
        store.configuration(StreamName(scope=stream[0], stream=stream[1]))
        for stream in (env.source, env.restore.target)
    )
    assert config is not None
    assert restored_config is not None
    assert restored_config.scaling == config.scaling
    assert restored_config.retention == config.retention
    assert set(config.tags) <= set(restored_config.tags)
