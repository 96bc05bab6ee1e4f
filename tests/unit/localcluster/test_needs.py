import os
from pathlib import Path

import pytest

from localcluster import LocalClusterError
from localcluster.node import needs
from localcluster.node.needs import Needs
from support.command.programs import PutProgram

ALL = Needs(packages=("runc", "buildah"), compile=True, helm=True, base=True)
NOTHING = Needs(packages=(), compile=False, helm=False, base=False)


def test_what_is_needed_is_said_before_it_is_done() -> None:
    """The announcement names packages, minutes and disk."""
    text = "\n".join(ALL.lines())
    assert "as root, on Debian" in text
    assert "runc buildah" in text
    assert "about 10 minutes" in text
    assert f"{ALL.gigabytes} GB of disk" in text


def test_nothing_is_said_when_all_is_there() -> None:
    """A second start has nothing to announce, and needs less disk."""
    assert NOTHING.lines() == []
    assert NOTHING.gigabytes < ALL.gigabytes


@pytest.mark.usefixtures("program")  # no program of the machine's is on PATH
def test_who_is_not_root_learns_what_else_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says that the cluster needs root, and names kind and SLUICE_KUBECONFIG instead."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LocalClusterError, match=r"needs root: .*kind.*SLUICE_KUBECONFIG"):
        NOTHING.check(tmp_path)


def test_who_has_docker_and_kind_learns_that_docker_refuses(
    tmp_path: Path, program: PutProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own cluster is only tried because docker does not answer, so the error says that."""
    program("docker", "exit 1")
    program("kind", "true")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LocalClusterError, match=r"docker does not answer: .*group"):
        NOTHING.check(tmp_path)


def test_a_full_disk_is_noticed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check looks at the nearest existing folder, since the folder itself may not exist yet."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(needs, "is_debian", lambda: True)
    full = type("Usage", (), {"free": 0})()
    monkeypatch.setattr(needs.shutil, "disk_usage", lambda _: full)
    with pytest.raises(LocalClusterError, match=f"needed at {tmp_path}, and 0 GB are free"):
        NOTHING.check(tmp_path / "not" / "yet")
