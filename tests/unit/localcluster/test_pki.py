import base64
import json
import subprocess
from pathlib import Path

import pytest

from localcluster.node.pki import Identity, ensure_pki

HERE = Identity("node", "192.0.2.1", "10.96.0.1", "https://127.0.0.1:6443")
ELSEWHERE = Identity("node", "192.0.2.99", "10.96.0.1", "https://127.0.0.1:6443")


def openssl(*arguments: object) -> str:
    """Run OpenSSL, assert that it succeeds, and return its output."""
    return subprocess.run(
        ["openssl", *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def pki(tmp_path: Path) -> Path:
    """Return the folder with the certificates of a node."""
    ensure_pki(tmp_path / "pki", HERE)
    return tmp_path / "pki"


def test_every_certificate_is_signed_by_its_authority(pki: Path) -> None:
    """The front proxy has its own authority, so that no other client can pose as it."""
    leaves = {file.stem for file in pki.glob("*.crt")} - {"ca", "front-proxy-ca"}
    for name in leaves:
        authority = "front-proxy-ca" if name == "front-proxy-client" else "ca"
        openssl("verify", "-CAfile", pki / f"{authority}.crt", pki / f"{name}.crt")
    assert {"apiserver", "kubelet-server", "apiserver-kubelet-client"} < leaves


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1", "10.96.0.1"])
def test_the_api_server_is_known_by_each_of_its_addresses(pki: Path, address: str) -> None:
    """Clients on the machine and in pods use different addresses."""
    found = openssl("x509", "-in", pki / "apiserver.crt", "-noout", "-checkip", address)
    assert "does match" in found


def test_the_api_server_is_known_by_its_name(pki: Path) -> None:
    """Pods use the name of its service."""
    name = "kubernetes.default.svc.cluster.local"
    found = openssl("x509", "-in", pki / "apiserver.crt", "-noout", "-checkhost", name)
    assert "does match" in found


def test_a_kubeconfig_carries_user_and_group(pki: Path) -> None:
    """The kubelet's certificate names the node as its user."""
    config = json.loads((pki / "kubelet.kubeconfig").read_text())
    data = config["users"][0]["user"]["client-certificate-data"]
    certificate = pki / "shown.crt"
    certificate.write_bytes(base64.b64decode(data))
    subject = openssl("x509", "-in", certificate, "-noout", "-subject").replace(" ", "")
    assert "O=system:nodes" in subject
    assert "CN=system:node:node" in subject


def test_keys_are_for_nobody_else(pki: Path) -> None:
    """Only the owner can read the folder of the keys."""
    assert pki.stat().st_mode & 0o077 == 0


def test_nothing_is_made_twice(pki: Path) -> None:
    """A second start keeps the existing certificates."""
    before = (pki / "apiserver.crt").read_bytes()
    ensure_pki(pki, HERE)
    assert (pki / "apiserver.crt").read_bytes() == before


def test_a_machine_with_a_new_address_keeps_its_authority(pki: Path) -> None:
    """The API server's certificate gets the new address. Existing kubeconfigs still trust it."""
    before = (pki / "ca.crt").read_bytes(), (pki / "sa.key").read_bytes()
    ensure_pki(pki, ELSEWHERE)
    found = openssl("x509", "-in", pki / "apiserver.crt", "-noout", "-checkip", "192.0.2.99")
    assert "does match" in found
    assert ((pki / "ca.crt").read_bytes(), (pki / "sa.key").read_bytes()) == before
