"""ScopeCopies in files for the `sluice` command, and what they leave in a store."""

from __future__ import annotations

import json
import time
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
from sluice.pipelines.programs.jobs import Job, all_jobs
from sluice.pipelines.programs.stores import Stores
from sluice.stores.pravega import names
from support.command.sluice_command import Filed
from support.command.spelling import parsed
from support.store.inline import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from localstore import User

Address = tuple[str, int]

PATIENCE = 240.0
_POLL = 0.02
_AGAIN = 3
_PART = 1 << 12


@dataclass
class ScopeCopy(Filed):
    """A ScopeCopy in a file.

    Args:
        folder: where the file and logins go.
        uri: the source's store.
        source: the scope.
        target: the scope.
        to: the target's store; the source's when left out.
        spec: further fields, as YAML has them.
        users: whom to log in as, at the source's store and at the target's; nobody when left out.
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
        """What the command makes of it."""
        (job,) = all_jobs(load(self.file.read_text()), SETTINGS)
        assert isinstance(job.request, ScopeRequest)
        return job

    @property
    def is_logged(self) -> bool:
        """Whether the store remembers something of the whole copy. Of stores without logins."""
        job = self.job
        with Stores(SETTINGS) as stores:
            log = ScopeLog(stores[job.target], job.request.scope_id, job.request.target)
            return log.load() is not None

    def left_of(self, server: Address, planned: Mapping[str, Any]) -> list[str]:
        """Segments that the streams of a plan may have left in the target's store, and that exist.

        Args:
            server: its segment store, where nobody must log in.
            planned: what `plan --output json` said before the copy began.
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
    """A command `plan` that was run to its end.

    Attributes:
        code: its exit code.
        found: what it said of the only copy of its file; empty where it failed.
        seconds: how long it took.
        peak: the most memory in bytes that it used.
    """

    code: int
    found: dict[str, Any]
    seconds: float
    peak: int


def plan(copy: ScopeCopy, *, seconds: float) -> Planned:
    """Plan a copy; memory is looked at while the plan is printed, when there is most of it.

    Args:
        copy: the copy.
        seconds: deadline.
    """
    begun = time.monotonic()
    with copy.running("plan", "-o", "json") as process:
        text, peak = "", 0
        while process.stdout is not None and (part := process.stdout.read(_PART)):
            text += part
            peak = max(peak, peak_memory(process.pid))
        spent = time.monotonic() - begun
        assert spent < seconds, f"it is not planned within {seconds:g} s"
        code = process.wait(seconds)
    found = parsed(text)[0] if code == 0 else {}
    return Planned(code, found, spent, peak)


def peak_memory(pid: int) -> int:
    """The most memory in bytes that a process has ever used: the kernel's own mark."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    marks = (int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    return next(marks, 0)  # it may be ending, and have no memory any more


def until(what: str, true: Callable[[], bool], *, seconds: float = PATIENCE) -> None:
    """Wait for something that comes."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(_POLL)


def selectors(**values: Sequence[str]) -> list[dict[str, str]]:
    """Selectors by their type: `Exact=["a"], Prefix=["b-"]`."""
    return [{"type": kind, "value": value} for kind, each in values.items() for value in each]


def store_resource(name: str, uri: str, *, secret: str = "") -> dict[str, Any]:
    """A StreamStore; with a Secret, one that logs in."""
    auth = {"auth": {"basic": {"secretRef": {"name": secret}}}} if secret else {}
    return resource("StreamStore", name, {"pravega": {"controllerURI": uri} | auth})


def resource(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A resource of Sluice's."""
    # By way of JSON, for YAML would write what is used twice as a reference.
    body = {"apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}
    found: dict[str, Any] = json.loads(json.dumps(body | {"spec": spec}))
    return found
