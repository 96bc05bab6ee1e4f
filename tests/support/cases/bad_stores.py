"""StreamStores with an unusable spec, and the field or the reason that names the fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

Object = dict[str, Any]

LONG: Final = "x" * 300
HOSTILE: Final = "\u202e\x1b[31m{{7*7}}$(id)`id`<script>\n"
"""A text that terminals, shells, templates and pages could mistake for code."""

URI: Final = "spec.pravega.controllerURI"
TLS: Final = "spec.pravega.tls"
LOGIN: Final = "spec.pravega.auth.basic.secretRef.name"


@dataclass(frozen=True)
class BadStore:
    """The spec of an unusable StreamStore.

    Attributes:
        spec: the spec. Some words stand for addresses: `PLAIN` for a server without TLS, `SECURED`
            for one with TLS, and `PRETENDED` for a `tls://` address of a server without TLS.
        says: text of the refusal or the condition: the wrong field, or the reason.
        refused: whether the API server refuses the spec.
        name: the resource's name; None for a valid one.
    """

    spec: Object
    says: str
    refused: bool = True
    name: str | None = None


def _pravega(uri: Any, **more: Any) -> Object:
    return {"pravega": {"controllerURI": uri, **more}}


def _login(name: Any) -> Object:
    return {"auth": {"basic": {"secretRef": {"name": name}}}}


def _tls(**fields: Any) -> Object:
    return {"tls": fields}


def _bundle(**fields: Any) -> Object:
    return _tls(caBundleRef=fields)


def _s3(**more: Any) -> Object:
    return {"s3": {"bucket": "archives", **more}}


BAD: Final[dict[str, BadStore]] = {
    # Addresses
    "another scheme": BadStore(_pravega("http://127.0.0.1:9090"), URI),
    "no port": BadStore(_pravega("tcp://127.0.0.1"), URI),
    "a port that is none": BadStore(_pravega("tcp://127.0.0.1:99999"), URI),
    "no host": BadStore(_pravega("tcp://:9090"), URI),
    "a user in the address": BadStore(_pravega("tcp://admin:secret@127.0.0.1:9090"), URI),
    "a path behind it": BadStore(_pravega("tcp://127.0.0.1:9090/../../etc"), URI),
    "two addresses": BadStore(_pravega("tcp://127.0.0.1:9090,tcp://127.0.0.1:9091"), URI),
    "a line break": BadStore(_pravega("tcp://127.0.0.1:9090\nHost: evil"), URI),
    "a hostile address": BadStore(_pravega(f"tcp://{HOSTILE}:9090"), URI),
    "a long address": BadStore(_pravega(f"tcp://{LONG * 10}:9090"), URI),
    "a number": BadStore(_pravega(9090), URI),
    "a host that is not there": BadStore(
        _pravega("tcp://store.invalid:9090"), "StoreUnavailable", refused=False
    ),
    "no listener": BadStore(_pravega("tcp://127.0.0.1:1"), "StoreUnavailable", refused=False),
    # TLS
    "tls without tls": BadStore(_pravega("tcp://127.0.0.1:9090", **_bundle(name="ca")), TLS),
    "a hostile server name": BadStore(_pravega("SECURED", **_tls(serverName=HOSTILE)), TLS),
    "a bundle of another kind": BadStore(
        _pravega("SECURED", **_bundle(name="ca", kind="Pod")), f"{TLS}.caBundleRef.kind"
    ),
    "a bundle's key with a path": BadStore(
        _pravega("SECURED", **_bundle(name="ca", key="../../token")), f"{TLS}.caBundleRef.key"
    ),
    "a bundle that is not there": BadStore(
        _pravega("SECURED", **_bundle(name="absent")), f"{TLS}.caBundleRef", refused=False
    ),
    "a bundle of garbage": BadStore(
        _pravega("SECURED", **_bundle(name="garbage")), f"{TLS}.caBundleRef", refused=False
    ),
    "an unknown authority": BadStore(_pravega("SECURED"), f"{TLS}.caBundleRef", refused=False),
    "a certificate that is not there": BadStore(
        _pravega("SECURED", **_tls(clientCertificateSecretRef={"name": "absent"})),
        f"{TLS}.clientCertificateSecretRef",
        refused=False,
    ),
    "a certificate without its key": BadStore(
        _pravega("SECURED", **_tls(clientCertificateSecretRef={"name": "half"})),
        f"{TLS}.clientCertificateSecretRef",
        refused=False,
    ),
    "TLS to plain": BadStore(_pravega("PRETENDED"), URI, refused=False),
    # Secrets
    "a Secret with a path": BadStore(
        _pravega("PLAIN", **_login("../../kube-system/secrets/admin")), LOGIN
    ),
    "a hostile Secret": BadStore(_pravega("PLAIN", **_login(HOSTILE)), LOGIN),
    "a Secret without a name": BadStore(_pravega("PLAIN", **_login("")), LOGIN),
    "a Secret that is not there": BadStore(
        _pravega("PLAIN", **_login("absent")), LOGIN, refused=False
    ),
    "a Secret without a password": BadStore(
        _pravega("PLAIN", **_login("half")), LOGIN, refused=False
    ),
    "a Secret of another namespace": BadStore(
        _pravega(
            "PLAIN",
            auth={"basic": {"secretRef": {"name": "login", "namespace": "kube-system"}}},
        ),
        "secretRef.namespace",
    ),
    # Backends, names, access
    "no backend": BadStore({}, "spec"),
    "two backends": BadStore(_pravega("PLAIN") | _s3(), "spec"),
    "a bucket with a path": BadStore(_s3(bucket="../archives"), "spec.s3.bucket"),
    "a bucket without keys": BadStore(_s3(), "spec.s3.credentialsSecretRef", refused=False),
    "a folder above": BadStore(
        {"volume": {"claimName": "shelf", "path": "../../etc"}}, "spec.volume.path"
    ),
    "a claim that is not there": BadStore(
        {"volume": {"claimName": "absent"}}, "spec.volume.claimName", refused=False
    ),
    "a hostile scope": BadStore(
        _pravega("PLAIN") | {"access": {"scopes": [HOSTILE]}}, "spec.access.scopes"
    ),
    "a hostile name": BadStore(_pravega("PLAIN"), "metadata.name", name="../evil"),
    "a long name": BadStore(_pravega("PLAIN"), "metadata.name", name=LONG),
}
