"""Restore drills by an operator, on a real store and a real bucket."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from sluice.archive.objects.s3 import Bucket, S3Keys, S3Objects
from sluice.core.values.archive_layout import DATA
from sluice.core.values.scratch import scratch_name
from support.command import warm
from support.store.scopes import names_in
from support.until import PATIENT

if TYPE_CHECKING:
    from localcluster import Cluster
    from localstore import ForeignClient
    from s3gateway import Gateway
    from support.tenants.desk import Desk

# The first test that needs the gateway compiles it.
pytestmark = [pytest.mark.timeout(1200), pytest.mark.exhaustive]

EVENTS, KEYS = 20_000, 32
LONG_AGO: Final = "2020-01-01T00:00:00Z"
"""A past time at which a yearly drill was due."""


class Drilled:
    """An archive with a run, and with drills once `schedule` sets them up."""

    def __init__(
        self, desk: Desk, foreign: ForeignClient, scope: str, spec: dict[str, Any]
    ) -> None:
        self.desk, self._foreign, self._scope = desk, foreign, scope
        self._spec = spec

    def schedule(self, cron: str) -> None:
        """Schedule drills that are slow enough to kill a driver midway."""
        more = {"verify": {"schedule": {"cron": cron}}, "limits": {"bytesPerSecond": "400Ki"}}
        self.desk.resource("StreamArchive", "orders", self._spec | more)

    @property
    def body(self) -> dict[str, Any]:
        """The StreamArchive."""
        found = self.desk.tenant.get("sarc", "orders")
        assert found is not None
        return dict(found)

    @property
    def drill(self) -> dict[str, Any]:
        """The archive's `status.drill`."""
        return dict(self.body.get("status", {}).get("drill") or {})

    @property
    def verdict(self) -> tuple[str, str, str]:
        """Status, reason and message of RestoreVerified."""
        found = [
            one for one in self.body["status"]["conditions"] if one["type"] == "RestoreVerified"
        ]
        return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else ("",) * 3

    @property
    def streams(self) -> set[str]:
        """The names of the scope's streams."""
        return set(names_in(self._foreign, self._scope) or ())

    @property
    def copies(self) -> list[dict[str, Any]]:
        """The StreamCopies of the namespace."""
        return self.desk.tenant.get_all("streamcopies")

    def come_due(self) -> None:
        """Make this year's drill due for the operator, as after a long absence.

        The operator's own status may overwrite the change, so this repeats it until a drill has
        begun. A change of the status alone wakes no operator, but a change of an annotation does.
        """
        before = self.drill.get("startTime")

        def begun() -> bool:
            drill = self.drill
            if drill.get("startTime") == before and drill.get("nextTime") != LONG_AGO:
                status = json.dumps({"status": {"drill": {"nextTime": LONG_AGO}}})
                words = ("patch", "sarc", "orders", "--subresource=status", "--type=merge")
                self.desk.tenant.run(*words, f"--patch={status}")
                self.desk.tenant.run("annotate", "sarc", "orders", f"look={uuid4()}", "--overwrite")
            return drill.get("startTime") != before

        self.desk.tenant.until("a drill begins", begun)

    def until_clean(self, result: str) -> None:
        """Wait until a drill has this result and has left nothing behind."""

        def clean() -> bool:
            drill = self.drill
            over = drill.get("result") == result and not drill["scratch"]
            return over and self.streams == {"orders"} and self.copies == []

        self.desk.tenant.until(f"a drill is {result}, and nothing of it is left", clean)


@pytest.fixture
def drilled(desk: Desk, gateway: Gateway, foreign: ForeignClient, scope: str) -> Drilled:
    """Return an archive in a bucket that has a run, and no drill yet."""
    foreign.create(scope, "orders", segments=2)
    foreign.write(scope, "orders", events=EVENTS, keys=KEYS)
    desk.bucket(gateway, "bucket")
    desk.until_reason("sst", "bucket", "Reachable")
    spec = {
        "source": {"storeRef": {"name": "store"}, "scope": scope, "stream": "orders"},
        "destination": {"storeRef": {"name": "bucket"}, "path": "demo/orders"},
    }
    desk.resource("StreamArchive", "orders", spec)
    desk.drive()
    desk.until_reason("sarc", "orders", "Archived")
    return Drilled(desk, foreign, scope, spec)


def test_drills_find_damage_survive_kills_and_leave_nothing(
    drilled: Drilled, gateway: Gateway
) -> None:
    """A drill passes though its driver is killed midway. The next drill names a damaged object.

    If the archive is deleted during a drill, the scratch stream goes first.
    """
    desk = drilled.desk
    drilled.schedule("0 0 1 1 *")
    drilled.come_due()
    name = scratch_name(drilled.body["metadata"]["uid"])
    desk.drive(killed=lambda: name in drilled.streams)
    desk.drive()
    drilled.until_clean("Passed")
    status, reason, message = drilled.verdict
    assert (status, reason) == ("True", "DrillPassed")
    assert f"{EVENTS} events" in message

    bucket = desk.tenant.get("sst", "bucket")
    assert bucket is not None
    place = Bucket(
        name=bucket["spec"]["s3"]["bucket"], prefix="demo/orders", endpoint=gateway.endpoint
    )
    keys = S3Keys(access=gateway.access, secret=gateway.secret)
    objects = S3Objects(place, keys=keys, timeouts=PATIENT)
    damaged = next(one.name for one in objects.list() if one.name.startswith(DATA))
    data = bytearray(objects.get(damaged) or b"")
    data[len(data) // 2] ^= 1
    objects.put(damaged, bytes(data))
    drilled.come_due()
    desk.drive(code=6)
    drilled.until_clean("Failed")
    status, reason, message = drilled.verdict
    assert (status, reason) == ("False", "ArchiveDamaged")
    assert damaged.rsplit("/", 1)[-1] in message
    ready = next(one for one in drilled.body["status"]["conditions"] if one["type"] == "Ready")
    assert ready["reason"] == "Archived"

    data[len(data) // 2] ^= 1
    objects.put(damaged, bytes(data))
    drilled.come_due()
    desk.drive(killed=lambda: name in drilled.streams)
    desk.tenant.run("delete", "sarc", "orders")
    assert drilled.streams == {"orders"}
    assert drilled.copies == []


def test_a_drill_begins_when_it_is_asked_for(drilled: Drilled, kube: Cluster) -> None:
    """The command requests a drill and waits for its result. The schedule's next time stays."""
    drilled.schedule("0 0 1 6 *")
    tenant = drilled.desk.tenant
    tenant.until("the operator has seen the schedule", lambda: "nextTime" in drilled.drill)
    next_time = drilled.drill["nextTime"]
    words = ["archive", "drill", "orders", "--wait", "--timeout=240", "-o", "json"]
    with warm.Popen(
        [warm.SLUICE, *words, f"--namespace={tenant.namespace}"],
        env=os.environ | {"KUBECONFIG": str(kube.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        drilled.desk.drive()
        out, err = command.communicate(timeout=240)
    assert command.returncode == 0, err
    drill = json.loads(out)["drill"]
    assert (drill["result"], drill["events"], drill["nextTime"]) == ("Passed", EVENTS, next_time)
    drilled.until_clean("Passed")
