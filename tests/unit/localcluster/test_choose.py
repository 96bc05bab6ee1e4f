from pathlib import Path

import pytest

import demo
from localcluster import LocalClusterError, choose, release, store_manifests
from localcluster.existing import TAKEN, ExistingCluster, NamedImages
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
    cluster = ExistingCluster(home / "kubeconfig", NamedImages(), ours=False)
    cluster.down(said.append, wipe=True)
    assert said == [f"the cluster of {home}/kubeconfig is not ours: left running"]


def test_a_kubeconfig_that_is_not_there_is_named(home: Path) -> None:
    """The error names SLUICE_KUBECONFIG and the missing file, before any call to a cluster."""
    cluster = ExistingCluster(home / "none", NamedImages(), ours=False)
    with pytest.raises(LocalClusterError, match=r"SLUICE_KUBECONFIG names .*/none, which is no"):
        cluster.up()


def test_namespaces_of_others_are_not_touched(home: Path, program: PutProgram) -> None:
    """The cluster is refused while it has namespaces that were not made for tests.

    This holds for the demo, which starts it, and for tests, which look whether it runs. The error
    names the namespaces, and the command that allows it.
    """
    program("kubectl", f'echo "$*" >>"{home}/log"; echo shop demo sluice-system')
    (home / "kubeconfig").touch()
    cluster = ExistingCluster(home / "kubeconfig", NamedImages(), ours=False)
    for use in (lambda: cluster.up(lambda _: None), cluster.status):
        with pytest.raises(
            LocalClusterError,
            match=r"delete what they find: demo, sluice-system\. .*"
            r"kubectl label namespace demo sluice-system sluice\.dev/for-tests=yes$",
        ):
            use()
    assert "get namespaces --selector=!sluice.dev/for-tests " in (home / "log").read_text()


def test_a_cluster_without_them_is_used(home: Path, program: PutProgram) -> None:
    """Other namespaces stay as they are, so they do no harm."""
    program("kubectl", "echo shop demos")
    (home / "kubeconfig").touch()
    assert ExistingCluster(home / "kubeconfig", NamedImages(), ours=False).up(lambda _: None) == []


def test_the_namespaces_in_use_are_marked_and_checked() -> None:
    """All namespaces that the demo and the store delete or change are among those checked."""
    assert {demo.DEMO, store_manifests.NAMESPACE, release.NAMESPACE} == set(TAKEN)
    assert store_manifests.namespace()["metadata"]["labels"]["sluice.dev/for-tests"] == "yes"


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
    image = Image(name, Path("/context"), stage="runtime")
    monkeypatch.delenv(variable, raising=False)
    build = "docker build --tag=NAME --file=/context/Dockerfile --target=runtime /context"
    with pytest.raises(LocalClusterError, match=rf"\({build}\), and name it in {variable}$"):
        NamedImages().provide(image, print)
    monkeypatch.setenv(variable, "there/is:one")
    assert NamedImages().provide(image, print) == "there/is:one"
