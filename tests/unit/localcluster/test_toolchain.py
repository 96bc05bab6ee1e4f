from pathlib import Path

import pytest

from localcluster import LocalClusterError, tools
from localcluster.toolchain import go_tool, programs
from support.command.programs import PutProgram


def test_an_old_go_is_refused(program: PutProgram) -> None:
    """The error names the found and the required version."""
    program("go", "echo go1.19.8")
    with pytest.raises(LocalClusterError, match=r"is go1\.19\.8: install Go 1\.24 or newer"):
        go_tool()


def test_a_new_go_is_taken(program: PutProgram) -> None:
    """A version newer than the required one is accepted."""
    program("go", "echo go1.30")
    assert go_tool().endswith("/go")


def test_no_go_is_an_error_with_a_remedy(program: PutProgram) -> None:
    """The error names the version to install."""
    with pytest.raises(LocalClusterError, match=r"go not found: install Go 1\.24 or newer"):
        go_tool()


def test_the_key_is_that_of_the_sources(home: Path) -> None:
    """The same sources are compiled once, into the user's cache."""
    assert programs() == programs()
    assert programs().folder.parent == home / "cache" / "sluice"
    assert programs().folder.name == f"kubernetes-{programs().key}"


def test_kubectl_on_the_path_will_do(home: Path, program: PutProgram) -> None:
    """Until the project's own Kubernetes is compiled, the machine's kubectl is used."""
    program("kubectl", "true")
    assert tools.kubectl().name == "kubectl"


def test_no_kubectl_is_an_error_with_a_remedy(home: Path, program: PutProgram) -> None:
    """The error says to install kubectl, before anything is tried."""
    with pytest.raises(LocalClusterError, match="kubectl not found: install it"):
        tools.kubectl()


@pytest.mark.parametrize(
    ("version", "taken"),
    [("v3.17.0", True), ("v3.19.5+g1234567", True), ("v3.16.9", False), ("v4.0.1", False)],
)
def test_a_new_helm_3_on_the_path_will_do(
    home: Path, program: PutProgram, version: str, *, taken: bool
) -> None:
    """Until the project's own Kubernetes is compiled, a new Helm 3 is used; others need Go."""
    program("helm", f"echo {version}")
    if taken:
        assert tools.helm() == home / "bin" / "helm"
    else:
        with pytest.raises(LocalClusterError, match="install Go"):
            tools.helm(lambda _: None)
