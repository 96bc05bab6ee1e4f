import pytest

from localcluster.store_manifests import deployment, files, service
from localstore.accounts import ADMIN, READER, User


def test_the_store_runs_without_privileges() -> None:
    """The pod satisfies the restricted pod security standard, and its root is read-only."""
    pod = deployment("pravega", image="i", heap="3g", users=())["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_clients_are_told_the_pods_address() -> None:
    """The kubelet fills in the address that the store publishes."""
    pod = deployment("pravega", image="i", heap="3g", users=())["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    published = "-Dpravegaservice.service.published.host.nameOrIp=$(POD_IP)"
    assert published in container["command"]
    assert [variable["name"] for variable in container["env"]] == ["POD_IP"]


@pytest.mark.parametrize("users", [(), (ADMIN, READER)], ids=["open", "login"])
def test_accounts_are_mounted_where_one_has_to_log_in(users: tuple[User, ...]) -> None:
    """A server with users mounts the Secret of its own name. An open server mounts none."""
    pod = deployment("one", image="i", heap="3g", users=users)["spec"]["template"]["spec"]
    secrets = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
    assert secrets == ([{"secretName": "one"}] if users else [])
    assert files("one", users, None)["metadata"]["name"] == "one"


def test_with_tls_clients_are_told_the_name_of_the_certificate() -> None:
    """The Service has both servers' ports, also before they are ready: the store calls itself."""
    pod = deployment("one", image="i", heap="3g", users=(ADMIN,), tls=True)["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    name = "one.pravega.svc"
    assert f"-Dpravegaservice.service.published.host.nameOrIp={name}" in container["command"]
    assert "-Dsinglenode.security.tls.enable=true" in container["command"]
    found = service("one", tls=True)["spec"]
    assert [port["name"] for port in found["ports"]] == ["controller", "segmentstore"]
    assert found["publishNotReadyAddresses"]
