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
    """SLUICE_KUBECONFIG decides, even where docker and kind are."""
    program("docker", "true")
    program("kind", "true")
    program("kubectl", "echo '{}'")
    monkeypatch.setenv("SLUICE_KUBECONFIG", str(home / "kubeconfig"))
    cluster = choose()
    assert isinstance(cluster, ExistingCluster)
    assert cluster.kubeconfig == home / "kubeconfig"


def test_kind_comes_before_our_own(home: Path, program: PutProgram) -> None:
    """Where docker answers and kind is on PATH, the cluster is kind's."""
    program("docker", "true")
    program("kind", "true")
    assert isinstance(choose(), KindCluster)


def test_a_docker_that_does_not_answer_is_none(home: Path, program: PutProgram) -> None:
    """A docker client without its daemon leaves our own cluster."""
    program("docker", "exit 1")
    program("kind", "true")
    assert isinstance(choose(), OwnCluster)


def test_docker_without_kind_is_no_cluster(home: Path, program: PutProgram) -> None:
    """Docker alone leaves our own cluster."""
    program("docker", "true")
    assert isinstance(choose(), OwnCluster)


def test_our_own_cluster_is_known_by_its_kubeconfig(
    home: Path, program: PutProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SLUICE_KUBECONFIG may name our own cluster, whose pods this machine reaches."""
    kubeconfig = Layout.load().kubeconfig
    kubeconfig.parent.mkdir(parents=True)
    kubeconfig.write_text("{}")
    copy = home / "copy"
    copy.write_text("{}")
    monkeypatch.setenv("SLUICE_KUBECONFIG", str(copy))
    assert choose().pods_reachable


def test_an_existing_cluster_is_left_running(home: Path) -> None:
    """`down` says that it is not ours, and does nothing."""
    said: list[str] = []
    cluster = ExistingCluster(home / "kubeconfig", NamedImages(), pods_reachable=False)
    cluster.down(said.append, wipe=True)
    assert said == [f"the cluster of {home}/kubeconfig is not ours: left running"]


def test_a_kubeconfig_that_is_not_there_is_named(home: Path) -> None:
    """A wrong SLUICE_KUBECONFIG is told from a cluster that does not answer."""
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
    """Where no image can be brought, a variable has its reference, and an error names that."""
    image = Image(name, Path("/context"))
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(LocalClusterError, match=f"name it in {variable}$"):
        NamedImages().provide(image, print)
    monkeypatch.setenv(variable, "there/is:one")
    assert NamedImages().provide(image, print) == "there/is:one"
