"""The certificates that a system trusts, and mounted certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from localstore.certificates import Authority
from sluice.errors import AuthenticationFailed, InvalidSpec
from sluice.stores.trust import Trust, certificates, system_roots

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = "/nowhere"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two authorities, and with links and other files as Debian has them."""
    made = tmp_path / "certs"
    made.mkdir()
    for name in ("a", "b"):
        bundle = Authority(tmp_path, name).bundle
        (made / f"{name}.pem").write_text(bundle.read_text())
        (made / f"{name}.0").symlink_to(made / f"{name}.pem")
    (made / "notes").write_bytes(b"\xff no certificate")
    (made / "empty").mkdir()
    return made


def test_each_certificate_of_a_systems_folder_counts_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links to a certificate in the folder do not count again."""
    monkeypatch.setenv("SSL_CERT_FILE", NOWHERE)
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    assert system_roots().count("BEGIN CERTIFICATE") == 2


def test_a_systems_file_has_precedence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system has a file and a folder, only the file counts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "a.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    assert system_roots() == certificates((folder / "a.pem").read_text())


def test_a_system_that_trusts_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the field for a bundle of certificates."""
    monkeypatch.setenv("SSL_CERT_FILE", NOWHERE)
    monkeypatch.setenv("SSL_CERT_DIR", NOWHERE)
    with pytest.raises(InvalidSpec) as caught:
        system_roots("spec.of.bundle")
    assert caught.value.field == "spec.of.bundle"


def test_files_that_are_not_mounted_are_named(tmp_path: Path) -> None:
    """The error names the bundle's or the client certificate's file.

    If neither is set, no file is read.
    """
    assert Trust.read(None, None, server_name="a") == Trust(server_name="a")
    with pytest.raises(AuthenticationFailed, match=r"_trust/ca\.crt"):
        Trust.read("_trust/ca.crt", tmp_path)
    with pytest.raises(AuthenticationFailed, match=r"mesh/tls\.crt") as caught:
        Trust.read(None, tmp_path, client="mesh")
    assert "tls.crt and tls.key" in caught.value.remedy
