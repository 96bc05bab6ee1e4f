"""The start of a Job beside a StreamStore's login, with all objects that its pod mounts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.reconcile.shared.jobs import job_name
from sluice.errors import PodRefused, QuotaExceeded
from sluice.kube.api.kinds import CONFIG_MAP, JOB
from sluice.kube.api.names import controls_name, run_name
from sluice.kube.api.responses import Refused
from sluice.kube.jobs import starting
from support.kube.api_server import ApiServer
from support.reconcile.copies import UID
from support.reconcile.requests import PLATFORM, hosted

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

RUN, CONTROLS = run_name(job_name(UID, 1)), controls_name("orders", UID)


class Full(ApiServer):
    """A server whose quota rejects one kind of object."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self._kind = kind

    async def create(self, kind: Kind, namespace: str | None, body: Object) -> Object | None:
        """See Api.create."""
        if kind == self._kind:
            raise Refused("exceeded quota: gold", status=403, why="Forbidden")
        return await super().create(kind, namespace, body)


def start(server: ApiServer, **how: Any) -> bool:
    """Make the Job of an attempt, or adopt it."""
    return asyncio.run(starting.start(server.api, hosted(login="login", **how)))


def test_a_job_owns_all_that_its_pod_mounts() -> None:
    """Its ConfigMaps are deleted with the Job. A second start changes nothing."""
    server = ApiServer()
    assert start(server)
    (job,) = server.all(JOB)
    before = {name: body["metadata"]["uid"] for (_, _, name), body in server.objects.items()}
    assert {body["metadata"]["name"] for body in server.all(CONFIG_MAP)} == {RUN, CONTROLS}
    for body in server.all(CONFIG_MAP):
        (owner,) = body["metadata"]["ownerReferences"]
        assert owner["uid"] == job["metadata"]["uid"]
    assert not start(server)
    assert before == {name: one["metadata"]["uid"] for (_, _, name), one in server.objects.items()}
    server.remove(JOB, job["metadata"]["name"], PLATFORM)
    server.collect()
    assert server.objects == {}


@pytest.mark.parametrize("kind", [JOB, CONFIG_MAP], ids=["Jobs", "ConfigMaps"])
def test_a_quota_that_is_used_up_leaves_nothing_behind(kind: Kind) -> None:
    """This holds for repeated tries, too."""
    server = Full(kind)
    for _ in range(2):
        with pytest.raises(QuotaExceeded):
            start(server)
    assert server.objects == {}


def test_what_the_operator_was_killed_before_is_made_later() -> None:
    """This holds for an existing Job, and for a Job that replaces an earlier one of its name."""
    server = ApiServer()
    start(server)
    for name in (RUN, CONTROLS):
        server.destroy(CONFIG_MAP, name, PLATFORM)
    assert not start(server)
    assert len(server.all(CONFIG_MAP)) == 2
    old = server.all(JOB)[0]
    server.put(JOB, old | {"metadata": {**old["metadata"], "uid": "another"}})
    start(server)
    owners = [body["metadata"]["ownerReferences"] for body in server.all(CONFIG_MAP)]
    assert [one["uid"] for (one,) in owners] == ["another", "another"]


@pytest.mark.parametrize("name", [RUN, CONTROLS])
def test_what_another_has_under_the_name_is_neither_changed_nor_deleted(name: str) -> None:
    """It belongs to users of that namespace, who are not the copy's users."""
    server = ApiServer()
    theirs = server.put(
        CONFIG_MAP, {"metadata": {"name": name, "namespace": PLATFORM}, "data": {"a": "b"}}
    )
    with pytest.raises(PodRefused):
        start(server)
    assert server.body(CONFIG_MAP, name, PLATFORM) == theirs
    assert server.all(JOB) == []
