"""StreamStores in files: accepted fields and addresses, and the errors for others."""

import pytest

from sluice.api.load import load
from sluice.errors import InvalidSpec
from support.cases.resources import COPY, REMOVED, STORE, changed, label, text


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.kafka", {}),
        ("spec.pravega.controllerURI", REMOVED),
        ("spec.pravega.controllerURI", "127.0.0.1:9090"),
        ("spec.pravega.controllerURI", "ssl://host:9090"),
        ("spec.pravega.controllerURI", "tls://host"),
        ("spec.pravega.tls", {}),
        ("spec.pravega.tls", {"serverName": "host"}),
        ("spec.pravega.controllerURI", "tcp://host"),
        ("spec.pravega.controllerURI", "tcp://host:port"),
        ("spec.pravega.controllerURI", "tcp://host:0"),
        ("spec.pravega.controllerURI", "tcp://host:65536"),
        ("spec.pravega.controllerURI", "tcp://user:pass@host:9090"),
        ("spec.pravega.controllerUri", "tcp://host:9090"),
        ("spec.pravega.auth.basic", REMOVED),
        ("spec.pravega.auth.basic.password", "1234"),
        ("spec.pravega.auth.basic.secretRef.name", "Login"),
    ],
    ids=label,
)
def test_a_wrong_field_of_a_store_is_named(path: str, value: object) -> None:
    """A missing, unknown or wrong field of a store raises InvalidSpec with its path."""
    auth = {"basic": {"secretRef": {"name": "login"}}}
    good = changed(STORE, "spec.pravega.auth", auth) if "auth" in path else STORE
    with pytest.raises(InvalidSpec) as caught:
        load(text(changed(good, path, value), COPY))
    assert path in str(caught.value)
    assert "StreamStore in document 1" in caught.value.message


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ssl://host:9090", "or with TLS tls://host:port"),
        ("tcp://host", "the address of a controller is tcp://host:port"),
        ("host:9090", "the address of a controller is tcp://host:port"),
        ("tcp://user:pass@host:9090", "with its port and nothing else"),
        ("tcp://host:9090\n", "with its port and nothing else"),
        ("tcp://host:0", "a port from 1 to 65535"),
    ],
)
def test_a_wrong_address_is_refused_with_a_sentence(address: str, said: str) -> None:
    """The message says how an address is written, instead of showing the pattern."""
    with pytest.raises(InvalidSpec) as caught:
        load(text(changed(STORE, "spec.pravega.controllerURI", address), COPY))
    assert said in caught.value.message
    assert "pattern" not in caught.value.message


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("serverName", "host:9090", "without scheme, port and *"),
        ("serverName", "*.example.com", "without scheme, port and *"),
        ("serverName", "https://host", "without scheme, port and *"),
        ("serverName", "", "at least 1"),
        ("caBundleRef", {"name": "Trust"}, "should match"),
        ("caBundleRef", {"kind": "File", "name": "trust"}, "ConfigMap"),
        ("caBundleRef", {"key": "ca.crt"}, "required"),
        ("insecure", True, "there is no such field"),
    ],
    ids=label,
)
def test_a_wrong_field_of_tls_is_named(path: str, value: object, said: str) -> None:
    """The error has the field's path and says what is wrong with it."""
    good = changed(STORE, "spec.pravega.controllerURI", "tls://host:9090")
    with pytest.raises(InvalidSpec) as caught:
        load(text(changed(good, f"spec.pravega.tls.{path}", value), COPY))
    assert f"spec.pravega.tls.{path}" in str(caught.value)
    assert said in caught.value.message


def test_an_address_with_tls_needs_nothing_else_and_one_without_forbids_it() -> None:
    """Without `tls`, the system's authorities verify the servers of a tls:// address.

    `tls` beside a tcp:// address is refused.
    """
    good = changed(STORE, "spec.pravega.controllerURI", "tls://host:9090")
    load(text(good, COPY))
    load(text(changed(good, "spec.pravega.tls", {}), COPY))
    with pytest.raises(InvalidSpec) as caught:
        load(text(changed(STORE, "spec.pravega.tls", {"serverName": "host"}), COPY))
    assert caught.value.field == "spec.pravega.tls"
    assert "write controllerURI as tls://host:port, or remove tls" in caught.value.message
