"""Which pods count as a resource's drivers, and how their logs are read while calls fail."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from sluice.administration import driver_logs, drivers
from sluice.administration.naming import Named
from sluice.api.registry import KINDS
from sluice.core.reconcile.shared.jobs import job_name
from sluice.errors import ApiUnavailable, InvalidSpec
from sluice.kube.api.kinds import JOB, POD, STREAM_COPY
from sluice.kube.api.names import ATTEMPT_LABEL, UID_LABEL, Child
from support.cases import resources
from support.kube.api_server import ApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

COPY: Final = next(kind for kind in KINDS if kind.name == "StreamCopy")
ORDERS: Final = Named(COPY, "default", "orders")
UID: Final = "uid-of-orders"
TIME: Final = "2026-01-01T00:00:00Z"


class Logging(ApiServer):
    """A server with the logs of pods. Each opening of a log takes the next of its scripts.

    Its script is a list of lines; an error in it breaks the connection there. The last script is
    repeated.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scripts: dict[str, list[list[bytes | Exception]]] = {}
        self.since: list[str | None] = []

    @asynccontextmanager
    async def log(
        self, namespace: str, pod: str, container: str, *, since: str | None = None, **_: Any
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """See Api.log."""
        assert (namespace, container) == ("default", "driver")
        self.since.append(since)
        left = self.scripts[pod]
        script = left.pop(0) if len(left) > 1 else left[0]

        async def lines() -> AsyncIterator[bytes]:
            for line in script:
                if isinstance(line, Exception):
                    raise line
                yield line

        yield lines()


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_logs, "LOOK", 0)


@pytest.fixture
def server() -> Logging:
    """Yield a server with a copy at work."""
    made = Logging()
    meta = {"name": "orders", "namespace": "default", "uid": UID, "generation": 1}
    made.put(STREAM_COPY, resources.changed(resources.COPY, "metadata", meta))
    return made


def owned(name: str, owner: str, kind: str = "Job", *, controls: bool = True) -> Object:
    """Return the metadata of an object with an owner, and the labels of the copy."""
    labels = {UID_LABEL: UID, ATTEMPT_LABEL: "7"}
    owners = [{"kind": kind, "name": "x", "uid": owner, "controller": controls}]
    return {"name": name, "labels": labels, "ownerReferences": owners, "uid": f"uid-of-{name}"}


def attempt(server: Logging, number: int, *, phase: str = "Succeeded") -> str:
    """Make an attempt with its Job and its pod; return the pod's name."""
    job = job_name(UID, number)
    server.put(JOB, {"metadata": owned(job, UID, "StreamCopy")})
    server.put(POD, {"metadata": owned(f"{job}-x", f"uid-of-{job}"), "status": {"phase": phase}})
    return f"{job}-x"


def attempts(server: Logging) -> list[drivers.JobAttempt]:
    """Return the attempts of the copy."""
    body = server.body(STREAM_COPY, "orders")
    assert body is not None
    return asyncio.run(drivers.attempts(cast("Api", server), STREAM_COPY, body))


def finish(server: Logging) -> None:
    """Mark the copy as done, as the operator does."""
    ready = {"type": "Ready", "status": "True", "reason": "Copied", "observedGeneration": 1}
    server.edit(
        STREAM_COPY, "orders", status={"conditions": [ready | {"lastTransitionTime": TIME}]}
    )


def read(server: Logging, **how: Any) -> list[str]:
    """Read the log of the copy."""

    async def lines() -> list[str]:
        found = driver_logs.log(cast("Api", server), ORDERS, **how)
        return [f"{line.attempt}: {line.text}" async for line in found]

    return asyncio.run(lines())


def test_labels_alone_make_no_driver(server: Logging) -> None:
    """Jobs and pods count by the UID of their controller, and a Job's attempt by its name."""
    own = attempt(server, 1)
    job = job_name(UID, 1)
    for name, owner, controls in (
        ("forged-pod", "uid-of-another", True),
        ("owned-pod", f"uid-of-{job}", False),
    ):
        server.put(POD, {"metadata": owned(name, owner, controls=controls), "status": {}})
    server.put(JOB, {"metadata": owned("forged-job", UID, "StreamCopy")})
    server.put(JOB, {"metadata": owned(job_name(UID, 9), "uid-of-another", "StreamCopy")})
    found = attempts(server)
    assert [(one.number, [pod["metadata"]["name"] for pod in one.pods]) for one in found] == [
        (1, [own])
    ]


@pytest.mark.parametrize("said", [True, False])
def test_drivers_in_the_namespace_of_a_store_are_found_by_the_status(
    server: Logging, *, said: bool
) -> None:
    """No other namespace is searched, since any tenant could name the copy there."""
    if said:
        server.edit(STREAM_COPY, "orders", status={"driverNamespace": "platform"})
    job = job_name(UID, 1)
    child = Child(kind=STREAM_COPY, namespace="default", name="orders", uid=UID, host="platform")
    server.put(JOB, {"metadata": child.metadata(job, "driver") | {"uid": "j"}})
    pod = owned("pod", "j") | {"namespace": "platform"}
    server.put(POD, {"metadata": pod, "status": {"phase": "Running"}})
    found = [
        (one.number, [pod["metadata"]["name"] for pod in one.pods]) for one in attempts(server)
    ]
    assert found == ([(1, ["pod"])] if said else [])


def test_the_last_attempt_is_shown_unless_another_is_named(server: Logging) -> None:
    """A third attempt without a pod has no log yet."""
    for number in (1, 2):
        server.scripts[attempt(server, number)] = [[f"{TIME} of {number}".encode()]]
    server.put(JOB, {"metadata": owned(job_name(UID, 3), UID, "StreamCopy")})
    assert read(server) == ["2: of 2"]
    assert read(server, attempt=1) == ["1: of 1"]
    with pytest.raises(InvalidSpec, match="no driver's pod of attempt 3") as caught:
        read(server, attempt=3)
    assert "sluice describe streamcopy/orders" in caught.value.remedy


def test_a_pod_that_has_not_started_has_no_log(server: Logging) -> None:
    """The remedy says how to find the cause, and how to wait."""
    attempt(server, 1, phase="Pending")
    with pytest.raises(InvalidSpec, match="pod has not started") as caught:
        read(server)
    assert "--follow" in caught.value.remedy


def test_lines_come_once_although_connections_break(server: Logging) -> None:
    """A log is opened again from its last second on, and known lines are left out."""
    pod = attempt(server, 1)
    stamps = [f"2026-01-01T00:00:0{second}.000000000Z".encode() for second in range(3)]
    one, two, same, three = (
        stamps[0] + b" one",
        stamps[1] + b" two",
        stamps[1] + b" same",
        stamps[2] + b" three",
    )
    broken = ApiUnavailable("cut")
    server.scripts[pod] = [[one, two, broken], [two, same, broken], [two, same, three]]
    finish(server)
    assert read(server, follow=True) == ["1: one", "1: two", "1: same", "1: three"]
    assert server.since == [None, stamps[1].decode(), stamps[1].decode()]
    server.scripts[pod] = [[one, broken]]
    with pytest.raises(ApiUnavailable, match="cut"):
        read(server)


def test_following_goes_on_with_later_attempts(server: Logging) -> None:
    """The command waits for the first pod, and ends once the copy is at rest."""
    steps = iter((lambda: attempt(server, 1), lambda: attempt(server, 2), lambda: finish(server)))
    for number in (1, 2):
        server.scripts[f"{job_name(UID, number)}-x"] = [[f"{TIME} of {number}".encode()]]
    plain = server.get

    async def get(kind: Any, namespace: str | None, name: str) -> Object | None:
        if kind == STREAM_COPY:
            body = await plain(kind, namespace, name)
            next(steps, lambda: None)()  # after the look, as a concurrent operator would
            return body
        return await plain(kind, namespace, name)

    server.get = get  # type: ignore[method-assign]
    assert read(server, follow=True) == ["1: of 1", "2: of 2"]


def test_a_part_of_a_long_line_needs_no_time(server: Logging) -> None:
    """The part belongs to the line before it."""
    pod = attempt(server, 1)
    server.scripts[pod] = [[f"{TIME} begin".encode(), b"end \xff"]]
    assert read(server) == ["1: begin", "1: end \ufffd"]
