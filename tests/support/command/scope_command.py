"""ScopeCopies in files for the `sluice` command, and their remains in a store."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from segment_hash import Connection
from sluice.api.load import load
from sluice.core.scope.request import ScopeRequest
from sluice.core.values import identity
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.engine.journal.record_log import GENERATIONS
from sluice.engine.scope.log import ScopeLog
from sluice.engine.scope.query import ask_scope
from sluice.pipelines.programs.jobs import Job, all_jobs
from sluice.pipelines.programs.stores import Stores
from sluice.stores.pravega import names
from support.command.sluice_command import Filed
from support.command.spelling import parsed
from support.store.inline import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from localstore import User
    from sluice.core.workloads import answers
    from sluice.core.workloads.plan import Plan

Address = tuple[str, int]

_AGAIN = 3
_PART = 1 << 12


@dataclass
class ScopeCopy(Filed):
    """A ScopeCopy in a file.

    Args:
        folder: directory for the file and logins.
        uri: address of the source's store.
        source: the scope.
        target: the scope.
        to: address of the target's store; the source's by default.
        spec: further fields, as YAML has them.
        users: users at the source's store and at the target's; no login by default.
        environment: variables for the command.
    """

    log_level = "info"

    folder: Path
    uri: str
    source: str
    target: str
    to: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    users: tuple[User, User] | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The file, written anew."""
        path = self.folder / "scope.yaml"
        path.write_text(yaml.safe_dump_all(self._resources()))
        return path

    @property
    def login(self) -> list[str]:
        """The option by which the command finds the logins, which are written anew."""
        folder = self.folder / "credentials"
        for side, user in zip(("here", "there"), self.users or (), strict=False):
            secret = folder / side
            secret.mkdir(parents=True, exist_ok=True)
            (secret / "username").write_text(user.name)
            (secret / "password").write_text(user.password)
        return ["--credentials-dir", str(folder)] if self.users else []

    def _resources(self) -> list[dict[str, Any]]:
        stores = {"here": self.uri, "there": self.to or self.uri}
        sides = [("source", "here", self.source), ("target", "there", self.target)]
        ends: dict[str, Any] = {
            side: {"storeRef": {"name": store}, "scope": scope} for side, store, scope in sides
        }
        ends["target"] |= self.spec.get("target", {})
        return [
            *(
                store_resource(name, uri, secret=name if self.users else "")
                for name, uri in stores.items()
            ),
            resource("ScopeCopy", "whole", self.spec | ends),
        ]

    @property
    def job(self) -> Job[ScopeRequest]:
        """The job that the command reads from the file."""
        (job,) = all_jobs(load(self.file.read_text()), SETTINGS)
        assert isinstance(job.request, ScopeRequest)
        return job

    def judged(self, known: Plan | None) -> answers.Planned | answers.ScopeEnded:
        """Return the answer that the operator gets to its question about the copy.

        Args:
            known: the copy's plan, if there is one.
        """
        job = self.job
        with Stores(SETTINGS) as stores:
            source, target = ((one, stores[one]) for one in (*job.sources, job.target))
            return ask_scope(job.request, source=source, target=target, known=known)

    @property
    def is_logged(self) -> bool:
        """Tell whether the store keeps a log of the whole copy. The store must need no login."""
        job = self.job
        with Stores(SETTINGS) as stores:
            log = ScopeLog(stores[job.target], job.request.scope_id, job.request.target)
            return log.load() is not None

    def left_of(self, server: Address, planned: Mapping[str, Any]) -> list[str]:
        """Return the existing segments that a plan's streams may have left in the target's store.

        Args:
            server: address of its segment store, which needs no login.
            planned: the output of `plan --output json` before the copy began.
        """
        wanted: list[str] = []
        for stream in ScopeCopyPlan.model_validate(planned["plan"]).streams:
            target, copy_id = stream.target, stream.copy_id
            wanted += [
                names.staging_name(target, 0, identity.journal_key(copy_id, generation))
                for generation in range(GENERATIONS)
            ]
            # A target whose name was used before has later ids.
            ids = {one.id for one in stream.segments} | {*range(_AGAIN * len(stream.segments))}
            wanted += [
                names.staging_name(target, one, identity.staging_key(copy_id, index, part))
                for one in ids
                for index, other in enumerate(stream.segments)
                for part in range(len(other.cuts) + 1)
            ]
        with Connection(*server) as connection:
            return [name for name in wanted if connection.info(name) is not None]


class Planned(NamedTuple):
    """A command `plan` that has run to its end.

    Attributes:
        code: its exit code.
        found: its answer about the only copy of its file; empty if it failed.
        seconds: the time it took, in seconds.
        peak: its peak memory, in bytes.
    """

    code: int
    found: dict[str, Any]
    seconds: float
    peak: int


def plan(copy: ScopeCopy, *, seconds: float) -> Planned:
    """Plan a copy. Memory is read while the plan is printed, when it is at its peak.

    Args:
        copy: the copy.
        seconds: seconds within which the plan has to be printed.
    """
    begun = time.monotonic()
    with copy.running("plan", "-o", "json") as process:
        text, peak = "", 0
        while process.stdout is not None and (part := process.stdout.read(_PART)):
            text += part
            with suppress(FileNotFoundError, ProcessLookupError):  # its last words outlive it
                peak = max(peak, peak_memory(process.pid))
        assert peak, "it ended before its memory was read"
        spent = time.monotonic() - begun
        assert spent < seconds, f"it is not planned within {seconds:g} s"
        code = process.wait(seconds)
    found = parsed(text)[0] if code == 0 else {}
    return Planned(code, found, spent, peak)


def peak_memory(pid: int) -> int:
    """Return the peak memory of a process in bytes, as the kernel records it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    marks = (int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    return next(marks, 0)  # an ending process may have no memory any more


def selectors(**values: Sequence[str]) -> list[dict[str, str]]:
    """Return selectors by their type: `Exact=["a"], Prefix=["b-"]`."""
    return [{"type": kind, "value": value} for kind, each in values.items() for value in each]


def store_resource(name: str, uri: str, *, secret: str = "") -> dict[str, Any]:
    """Return a StreamStore. With a Secret, it logs in."""
    auth = {"auth": {"basic": {"secretRef": {"name": secret}}}} if secret else {}
    return resource("StreamStore", name, {"pravega": {"controllerURI": uri} | auth})


def resource(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource of Sluice."""
    # By way of JSON, since YAML would write a value that is used twice as a reference.
    body = {"apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}
    found: dict[str, Any] = json.loads(json.dumps(body | {"spec": spec}))
    return found
