"""Consent to use a store that is withdrawn while a driver runs: the driver is stopped.

The operator has a list of allowed stores, and Secrets must consent. The test runs the driver pods
here. They end as under a kubelet, once their Job's pod is deleted.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pytest

import segment_hash
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.stores.pravega import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from localstore import ForeignClient, Standalone
    from s3gateway import Gateway
    from support.cluster.local_operator import LocalOperator
    from support.tenants.desk import Desk

pytestmark = pytest.mark.timeout(900)

EVENTS, KEYS = 12_000, 8
"""Events of a stream: 12 MB."""

SLOW: Final = {"bytesPerSecond": "256Ki"}
ALLOWED: Final = ["tcp://127.0.0.1:*", "http://127.0.0.1:*"]
LABEL: Final = "sluice.dev/store"


@pytest.fixture(scope="module")
def operator_settings() -> dict[str, Any]:
    """Return settings that allow stores of this machine, and require Secrets' consent."""
    return {"stores": {"allowed": ALLOWED, "requireSecretLabel": True}}


@pytest.fixture
def source(desk: Desk, foreign: ForeignClient, scope: str, standalone: Standalone) -> str:
    """Return the name of a stream with events, in a StreamStore `guarded` with a Secret."""
    foreign.create(scope, "orders", segments=2)
    foreign.write(scope, "orders", events=EVENTS, size=1000, keys=KEYS)
    login = {"username": "reader", "password": "a password"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}}
    desk.tenant.apply(
        secret | {"stringData": login},
        desk.tenant.store_resource("guarded", uri=standalone.controller_uri, secret="login"),  # noqa: S106 - its name
    )
    desk.tenant.patch("sst", "guarded", {"spec": {"access": None}})  # of an earlier test
    consent(desk)
    desk.until_reason("sst", "guarded", "Reachable")
    return f"{scope}/orders"


def consent(desk: Desk) -> None:
    """Add the Secret's label of consent."""
    desk.tenant.run("label", "secret", "login", f"{LABEL}=true", "--overwrite")


def withdraw(desk: Desk) -> None:
    """Remove the Secret's label of consent."""
    desk.tenant.run("label", "secret", "login", f"{LABEL}-")


def denied(desk: Desk, kind: str, name: str, *, about: str) -> None:
    """Wait until a resource's condition and an event say that it may not use its store."""
    tenant = desk.tenant
    desk.until_reason(kind, name, "AccessDenied")
    message = tenant.condition(name, resource=kind)["message"]
    assert about in message
    tenant.until(
        f"an event about {name} says so",
        lambda: any(
            reason == "AccessDenied" and about in text for reason, text in tenant.events(name)
        ),
    )
    body = tenant.get(kind, name)
    assert body is not None
    assert body["metadata"]["finalizers"] == ["sluice.dev/staging"]
    last = body["status"]["history"][-1]
    assert (last["outcome"], last["reason"]) == ("Stopped", "AccessDenied")


def reports(store: Standalone, stream: str) -> list[Any]:
    """Return the stand-alone script's report on each segment of a stream, without its name."""
    scope, _, short = stream.partition("/")
    found = [
        segment_hash.segment_report(*store.segment_store, scope, short, number)
        for number in range(2)
    ]
    return [{key: one[key] for key in ("length", "sha256")} for one in found]


def staged(store: Standalone, stream: str, copy_id: str) -> int:
    """Return the bytes that a copy has staged beside its target, as the store has them."""
    scope, _, short = stream.partition("/")
    target, total = StreamName(scope=scope, stream=short), 0
    with segment_hash.Connection(*store.segment_store) as connection:
        for segment, index, part in product(range(4), range(2), range(4)):
            key = identity.staging_key(copy_id, index, part)
            found = connection.info(names.staging_name(target, segment, key))
            total += 0 if found is None else found["end"]
    return total


def _withdrawn_label(desk: Desk, _: LocalOperator) -> Callable[[], None]:
    withdraw(desk)
    return lambda: consent(desk)


def _narrowed_access(desk: Desk, _: LocalOperator) -> Callable[[], None]:
    def allow(*operations: str) -> None:
        desk.tenant.patch("sst", "guarded", {"spec": {"access": {"operations": [*operations]}}})

    allow("Create", "Append")
    return lambda: allow("Read")


def _narrowed_list(_: Desk, local: LocalOperator) -> Callable[[], None]:
    def allow(*addresses: str) -> None:
        local.operator.kill()
        local.operator.configure(stores={"allowed": [*addresses], "requireSecretLabel": True})
        local.operator.start()

    allow("tcp://pravega.example.com:*")
    return lambda: allow(*ALLOWED)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("revoke", "about"),
    [
        pytest.param(_withdrawn_label, "the Secret 'login' lacks the label", id="consent"),
        pytest.param(
            _narrowed_access,
            "does not allow to Read",
            id="access",
        ),
        pytest.param(
            _narrowed_list,
            "the administrator allows no store at tcp://127.0.0.1",
            id="allow-list",
        ),
    ],
)
def test_a_copy_stops_midway_and_goes_on_once_it_may(
    desk: Desk,
    local_operator: LocalOperator,
    source: str,
    scope: str,
    standalone: Standalone,
    revoke: Callable[[Desk, LocalOperator], Callable[[], None]],
    about: str,
) -> None:
    """The copy's driver stops and staged bytes stay. In the end the target has the same bytes."""
    tenant, target = desk.tenant, f"{source}-copy"
    name = f"copy-{scope}"
    body = tenant.copy_resource(name, source, target, limits=SLOW)
    body["spec"]["source"]["storeRef"]["name"] = "guarded"
    tenant.apply(body)
    with desk.driver() as driver:
        copy_id = tenant.until("its identity is told", lambda: tenant.status(name).get("copyID"))
        tenant.until("some is staged", lambda: staged(standalone, target, copy_id) > 1 << 20)
        consented = revoke(desk, local_operator)
        driver.stop()
        denied(desk, "scopy", name, about=about)
    assert staged(standalone, target, copy_id) > 1 << 20
    consented()
    tenant.patch("scopy", name, {"spec": {"limits": None}})
    desk.drive()
    status = tenant.until_ready(name)
    assert status["attempts"] == 2
    assert reports(standalone, source) == reports(standalone, target)
    tenant.until_tidied(name)


@pytest.mark.exhaustive
def test_a_follower_stops_and_goes_on_once_it_may(
    desk: Desk, source: str, foreign: ForeignClient, standalone: Standalone, scope: str
) -> None:
    """Events that come to the source meanwhile are followed later, once each."""
    tenant, target = desk.tenant, f"{source}-live"
    body = tenant.copy_resource("followed", source, target, mode="Continuous")
    body["spec"]["source"]["storeRef"]["name"] = "guarded"
    tenant.apply(body)
    with desk.driver() as driver:
        tenant.until_reason("followed", "Following")
        withdraw(desk)
        driver.stop()
        denied(desk, "scopy", "followed", about="the Secret 'login' lacks the label")
    foreign.write(scope, "orders", events=1000, size=1000, keys=KEYS, first=EVENTS)
    consent(desk)
    with desk.driver() as driver:
        tenant.until_reason("followed", "Following")
        tenant.patch("scopy", "followed", {"spec": {"cutover": "SealAndDrain"}})
        assert driver.finish() == 0
    tenant.until_ready("followed")
    assert reports(standalone, source) == reports(standalone, target)
    assert foreign.read(scope, "orders-live").events == EVENTS + 1000
    tenant.until_tidied("followed")


@pytest.mark.exhaustive
def test_an_archive_stops_midway_and_goes_on_once_it_may(
    desk: Desk, gateway: Gateway, source: str, foreign: ForeignClient, scope: str
) -> None:
    """The archive continues the run that it began. A restore has each event once."""
    tenant = desk.tenant
    desk.bucket(gateway, "shelf")
    tenant.run("label", "secret", "keys", f"{LABEL}=true")
    desk.until_reason("sst", "shelf", "Reachable")
    place = {"storeRef": {"name": "shelf"}, "path": "orders"}
    spec = {
        "source": {"storeRef": {"name": "guarded"}, "scope": scope, "stream": "orders"},
        "destination": place,
        "limits": SLOW,
    }
    desk.resource("StreamArchive", "orders", spec)
    with desk.driver() as driver:
        tenant.until(
            "some is archived",
            lambda: (
                (tenant.get("sarc", "orders") or {})
                .get("status", {})
                .get("progress", {})
                .get("percent", 0)
                >= 10
            ),
        )
        withdraw(desk)
        driver.stop()
        denied(desk, "sarc", "orders", about="the Secret 'login' lacks the label")
    consent(desk)
    tenant.patch("sarc", "orders", {"spec": {"limits": None}})
    desk.drive()
    status = desk.until_reason("sarc", "orders", "Archived")
    assert (status["run"], status["attempts"]) == (1, 2)
    goal = {"storeRef": {"name": "store"}, "scope": scope, "stream": "restored"}
    origin = {"archive": {"storeRef": {"name": "shelf"}, "path": "orders"}}
    desk.resource("StreamCopy", "restored", {"source": origin, "target": goal})
    desk.drive()
    desk.until_reason("scopy", "restored", "Copied")
    before, restored = foreign.read(scope, "orders"), foreign.read(scope, "restored")
    assert (restored.events, restored.digest) == (EVENTS, before.digest)
