import base64
import json
import shutil
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


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the certificates of a node, which no test changes."""
    folder = tmp_path_factory.mktemp("node") / "pki"
    ensure_pki(folder, HERE)
    return folder


@pytest.fixture
def own_pki(pki: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder for one test alone."""
    return Path(shutil.copytree(pki, tmp_path / "pki"))


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


def test_a_kubeconfig_carries_user_and_group(pki: Path, tmp_path: Path) -> None:
    """The kubelet's certificate names the node as its user."""
    config = json.loads((pki / "kubelet.kubeconfig").read_text())
    data = config["users"][0]["user"]["client-certificate-data"]
    certificate = tmp_path / "shown.crt"
    certificate.write_bytes(base64.b64decode(data))
    subject = openssl("x509", "-in", certificate, "-noout", "-subject").replace(" ", "")
    assert "O=system:nodes" in subject
    assert "CN=system:node:node" in subject


def test_keys_are_for_nobody_else(pki: Path) -> None:
    """Only the owner can read the folder of the keys."""
    assert pki.stat().st_mode & 0o077 == 0


def test_nothing_is_made_twice(own_pki: Path) -> None:
    """A second start keeps the existing certificates."""
    before = (own_pki / "apiserver.crt").read_bytes()
    ensure_pki(own_pki, HERE)
    assert (own_pki / "apiserver.crt").read_bytes() == before


def test_a_machine_with_a_new_address_keeps_its_authority(own_pki: Path) -> None:
    """The API server's certificate gets the new address. Existing kubeconfigs still trust it."""
    before = (own_pki / "ca.crt").read_bytes(), (own_pki / "sa.key").read_bytes()
    ensure_pki(own_pki, ELSEWHERE)
    found = openssl("x509", "-in", own_pki / "apiserver.crt", "-noout", "-checkip", "192.0.2.99")
    assert "does match" in found
    assert ((own_pki / "ca.crt").read_bytes(), (own_pki / "sa.key").read_bytes()) == before
