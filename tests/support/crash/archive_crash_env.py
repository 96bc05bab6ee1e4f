"""An S3 gateway behind a proxy, and streams whose archives and restores take every step."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from s3gateway import Gateway
from sluice.core.archive.names import Format
from sluice.core.archive.retention import Retention
from sluice.engine.archive.retention import retain
from support.command.archive_files import ArchiveFile
from support.command.restores import SPLIT, Env, Restore, bucket_store
from support.crash.breakpoint import Breakpoint
from support.crash.call_proxy import Call, CallProxy
from support.crash.request_proxy import Request, RequestProxy
from support.witness import archive_witness
from support.witness import foreign_witness as witness

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from sluice.archive.runs.archive import Archive
    from support.command.sluice_command import Filed
    from support.crash.archive_crash_table import ArchiveCell
    from support.crash.breakpoint import Sign
    from support.crash.crash_points import Point
    from support.tenants.tenant import Object, Tenant

BUCKET: Final = "crash"
SCOPE: Final = "crash"

BIG, SMALL = ((SCOPE, "big"), (SCOPE, "small"))
"""Streams: one that Spark has to archive and to restore, and one that a single process archives."""

WHOLE: Final = "whole"
"""The archive of the big stream, from which cells restore."""

EVENTS: Final = 200_000
"""Events of about 108 bytes before the big stream is split, and as many afterwards."""

ORPHAN: Final = f"data/{0:08x}/{0:016x}/{0:016x}-{1:016x}-{'ab' * 32}.zst"
"""The name of an object that a crash has left."""

_KEEP: Final = {"keepLast": 1}
_DAYS: Final = 3 * 86400
_HOURS: Final = 2 * 3600
_ANSWER_SECONDS: Final = 30


class ArchiveCrashEnv:
    """The gateway, the streams, and the proxies before gateway and controller.

    Args:
        server: the store.
        foreign: the official client.
        folder: directory for credentials.

    Attributes:
        gateway: the gateway.
    """

    def __init__(self, server: Standalone, foreign: ForeignClient, folder: Path) -> None:
        self.gateway = Gateway()
        self._server = server
        self._foreign = foreign
        self._folder = folder
        self._requests = RequestProxy(self.gateway.port)
        self._calls = CallProxy(server.controller)
        self._stack = ExitStack()
        self._env: Env
        self._cells: dict[str, ArchiveCell] = {}
        self._expected: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._hold: Breakpoint | None = None

    def start(self) -> None:
        """Start the gateway."""
        with ExitStack() as stack:
            for part in (self.gateway, self._requests, self._calls):
                stack.enter_context(part)
            backend = bucket_store(self._folder, self.gateway, self.gateway.make_bucket(BUCKET))
            restore = Restore(self._folder, self._server.controller_uri, BIG, backend)
            self._env = Env(restore, self._foreign)
            stack.enter_context(self._env.stores)
            self._foreign.create_scope(SCOPE)
            self._stack = stack.pop_all()

    def stop(self) -> None:
        """Stop the gateway."""
        self._stack.close()

    @property
    def uri(self) -> str:
        """The store's address, through the proxy."""
        return self._calls.uri

    # -- the work of a cell

    def prepare(self, cell: ArchiveCell) -> None:
        """Make the stream, the remains to sweep and the archive to restore that the cell needs."""
        self._cells[cell.name] = cell
        if cell.point.deed in {"sweep", "delete"}:
            self._write(SMALL, self._write_small)
        else:
            self._write(BIG, self._write_big)
        if cell.point.deed == "sweep":
            for _ in range(2):
                self._record(SMALL, cell.name)
            self._archive(cell.name).objects.put(ORPHAN, b"?")
            self._age(cell.name, _DAYS)
        if cell.point.deed == "restore" and not self._runs(WHOLE):
            self._record(BIG, WHOLE)

    def copy(self, folder: Path, target: str) -> Filed:
        """Return the work of the cell `target`, as a command."""
        backend = self._backend(folder)
        if self._cells[target].point.deed == "restore":
            return Restore(folder, self.uri, (SCOPE, target), backend, path=WHOLE)
        source, spec = self._archived(target)
        return ArchiveFile(folder, self.uri, source, path=target, spec=spec, backend=backend)

    def resource(self, tenant: Tenant, target: str) -> Object:
        """Return the work of the cell `target`, as a resource for an operator."""
        backup = {"name": "backup"}
        if self._cells[target].point.deed == "restore":
            made = tenant.copy_resource(target, "/", f"{SCOPE}/{target}")
            made["spec"]["source"] = {"archive": {"storeRef": backup, "path": WHOLE}}
            return made
        (scope, stream), spec = self._archived(target)
        made = tenant.copy_resource(target, f"{scope}/{stream}", "/")
        del made["spec"]["target"]
        made["spec"] |= {"destination": {"storeRef": backup, "path": target}, **spec}
        return made | {"kind": "StreamArchive"}

    def stores(self, folder: Path) -> list[Object]:
        """Return the StreamStore with the archives and its Secret, for a cluster."""
        spec = self._backend(folder)
        keys = {"accessKeyId": self.gateway.access, "secretAccessKey": self.gateway.secret}
        name = spec["s3"]["credentialsSecretRef"]["name"]
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        store = {"apiVersion": "sluice.dev/v1alpha1", "kind": "StreamStore"}
        return [
            secret | {"stringData": keys},
            store | {"metadata": {"name": "backup"}, "spec": spec},
        ]

    # -- death

    def hold_up(self, point: Point, target: str) -> Breakpoint:
        """Hold up the requests or calls at a point of the cell `target`, from now on."""

        def told(sign: Sign) -> bool:
            return self._is_about(sign, target) and point.told_by(sign)

        self._hold = self._requests.hold = self._calls.hold = Breakpoint(told, point.number)
        return self._hold

    def kill_gateway(self, target: str) -> int:
        """Kill the gateway and return its process id.

        In a late cell, the gateway first does the work that was held up, and no client gets the
        answer.
        """
        hold, process = self._hold, self.gateway.process
        assert hold is not None
        assert process is not None
        if self._cells[target].late:
            self._requests.answered.clear()
            self._requests.mute = True
            hold.release(deliver=True)
            assert self._requests.answered.wait(_ANSWER_SECONDS)
        self.gateway.kill()
        self._requests.mute = False
        return process.pid

    def assert_halfway(self, cell: ArchiveCell) -> None:
        """Check, while the victim is dead, that the archive or target is whole or hidden."""
        if cell.point.deed == "restore":
            self._assert_whole(WHOLE, BIG)
            if cell.point.hidden and cell.victim == "driver":
                assert self._foreign.visible(SCOPE, cell.name).bytes == 0
            return
        source, _ = self._archived(cell.name)
        if self._runs(cell.name):
            self._assert_whole(cell.name, source)
        if cell.point.deed == "sweep" and cell.victim == "driver":
            self._age(cell.name, _HOURS, "leases")  # a dead sweep keeps runs until then

    def assert_finished(self, cell: ArchiveCell) -> None:
        """Check that the work is done, and that nothing else is left of it."""
        match cell.point.deed:
            case "restore":
                found = self._reports((SCOPE, cell.name))
                witness.assert_alike(self._expected[BIG], found)
                self._assert_whole(WHOLE, BIG)
            case "delete":
                assert archive_witness.names_in(self._folder_of(cell.name)) == []
            case deed:
                source, _ = self._archived(cell.name)
                if deed == "sweep":
                    self._sweep(cell.name)
                self._assert_whole(cell.name, source)
                assert archive_witness.names_in(self._folder_of(cell.name), "work") == []

    def _sweep(self, path: str) -> None:
        """Check that a sweep of all old objects leaves only those that the last head lists."""
        for _ in range(2):  # the second sweep deletes the runs that the first one releases
            self._age(path, _DAYS)
            retain(self._archive(path), Retention(keep_last=1), thorough=True)
        folder = self._folder_of(path)
        assert len(archive_witness.names_in(folder, "runs", "heads")) == 2
        assert ORPHAN not in archive_witness.names_in(folder, "data")

    # -- checks of contents

    def _assert_whole(self, path: str, source: tuple[str, str]) -> None:
        """Check that an archive's runs are whole, and the last one holds the source's bytes."""
        (*_, last) = self._runs(path)
        expected = {report["id"]: report["sha256"] for report in self._expected[source]}
        assert last == expected

    def _runs(self, path: str) -> list[dict[int, str]]:
        return archive_witness.runs_of(self._folder_of(path))

    def _folder_of(self, path: str) -> Path:
        """Return the gateway's directory of an archive."""
        return self.gateway.data / BUCKET / "streams" / path

    def _age(self, path: str, seconds: float, *parts: str) -> None:
        """Make objects older by so many seconds."""
        folder = self._folder_of(path)
        then = time.time() - seconds
        for name in archive_witness.names_in(folder, *parts):
            os.utime(folder / name, (then, then))

    def _reports(self, stream: tuple[str, str]) -> list[dict[str, Any]]:
        return witness.hashes(self._server.segment_store, self._foreign, stream)

    # -- preparation

    def _write(self, stream: tuple[str, str], write: Callable[[], None]) -> None:
        """Write a stream, for the first cell that needs it."""
        if stream not in self._expected:
            write()
            self._expected[stream] = self._reports(stream)

    def _write_big(self) -> None:
        foreign = self._foreign
        foreign.create(*BIG, segments=2)
        foreign.write(*BIG, events=EVENTS, keys=400)
        assert foreign.scale(*BIG, segments=SPLIT[0], ranges=SPLIT[1])
        foreign.write(*BIG, events=EVENTS, keys=400, first=EVENTS)

    def _write_small(self) -> None:
        self._foreign.create(*SMALL)
        self._foreign.write(*SMALL, events=1000)

    def _record(self, source: tuple[str, str], path: str) -> None:
        """Record a run, past the proxies."""
        self._env.source = source
        self._env.restore.path = path
        self._env.take(Format.SEGMENTS)

    def _archive(self, path: str) -> Archive:
        return self._env.root.archive(path)

    def _archived(self, target: str) -> tuple[tuple[str, str], dict[str, object]]:
        """Return the stream that the cell `target` archives, and further fields of the archive."""
        match self._cells[target].point.deed:
            case "sweep":
                return SMALL, {"retention": _KEEP}
            case "delete":
                return SMALL, {"onDelete": "Delete"}
            case _:
                return BIG, {}

    def _backend(self, folder: Path) -> dict[str, Any]:
        """Return the bucket as a StreamStore's spec, through the proxy. The keys go to `folder`."""
        return bucket_store(folder, self.gateway, BUCKET, endpoint=self._requests.endpoint)

    def _is_about(self, sign: Sign, target: str) -> bool:
        """Tell whether a request or a call is about the cell `target`."""
        if isinstance(sign, Call):
            return target.encode() in sign.request
        path = WHOLE if self._cells[target].point.deed == "restore" else target
        return isinstance(sign, Request) and any(f"/{path}/" in f"/{one}" for one in sign.names)
