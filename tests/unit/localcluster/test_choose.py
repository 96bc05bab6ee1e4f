from pathlib import Path

import pytest

from localcluster import LocalClusterError, choose
from localcluster.existing import ExistingCluster, NamedImages
from localcluster.images.image import Image
from localcluster.kind import KindCluster
from localcluster.node.layout import Layout
from localcluster.node.own import OwnCluster
from support.command.programs import PutProgram

KUBECTL = """echo '{"current-context": "kind-mine"}'"""


def test_the_cluster_that_is_named_comes_first(
    home: Path, program: PutProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SLUICE_KUBECONFIG decides, even if docker and kind are available."""
    program("docker", "true")
    program("kind", "true")
    program("kubectl", "echo '{}'")
    monkeypatch.setenv("SLUICE_KUBECONFIG", str(home / "kubeconfig"))
    cluster = choose()
    assert isinstance(cluster, ExistingCluster)
    assert cluster.kubeconfig == home / "kubeconfig"


def test_kind_comes_before_our_own(home: Path, program: PutProgram) -> None:
    """If docker answers and kind is on PATH, the cluster is kind's."""
    program("docker", "true")
    program("kind", "true")
    assert isinstance(choose(), KindCluster)


def test_a_docker_that_does_not_answer_is_none(home: Path, program: PutProgram) -> None:
    """If docker's daemon does not answer, the project's own cluster is chosen."""
    program("docker", "exit 1")
    program("kind", "true")
    assert isinstance(choose(), OwnCluster)


def test_docker_without_kind_is_no_cluster(home: Path, program: PutProgram) -> None:
    """If kind is missing, the project's own cluster is chosen."""
    program("docker", "true")
    assert isinstance(choose(), OwnCluster)


def test_our_own_cluster_is_known_by_its_kubeconfig(
    home: Path, program: PutProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If SLUICE_KUBECONFIG names a copy of its kubeconfig, the machine still reaches its pods."""
    kubeconfig = Layout.load().kubeconfig
    kubeconfig.parent.mkdir(parents=True)
    kubeconfig.write_text("{}")
    copy = home / "copy"
    copy.write_text("{}")
    monkeypatch.setenv("SLUICE_KUBECONFIG", str(copy))
    assert choose().pods_reachable


def test_an_existing_cluster_is_left_running(home: Path) -> None:
    """`down` reports that the cluster is not the project's, and does nothing."""
    said: list[str] = []
    cluster = ExistingCluster(home / "kubeconfig", NamedImages(), pods_reachable=False)
    cluster.down(said.append, wipe=True)
    assert said == [f"the cluster of {home}/kubeconfig is not ours: left running"]


def test_a_kubeconfig_that_is_not_there_is_named(home: Path) -> None:
    """The error names SLUICE_KUBECONFIG and the missing file, before any call to a cluster."""
    cluster = ExistingCluster(home / "none", NamedImages(), pods_reachable=False)
    with pytest.raises(LocalClusterError, match=r"SLUICE_KUBECONFIG names .*/none, which is no"):
        cluster.up()


@pytest.mark.parametrize(
    ("name", "variable"),
    [("localhost/sluice:dev", "SLUICE_IMAGE"), ("localhost/pravega:0.13", "SLUICE_IMAGE_PRAVEGA")],
)
def test_images_of_a_foreign_cluster_are_named(
    name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No image can be loaded there.

    A variable names its reference, and the error names the variable.
    """
    image = Image(name, Path("/context"))
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(LocalClusterError, match=f"name it in {variable}$"):
        NamedImages().provide(image, print)
    monkeypatch.setenv(variable, "there/is:one")
    assert NamedImages().provide(image, print) == "there/is:one"
