"""The mounts of stores in pods."""

from sluice.core.values.model import StoreAddress
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.kube.jobs.mounts import CREDENTIALS_DIR, VOLUMES_DIR, claims_of, store_volumes

LIVE = StoreAddress(uri="tcp://here:1", secret="login")  # noqa: S106 - the name of a Secret
BUCKET = StoreAddress(backend="s3", uri="s3://archives", secret="keys")  # noqa: S106 - as above
VOLUME = StoreAddress(backend="volume", uri="volume://archives/streams")


def mounted(*sources: StoreAddress, target: StoreAddress) -> dict[str, dict[str, object]]:
    """Return the volumes by mount path, without /tmp."""
    plan = StreamCopyPlan(sources=sources, target=target, streams=())
    volumes, mounts = store_volumes(plan, scratch="1Gi")
    by_name = {one.pop("name"): one for one in volumes}
    found = {one["mountPath"]: by_name[one["name"]] for one in mounts}
    assert found.pop("/tmp") == {"emptyDir": {"sizeLimit": "1Gi"}}  # noqa: S108 - a pod's
    return found


def items(*keys: str) -> list[dict[str, str]]:
    """Return these keys as items of a volume."""
    return [{"key": key, "path": key} for key in keys]


def test_each_store_has_the_keys_of_its_kind() -> None:
    """Other keys of the Secret are not mounted, since Sluice does not need them."""
    found = mounted(LIVE, target=BUCKET)
    assert found == {
        f"{CREDENTIALS_DIR}/login": {
            "secret": {
                "secretName": "login",
                "defaultMode": 0o440,
                "items": items("username", "password"),
            }
        },
        f"{CREDENTIALS_DIR}/keys": {
            "secret": {
                "secretName": "keys",
                "defaultMode": 0o440,
                "items": items("accessKeyId", "secretAccessKey"),
            }
        },
    }


def test_certificates_lie_where_the_address_says() -> None:
    """A ConfigMap has a name that no Secret can have.

    A Secret's bundle is beside its other keys.
    """
    of_map = BUCKET.model_copy(update={"ca": "_keys/ca.crt"})
    found = mounted(target=of_map)
    assert found[f"{CREDENTIALS_DIR}/_keys"] == {
        "configMap": {"name": "keys", "items": items("ca.crt")}
    }
    of_secret = BUCKET.model_copy(update={"ca": "keys/ca.crt"})
    (secret,) = mounted(target=of_secret).values()
    assert secret["secret"]["items"] == items(  # type: ignore[index]
        "accessKeyId", "secretAccessKey", "ca.crt"
    )


def test_the_certificates_of_a_live_store_are_mounted_beside_its_login() -> None:
    """They are mounted as those of a bucket."""
    found = mounted(LIVE.model_copy(update={"ca": "_trust/ca.crt"}), target=BUCKET)
    assert found[f"{CREDENTIALS_DIR}/_trust"] == {
        "configMap": {"name": "trust", "items": items("ca.crt")}
    }
    assert f"{CREDENTIALS_DIR}/login" in found


def test_a_clients_certificate_is_mounted_with_its_key() -> None:
    """The keys are those of a Secret of type kubernetes.io/tls."""
    (secret,) = mounted(target=StoreAddress(uri="tls://here:1", client_certificate="mesh")).values()
    assert secret["secret"]["items"] == items("tls.crt", "tls.key")  # type: ignore[index]


def test_one_secret_of_two_stores_is_mounted_once() -> None:
    """The mount has the keys of both stores."""
    both = BUCKET.model_copy(update={"secret": "login"})
    (secret,) = mounted(LIVE, target=both).values()
    assert secret["secret"]["items"] == items(  # type: ignore[index]
        "username", "password", "accessKeyId", "secretAccessKey"
    )


def test_a_claim_is_mounted_under_its_name() -> None:
    """The claim is mounted once, for any number of addresses in it."""
    other = VOLUME.model_copy(update={"uri": "volume://archives/other"})
    found = mounted(VOLUME, other, target=LIVE)
    assert found[f"{VOLUMES_DIR}/archives"] == {"persistentVolumeClaim": {"claimName": "archives"}}
    assert claims_of(StreamCopyPlan(sources=(VOLUME, other), target=LIVE, streams=())) == [
        "archives"
    ]
    assert claims_of(StreamCopyPlan(sources=(BUCKET,), target=LIVE, streams=())) == []
