"""Java's key store with one date for all certificates, checked with Java's own tool."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from support.kube.chart import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = "changeit"  # noqa: S105 - Java's own default
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "docker" / "undate.py"), run_name="undate")


def keytool(*words: str | Path) -> str:
    """Run Java's keytool, and return its output."""
    program = shutil.which("keytool")
    assert program is not None
    command = [program, *words, "-storepass", PASSWORD]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a key store with two certificates."""
    folder = tmp_path_factory.mktemp("keystore")
    own, made = folder / "own", folder / "made"
    name = ("-dname", "CN=test", "-keyalg", "EC", "-keypass", PASSWORD)
    keytool("-genkeypair", "-keystore", own, "-alias", "a", *name)
    keytool("-exportcert", "-keystore", own, "-alias", "a", "-file", folder / "a.der")
    for alias in ("first", "second"):
        given = ("-alias", alias, "-file", folder / "a.der", "-noprompt", "-storetype", "JKS")
        keytool("-importcert", "-keystore", made, *given)
    return made


@pytest.mark.exhaustive
def test_java_reads_the_store_as_before(store: Path, tmp_path: Path) -> None:
    """Java lists the same certificates and accepts the digest; only the dates differ."""
    before = store.read_bytes()
    made = tmp_path / "made"
    made.write_bytes(SCRIPT["undated"](before, PASSWORD))
    listed = keytool("-list", "-keystore", made)
    assert listed.count("trustedCertEntry") == 2
    assert listed.count("Jan 1, 1970") == 2
    fingerprints = [
        line for line in keytool("-list", "-keystore", store).splitlines() if ":" in line
    ]
    assert {line for line in fingerprints if "SHA-256" in line} <= set(listed.splitlines())
    assert SCRIPT["undated"](made.read_bytes(), PASSWORD) == made.read_bytes()


def test_a_store_that_is_damaged_is_refused(store: Path) -> None:
    """A damaged store and a wrong password raise ValueError, so that nothing is written."""
    with pytest.raises(ValueError, match="damaged"):
        SCRIPT["undated"](store.read_bytes()[:-1] + b"x", PASSWORD)
    with pytest.raises(ValueError, match="damaged"):
        SCRIPT["undated"](store.read_bytes(), "another")
