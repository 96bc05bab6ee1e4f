"""The objects of a Pravega in the cluster."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from localcluster.cluster import FOR_TESTS
from localcluster.images.store_image import image_command
from localstore.accounts import User, accounts_file
from localstore.certificates import Certificate
from localstore.standalone_config import (
    DIRECT_MEMORY,
    MAIN,
    Place,
    ServerTLS,
    standalone_properties,
)

NAMESPACE = "pravega"
CONTAINER = "pravega"
CONTROLLER_PORT = 9090
SEGMENTSTORE_PORT = 12345

_USER = 65532
_DATA = Path("/data")
_ACCOUNTS = Path("/etc/pravega/accounts")
TRUST = _ACCOUNTS.with_name("ca.crt")
"""The file of the container with the authority of a server that speaks TLS."""

_PORTS = {
    "controller": CONTROLLER_PORT,
    "segmentstore": SEGMENTSTORE_PORT,
    "zookeeper": 2181,
    "controller_rest": 10080,
    "segmentstore_rest": 6061,
}

# Clients and the server itself must reach the published address, as they do the pod's own address.
# The kubelet replaces the variable by it.
_PLACE = Place(
    ports=_PORTS,
    listens="0.0.0.0",  # noqa: S104 - a pod has its addresses for itself
    host="$(POD_IP)",
    port=SEGMENTSTORE_PORT,
    storage=_DATA / "storage",
    empty=Path("/dev/null"),
    accounts=_ACCOUNTS,
)

_TLS = ServerTLS(
    certificate=Certificate(_ACCOUNTS.with_name("server.crt"), _ACCOUNTS.with_name("server.key")),
    authority=TRUST,
    keys=_ACCOUNTS.with_name("server.jks"),
    trusted=_ACCOUNTS.with_name("trust.jks"),
    password=_ACCOUNTS.with_name("keystore.password"),
)

# A restarted container finds the old volume, but the server recovers nothing from it.
_START = 'rm -rf "$0" && mkdir "$0" && exec "$@"'


def namespace() -> dict[str, Any]:
    """Return the namespace, in which pods have no privileges."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted", FOR_TESTS: "yes"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": labels},
    }


def host(name: str) -> str:
    """Return the name of a server's Service in the cluster."""
    return f"{name}.{NAMESPACE}.svc"


def files(name: str, users: Sequence[User], tls: ServerTLS | None) -> dict[str, Any]:
    """Return the Secret with the server's accounts and certificates."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(name),
        "stringData": {_ACCOUNTS.name: accounts_file(users)},
    }
    if tls is None:
        return secret
    own = (tls.certificate.chain, tls.certificate.key, tls.authority)
    found = (*own, tls.keys, tls.trusted, tls.password)
    return secret | {"data": {one.name: b64encode(one.read_bytes()).decode() for one in found}}


def service(name: str, *, tls: bool = False) -> dict[str, Any]:
    """Return the Service of the controller, and with TLS of the segment store.

    A certificate is for a name, not for the later address of a pod. The server itself finds its
    segment store by this Service before it is ready.
    """
    ports = {"controller": CONTROLLER_PORT} | ({"segmentstore": SEGMENTSTORE_PORT} if tls else {})
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(name),
        "spec": {
            "selector": _labels(name),
            "publishNotReadyAddresses": tls,
            "ports": [
                {"name": one, "port": port, "targetPort": port} for one, port in ports.items()
            ],
        },
    }


def deployment(
    name: str, *, image: str, heap: str, users: Sequence[User], tls: bool = False
) -> dict[str, Any]:
    """Return the Deployment of the server.

    Args:
        name: name of the Deployment and of the Secret with the accounts.
        image: reference of the image.
        heap: maximum heap, in the JVM's notation.
        users: accounts; no login is required if empty.
        tls: whether it speaks TLS, with the certificates beside the accounts.
    """
    template = {
        "metadata": {"labels": _labels(name)},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,  # Pravega would read these variables as settings
            "terminationGracePeriodSeconds": 1,  # there is nothing to save
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(name, image, heap, users, tls=tls)],
            "volumes": _volumes(name, users),
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(name),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": _labels(name)},
            "template": template,
        },
    }


def _container(
    name: str, image: str, heap: str, users: Sequence[User], *, tls: bool
) -> dict[str, Any]:
    place = replace(_PLACE, host=host(name), tls=_TLS) if tls else _PLACE
    command = image_command(
        MAIN,
        heap=heap,
        direct_memory=DIRECT_MEMORY,
        properties=standalone_properties(place, users),
        mended=True,
    )
    mounts: list[dict[str, Any]] = [
        {"name": "data", "mountPath": str(_DATA)},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the JVM's own
    ]
    if users:
        mounts.append({"name": "accounts", "mountPath": str(_ACCOUNTS.parent), "readOnly": True})
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", _START, str(_PLACE.storage), *command],
        "env": [{"name": "POD_IP", "valueFrom": address}],
        "ports": [
            {"name": "controller", "containerPort": CONTROLLER_PORT},
            {"name": "segmentstore", "containerPort": SEGMENTSTORE_PORT},
        ],
        # The controller opens its port last.
        "readinessProbe": {"tcpSocket": {"port": CONTROLLER_PORT}, "periodSeconds": 1},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}},
        "volumeMounts": mounts,
    }


def _volumes(name: str, users: Sequence[User]) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "data", "emptyDir": {}},
        {"name": "tmp", "emptyDir": {}},
    ]
    if users:
        volumes.append({"name": "accounts", "secret": {"secretName": name}})
    return volumes


def _metadata(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": NAMESPACE, "labels": _labels(name)}


def _labels(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name}
