"""Objects that work for a copy in the namespace of a StreamStore."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.values.trouble import Trouble
from sluice.errors import (
    CopyAborted,
    DriverOutOfMemory,
    PodRefused,
    QuotaExceeded,
    SluiceError,
    SourceNotFound,
)
from sluice.kube.api.kinds import CONFIG_MAP, JOB, STREAM_COPY
from sluice.kube.api.names import (
    COPY_ANNOTATION,
    Child,
    away_of,
    controls_name,
    owned,
    run_name,
)
from sluice.kube.api.responses import Refused
from sluice.kube.jobs import away, manifests
from sluice.kube.jobs.mounts import store_volumes
from support.kube.api_server import ApiServer
from support.kube.pod_security import violations
from support.reconcile.copies import PLAN, UID
from support.reconcile.requests import (
    GIB,
    PLATFORM,
    RICH,
    driver,
    executor,
    hosted,
    pod_of,
    request,
)

if TYPE_CHECKING:
    from sluice.core.values.model import StoreAddress
    from sluice.kube.api.kinds import Kind

OTHER: Final = "0" * 36
CHILD: Final = Child(kind=STREAM_COPY, namespace="team", name="orders", uid=UID)


def put(server: ApiServer, kind: Kind, name: str, child: Child = CHILD, **meta: Any) -> None:
    """Put an object that works for a copy into the platform's namespace."""
    own = child.at(PLATFORM).metadata(name, "driver")
    server.put(kind, {"metadata": own | meta})


def attempt(server: ApiServer, child: Child = CHILD, number: int = 1) -> None:
    """Put all objects of an attempt."""
    name = job_name(child.uid, number)
    put(server, JOB, name, child)
    job = server.body(JOB, name, PLATFORM)
    assert job is not None
    for mounted in (run_name(name), controls_name(child.name, child.uid)):
        put(server, CONFIG_MAP, mounted, child, **owned({"metadata": {}}, job)["metadata"])


def left(server: ApiServer) -> set[str]:
    """Return the names of the objects that exist."""
    return {name for _, _, name in server.objects}


# -- the objects that are made


def test_what_works_elsewhere_has_no_owner_and_names_its_copy() -> None:
    """Kubernetes' garbage collector would delete an object whose owner is in another namespace."""
    made = hosted(login="login")
    for body in (
        manifests.job(made),
        manifests.run_config_map(made),
        manifests.controls_config_map(made.child, made.spec, 1),
    ):
        meta = body["metadata"]
        assert meta["namespace"] == PLATFORM
        assert "ownerReferences" not in meta
        assert away_of(body) == CHILD.at(PLATFORM)
        assert CHILD.has(body)
    pods = manifests.job(made)["spec"]["template"]["metadata"]
    assert pods["annotations"][COPY_ANNOTATION] == "StreamCopy/team/orders"
    home = manifests.job(request())
    assert away_of(home) is None
    assert CHILD.has(home)


@pytest.mark.parametrize("profile", [{}, RICH])
def test_a_driver_elsewhere_is_a_driver_without_executors(profile: dict[str, Any]) -> None:
    """The driver has no token, whatever the plan's size and the namespace's rights."""
    operator = {"executorNamespaces": ["team", PLATFORM]}
    for fields in ({}, {"runtime": {"executors": 2}}):
        made = hosted(size=100 * GIB, profile=profile, operator=operator, login="login", **fields)
        pod = pod_of(made)
        assert pod["automountServiceAccountToken"] is False
        assert "serviceAccountName" not in pod
        assert not [word for word in driver(made)["args"] if word.startswith("--executor")]
        assert violations(pod) == []


def test_a_driver_elsewhere_mounts_what_its_stores_name() -> None:
    """The driver mounts the login by its Secret, and the ConfigMaps of this copy."""
    made = hosted(login="login")
    names = [
        one.get("configMap", {}).get("name") or one.get("secret", {}).get("secretName")
        for one in pod_of(made)["volumes"]
    ]
    run, controls = run_name(job_name(UID, 1)), controls_name("orders", UID)
    assert [name for name in names if name] == [run, controls, "login"]
    assert store_volumes(made.plan, scratch="1Gi")[0][-1]["secret"]["secretName"] == "login"
    assert executor(made)["spec"]["automountServiceAccountToken"] is False


def test_copies_of_one_name_in_two_namespaces_share_nothing() -> None:
    """Their objects in the third namespace differ in every name."""
    one, two = hosted(), hosted(uid=OTHER)
    names = [
        {
            manifests.job(made)["metadata"]["name"],
            manifests.run_config_map(made)["metadata"]["name"],
            manifests.controls_config_map(made.child, made.spec, 1)["metadata"]["name"],
        }
        for made in (one, two)
    ]
    assert names[0].isdisjoint(names[1])


# -- the copy of an object


@pytest.mark.parametrize(
    ("changes", "own"),
    [
        ({}, True),
        ({"namespace": "team"}, False),
        ({"annotations": {COPY_ANNOTATION: "StreamCopy/other/orders"}}, False),
        ({"annotations": {COPY_ANNOTATION: "ScopeCopy/team/orders"}}, False),
        ({"annotations": None}, False),
        ({"labels": {}}, False),
        ({"ownerReferences": [{"kind": "Job", "name": "x", "uid": "x"}]}, False),
        ({"ownerReferences": [{"kind": "Job", "name": job_name(UID, 1), "uid": "x"}]}, True),
        ({"ownerReferences": [{"kind": "Pod", "name": job_name(UID, 1), "uid": "x"}]}, False),
    ],
)
def test_an_object_elsewhere_is_the_copys_own_by_annotation_and_label(
    changes: dict[str, Any], *, own: bool
) -> None:
    """In the copy's namespace only an owner counts, since users can write all else there."""
    meta = CHILD.at(PLATFORM).metadata("x", "driver") | changes
    assert CHILD.has({"metadata": meta}) == own


@pytest.mark.parametrize("said", ["", "StreamCopy/team", "a/b/c", "a/b/c/d", 7, None])
def test_an_annotation_that_names_no_copy_counts_for_none(said: object) -> None:
    """This holds for any content of the annotation."""
    meta = {"namespace": PLATFORM, "annotations": {COPY_ANNOTATION: said}}
    assert away_of({"metadata": meta}) is None


# -- the objects that are deleted


def test_all_of_a_copy_is_cleared_and_nothing_of_others() -> None:
    """The objects of all attempts are deleted, with their mounts. A repetition does nothing."""
    server = ApiServer()
    for number in (1, 2, 3):
        attempt(server, number=number)
    other = Child(kind=STREAM_COPY, namespace="other", name="orders", uid=OTHER)
    attempt(server, other)
    put(server, JOB, job_name(UID, 4), annotations={})
    assert asyncio.run(away.clear(server.api, CHILD.at(PLATFORM))) == 3
    server.collect()
    assert left(server) == {
        job_name(OTHER, 1),
        run_name(job_name(OTHER, 1)),
        controls_name("orders", OTHER),
        job_name(UID, 4),
    }
    assert asyncio.run(away.clear(server.api, CHILD.at(PLATFORM))) == 0


# -- the text of failures, and the addresses of a plan


def test_nothing_is_told_of_the_namespace_in_which_a_driver_does_not_start() -> None:
    """The copy's status has the reason only, not that namespace's quota, nodes or Secrets."""
    quota = Trouble.of(QuotaExceeded("exceeded quota: gold, used: pods=7"))
    told = away.hushed(quota, "job-1", PLATFORM)
    assert told is not None
    assert told.reason == "QuotaExceeded"
    assert "gold" not in str(told)
    assert "job-1" in str(told)
    memory = away.hushed(Trouble.of(DriverOutOfMemory("pod gold")), "job-1", PLATFORM)
    assert memory is not None
    assert "gold" not in str(memory)
    own = Trouble.of(SourceNotFound("stream in/orders does not exist"))
    assert away.hushed(own, "job-1", PLATFORM) == own
    assert away.hushed(None, "job-1", PLATFORM) is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Refused("exceeded quota: gold", status=403, why="Forbidden"), "QuotaExceeded"),
        (Refused("gold says no", status=422, why="Invalid"), "PodRefused"),
        (QuotaExceeded("exceeded quota: gold"), "QuotaExceeded"),
        (PodRefused("gold says no"), "PodRefused"),
        (Refused("gold is away", status=500, why="InternalError"), "ApiUnavailable"),
    ],
    ids=["a quota", "an admission", "a Job's quota", "a Job's admission", "a broken webhook"],
)
def test_no_refusal_tells_of_the_namespace_either(error: SluiceError, reason: str) -> None:
    """In the copy's own namespace, the words help its users."""
    with pytest.raises(type(error), match="gold"), away.quietly(CHILD, "job-1"):
        raise error
    with pytest.raises(SluiceError) as caught, away.quietly(CHILD.at(PLATFORM), "job-1"):
        raise error
    assert "gold" not in str(caught.value)
    assert caught.value.reason == reason


def _seen(address: StoreAddress) -> StoreSeen:
    return StoreSeen(namespace=PLATFORM, name="main", address=address, hosts=True)


def test_a_plan_of_other_addresses_is_not_run_beside_the_login() -> None:
    """The pod would mount the Secret that such an address names, and send it there."""
    seen = [_seen(one) for one in (*PLAN.sources, PLAN.target)]
    away.check_addresses(PLAN, seen)
    evil = PLAN.target.model_copy(update={"uri": "tcp://evil:9090"})
    secret = PLAN.target.model_copy(update={"secret": "admin"})
    for target in (evil, secret):
        with pytest.raises(CopyAborted):
            away.check_addresses(PLAN.model_copy(update={"target": target}), seen)
