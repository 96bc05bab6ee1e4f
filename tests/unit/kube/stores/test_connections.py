from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.config import Settings
from sluice.core.values.model import StoreAddress
from sluice.errors import AccessDenied, ClaimNotFound, InvalidSpec, SecretNotFound
from sluice.kube.api.kinds import CLAIM, CONFIG_MAP, SECRET
from sluice.kube.api.objects import IN_USE_FINALIZER, STAGING_FINALIZER
from sluice.kube.stores import connections
from sluice.kube.stores.connections import Connections
from sluice.kube.stores.dependents import StorePlace, users
from sluice.kube.stores.keys import Keys, login_of, read_keys
from sluice.kube.stores.storekeeper import _secrets
from sluice.stores.trust import ClientCertificate
from support.cases.resources import ARCHIVE, COPY, STORE, changed
from support.kube.api_server import ApiServer

if TYPE_CHECKING:
    from sluice.engine.access.source_runs import Place
    from sluice.kube.api.kinds import Object


def secret(**values: bytes) -> Object:
    """Make a Secret as the API server returns it."""
    return {"data": {key: base64.b64encode(value).decode() for key, value in values.items()}}


LIVE = StoreAddress(uri="tcp://here:1", secret="login")  # noqa: S106 - the name of a Secret
BUCKET = StoreAddress(
    backend="s3",
    uri="s3://archives",
    secret="keys",  # noqa: S106 - the name of a Secret
    ca="_trust/ca.crt",
)


@pytest.mark.parametrize(
    ("address", "field"),
    [
        (LIVE, "spec.pravega.controllerURI"),
        (BUCKET, "spec.s3.endpoint"),
        (BUCKET.model_copy(update={"endpoint": "https://here:1"}), "spec.s3.endpoint"),
    ],
)
def test_a_server_that_the_administrator_does_not_allow_is_not_opened(
    address: StoreAddress, field: str
) -> None:
    """Its Secret is not read either, even if admission accepted the store."""
    connections = Connections(None, Settings(), allowed=lambda _: False)  # type: ignore[arg-type]
    with pytest.raises(AccessDenied, match="administrator allows no store at") as caught:
        asyncio.run(connections.place("shop", address))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("address", "field"),
    [
        (LIVE, "spec.pravega.auth.basic.secretRef.name"),
        (
            LIVE.model_copy(update={"secret": None, "ca": "login/ca.crt"}),
            "spec.pravega.tls.caBundleRef",
        ),
        (
            LIVE.model_copy(update={"secret": None, "client_certificate": "login"}),
            "spec.pravega.tls.clientCertificateSecretRef.name",
        ),
    ],
)
@pytest.mark.parametrize("label", [None, "false", "true"])
def test_a_secret_consents_by_its_label(
    address: StoreAddress, field: str, label: str | None
) -> None:
    """If the administrator does not require consent, any Secret may be used, labelled or not."""
    server = ApiServer()
    data = {"username": b"me", "password": b"p", "ca.crt": b"c", "tls.crt": b"c", "tls.key": b"k"}
    metadata: Object = {"name": "login", "namespace": "shop"}
    if label is not None:
        metadata["labels"] = {"sluice.dev/store": label}
    server.put(SECRET, {"metadata": metadata, **secret(**data)})

    async def read(*, labelled: bool) -> Keys:
        return await read_keys(server.api, "shop", address, labelled=labelled)

    assert asyncio.run(read(labelled=False)).fingerprint
    if label == "true":
        assert asyncio.run(read(labelled=True)).fingerprint
        return
    with pytest.raises(AccessDenied, match="'login' lacks the label") as caught:
        asyncio.run(read(labelled=True))
    assert caught.value.field == field


def test_a_volume_has_no_server_to_allow() -> None:
    """The volume's claim is in the namespace, and only pods there mount it."""
    volume = StoreAddress(backend="volume", uri="volume://claim/path")
    connections = Connections(ApiServer().api, Settings(), allowed=lambda _: False)
    assert isinstance(asyncio.run(connections.place("shop", volume)), ArchiveRoot)


def test_a_secret_gives_a_login() -> None:
    """A newline at the end, as editors leave it, does not count."""
    found = login_of(LIVE, secret(username=b"me\n", password="p\u00e4ss\r\n".encode()))
    assert found == ("me", "p\u00e4ss")


def test_a_secret_gives_a_key_of_a_bucket() -> None:
    """The keys have other names than those of a login."""
    found = login_of(BUCKET, secret(accessKeyId=b"AK", secretAccessKey=b"s3cret"))
    assert found == ("AK", "s3cret")
    with pytest.raises(SecretNotFound, match="no key 'accessKeyId'") as caught:
        login_of(BUCKET, secret(username=b"me", password=b"p"))
    assert caught.value.field == "spec.s3.credentialsSecretRef.name"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, "there is no Secret 'login'"),
        ({}, "no key 'username'"),
        (secret(username=b"me"), "no key 'password'"),
        (secret(username=b"me", password=b""), "no key 'password'"),
        (secret(username=b"me", password=b"\n"), "no key 'password'"),
        (secret(username=b"\xff\xfe", password=b"p"), "no key 'username'"),
        ({"data": {"username": "!", "password": "cA=="}}, "no key 'username'"),
    ],
)
def test_a_secret_without_a_login_is_none(body: Object | None, words: str) -> None:
    """The error names the Secret and the key, never its content."""
    with pytest.raises(SecretNotFound, match=words) as caught:
        login_of(LIVE, body)
    assert caught.value.field == "spec.pravega.auth.basic.secretRef.name"


def test_a_fingerprint_tells_keys_apart() -> None:
    """This holds where user and password share their letters, and the text shows neither."""
    keys = [
        Keys(login=("a", "bc")),
        Keys(login=("ab", "c")),
        Keys(login=("a", "bd")),
        Keys(login=("a", "bc"), ca="pem"),
        Keys(login=("a", "bc"), client=ClientCertificate("pem", "key")),
        Keys(),
    ]
    prints = [one.fingerprint for one in keys]
    assert len(set(prints)) == len(keys)
    assert prints == [one.fingerprint for one in keys]
    assert not any("bc" in one for one in (*prints, *map(repr, keys)))


def test_certificates_are_read_where_the_store_names_them() -> None:
    """The certificates are in a ConfigMap or a Secret. Without them the store is not opened."""
    server = ApiServer()
    server.put(
        SECRET, {"metadata": {"name": "keys"}, **secret(accessKeyId=b"a", secretAccessKey=b"b")}
    )

    async def read(address: StoreAddress) -> Keys:
        return await read_keys(server.api, "default", address)

    with pytest.raises(SecretNotFound, match=r"no ConfigMap 'trust' with the key 'ca\.crt'"):
        asyncio.run(read(BUCKET))
    server.put(CONFIG_MAP, {"metadata": {"name": "trust"}, "data": {"ca.crt": "pem"}})
    server.put(SECRET, {"metadata": {"name": "trust"}, **secret(**{"ca.crt": b"secret pem"})})
    assert asyncio.run(read(BUCKET)) == Keys(login=("a", "b"), ca="pem")
    of_secret = BUCKET.model_copy(update={"ca": "trust/ca.crt"})
    assert asyncio.run(read(of_secret)).ca == "secret pem"
    live = StoreAddress(uri="tls://here:1", ca="_trust/ca.crt")
    assert asyncio.run(read(live)) == Keys(ca="pem")
    with pytest.raises(SecretNotFound) as caught:
        asyncio.run(read(live.model_copy(update={"ca": "_none/ca.crt"})))
    assert caught.value.field == "spec.pravega.tls.caBundleRef"
    shown = StoreAddress(uri="tls://here:1", client_certificate="mesh")
    server.put(SECRET, {"metadata": {"name": "mesh"}, **secret(**{"tls.crt": b"pem"})})
    with pytest.raises(SecretNotFound, match=r"no key 'tls\.key'") as caught:
        asyncio.run(read(shown))
    assert caught.value.field == "spec.pravega.tls.clientCertificateSecretRef.name"
    both = secret(**{"tls.crt": b"pem", "tls.key": b"key"})
    server.put(SECRET, {"metadata": {"name": "mesh"}, **both})
    assert asyncio.run(read(shown)) == Keys(client=ClientCertificate("pem", "key"))


def copy(name: str, *finalizers: str, target: str = "local") -> dict[str, Any]:
    """Make a StreamCopy with these finalizers."""
    body = changed(COPY, "spec.target.storeRef.name", target)
    return body | {"metadata": {"name": name, "namespace": "team", "finalizers": list(finalizers)}}


def test_who_has_something_in_a_store_uses_it() -> None:
    """A copy on either side uses the store while its finalizer stands."""
    copies = [
        copy("b", STAGING_FINALIZER, "other"),
        copy("a", STAGING_FINALIZER, target="far"),
        copy("done"),
        copy("held", IN_USE_FINALIZER),
    ]
    assert users(copies, StorePlace("team", "local")) == ["StreamCopy a", "StreamCopy b"]
    assert users(copies, StorePlace("team", "far")) == ["StreamCopy a"]
    assert users(copies, StorePlace("team", "none")) == []
    assert users(copies, StorePlace("other", "local")) == []


@pytest.mark.parametrize(
    ("status", "holds"),
    [
        ({"planHash": "a"}, True),
        ({"admittedTime": "2026-11-21T10:00:00Z"}, True),
        ({}, False),
        ({"copyID": "a", "conditions": []}, False),
    ],
)
def test_a_resource_of_another_namespace_uses_a_store_once_it_was_admitted(
    status: dict[str, Any], *, holds: bool
) -> None:
    """The status, which its author cannot write, proves it. A finalizer is not enough."""
    body = changed(copy("a", STAGING_FINALIZER), "spec.target.storeRef.namespace", "platform")
    body["status"] = status
    found = users([body], StorePlace("platform", "local"))
    assert found == (["StreamCopy team/a"] if holds else [])
    assert users([body], StorePlace("team", "local")) == ["StreamCopy a"], "the source is its own"


def test_a_store_names_its_secrets() -> None:
    """A store names the Secrets of its login and its certificates. An invalid store names none."""
    basic = {"secretRef": {"name": "login"}}
    body = changed(STORE, "spec.pravega.auth", {"basic": basic})
    assert _secrets(body) == {"login"}
    bundle = {"kind": "Secret", "name": "authority", "key": "ca.crt"}
    tls = {"caBundleRef": bundle, "clientCertificateSecretRef": {"name": "mesh"}}
    body = changed(body, "spec.pravega.controllerURI", "tls://here:1")
    body = changed(body, "spec.pravega.tls", tls)
    assert _secrets(body) == {"login", "authority", "mesh"}
    body = changed(body, "spec.pravega.tls.caBundleRef", bundle | {"kind": "ConfigMap"})
    assert _secrets(body) == {"login", "mesh"}
    assert _secrets(STORE) == set()
    assert _secrets(changed(STORE, "spec.pravega.controllerURI", "?")) == set()


# -- connections


class Connection:
    """A connection that can be closed."""

    def __init__(self) -> None:
        self.open = True

    def close(self) -> None:
        """See Store.close."""
        assert self.open
        self.open = False


def test_a_connection_is_closed_when_nobody_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection in use is kept. A later caller gets another one."""
    monkeypatch.setattr(connections, "connect", lambda *_, **__: Connection())
    here, there = StoreAddress(uri="tcp://here:1"), StoreAddress(uri="tcp://there:1")

    async def story() -> None:
        now = [0.0]
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
        connections = Connections(ApiServer().api, Settings(), idle=5)
        used, idle = await connections.get("team", here), await connections.get("team", there)
        while idle.open:  # type: ignore[attr-defined]
            now[0] += 1
            await asyncio.sleep(0)
            assert await connections.get("team", here) is used
        assert used.open  # type: ignore[attr-defined]
        anew = await connections.get("team", there)
        assert anew is not idle
        connections.close()
        assert [one.open for one in (used, anew)] == [False, False]  # type: ignore[attr-defined]
        now[0] += 10
        await asyncio.sleep(0)  # the check for idle connections finds none

    asyncio.run(story())


def test_a_volume_is_a_claim_that_is_there() -> None:
    """Only pods can read a volume, so the operator checks nothing else."""
    server, claim = ApiServer(), {"metadata": {"name": "archives", "namespace": "team"}}
    volume = StoreAddress(backend="volume", uri="volume://archives/streams")
    connections = Connections(server.api, Settings())

    async def check() -> None:
        await connections.check_claim("team", volume)

    with pytest.raises(ClaimNotFound, match="no PersistentVolumeClaim 'archives'"):
        asyncio.run(check())
    server.put(CLAIM, claim | {"status": {"phase": "Lost"}})
    with pytest.raises(ClaimNotFound, match="is lost"):
        asyncio.run(check())
    for phase in ("Bound", "Pending"):  # a claim may wait for the first pod
        server.put(CLAIM, claim | {"status": {"phase": phase}})
        asyncio.run(check())


def test_what_is_at_an_address_is_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket is no live store. A volume exists and cannot be read by the operator."""
    monkeypatch.setattr(connections, "connect", lambda *_, **__: Connection())
    bucket = StoreAddress(backend="s3", uri="s3://archives", endpoint="http://127.0.0.1:1")
    volume = StoreAddress(backend="volume", uri="volume://archives")

    async def story() -> None:
        connections = Connections(ApiServer().api, Settings(), ambient=True)
        root = await connections.place("team", bucket)
        assert isinstance(root, ArchiveRoot)
        assert await connections.place("team", bucket) is root
        with pytest.raises(InvalidSpec, match="holds no live streams"):
            await connections.get("team", bucket)
        hidden = await connections.place("team", volume)
        assert isinstance(hidden, ArchiveRoot)
        with pytest.raises(InvalidSpec, match="only pods that mount"):
            hidden.archive("orders")
        connections.close()

    asyncio.run(story())


def test_the_operator_opens_no_bucket_as_itself_unless_it_is_to() -> None:
    """Otherwise a user who may name a bucket would have the operator's rights there."""
    bucket = StoreAddress(backend="s3", uri="s3://archives")

    async def opened(*, ambient: bool) -> Place:
        return await Connections(ApiServer().api, Settings(), ambient=ambient).place("team", bucket)

    with pytest.raises(InvalidSpec, match="opens no bucket as itself") as caught:
        asyncio.run(opened(ambient=False))
    assert caught.value.field == "spec.s3.credentialsSecretRef"
    assert "accessKeyId" in caught.value.remedy
    assert isinstance(asyncio.run(opened(ambient=True)), ArchiveRoot)


def test_archives_use_stores_as_copies_do() -> None:
    """Archives use a store on either side, and as a source of a copy."""
    finalizers = {"finalizers": [STAGING_FINALIZER], "name": "one", "namespace": "team"}
    archive = ARCHIVE | {"metadata": finalizers}
    source = {"archive": {"storeRef": {"name": "archives"}, "path": "in/orders"}}
    restore = changed(COPY, "spec.source", source) | {"metadata": finalizers}
    assert users([archive, restore], StorePlace("team", "archives")) == [
        "StreamArchive one",
        "StreamCopy one",
    ]
    assert users([archive], StorePlace("team", "local")) == ["StreamArchive one"]
