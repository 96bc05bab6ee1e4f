import os
from pathlib import Path

import pytest

from localcluster import LocalClusterError
from localcluster.images.image import Image
from localcluster.kind import KindCluster
from support.command.programs import PutProgram

# Each program logs its calls. kind has a cluster once it has created one.
KIND = """
echo "kind $*" >>"{log}"
case "$1 $2" in
  "get clusters") [ ! -e "{log}.up" ] || echo sluice ;;
  "export kubeconfig") [ ! -e "{log}.broken" ] && : >"$KUBECONFIG" ;;
  "create cluster") : >"{log}.up"; : >"$KUBECONFIG" ;;
  "delete cluster") PATH=/bin rm "{log}.up" ;;
esac
"""
DOCKER = """
echo "docker $*" >>"{log}"
case "$1 $2" in
  "image inspect") echo sha256:0123456789abcdef ;;
  "inspect "*) echo 172.18.0.2 ;;
esac
"""


class Calls:
    """Calls of simulated programs, and kind's cluster that makes them."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.cluster = KindCluster()

    def made(self) -> list[str]:
        """Return the calls since the last time."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return [line for line in lines if line != "kind get clusters"]


@pytest.fixture
def calls(home: Path, program: PutProgram, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Return kind's cluster on a machine with simulated programs."""
    log = home / "log"
    program("kind", KIND.format(log=log))
    program("docker", DOCKER.format(log=log))
    program("kubectl", "echo 10.244.0.0/24")
    program("ip", f'echo "ip $*" >>"{log}"')
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return Calls(log)


def quiet(_: str) -> None:
    """Ignore a progress message."""


def test_root_gets_a_way_to_the_pods(calls: Calls) -> None:
    """For root, `up` adds a route to the pods through kind's node."""
    calls.cluster.up(quiet)
    create, inspect, route = calls.made()
    assert create == "kind create cluster --name=sluice --wait=180s"
    assert inspect.endswith("sluice-control-plane")
    assert route == "ip route replace 10.244.0.0/24 via 172.18.0.2"


def test_a_cluster_that_is_up_is_taken(calls: Calls) -> None:
    """A second `up` creates no cluster."""
    calls.cluster.up(quiet)
    calls.made()
    calls.cluster.up(quiet)
    assert not any("create" in call for call in calls.made())


def test_a_cluster_of_another_user_gets_a_kubeconfig(calls: Calls) -> None:
    """If the cluster is there, and its kubeconfig is not, kind writes the latter."""
    calls.cluster.up(quiet)
    calls.cluster.kubeconfig.unlink()
    calls.made()
    calls.cluster.up(quiet)
    assert "kind export kubeconfig --name=sluice" in calls.made()
    assert calls.cluster.kubeconfig.exists()


def test_a_half_made_cluster_is_an_error_with_a_remedy(calls: Calls, home: Path) -> None:
    """If the cluster does not serve, the error says how to remove it."""
    calls.cluster.up(quiet)
    calls.cluster.kubeconfig.unlink()
    (home / "log.broken").touch()
    with pytest.raises(LocalClusterError, match="remove it by make cluster-down"):
        calls.cluster.up(quiet)


def test_down_takes_the_way_with_it(calls: Calls) -> None:
    """`down` removes route, cluster and kubeconfig."""
    calls.cluster.up(quiet)
    calls.made()
    calls.cluster.down(quiet)
    assert calls.made() == [
        "ip route delete 10.244.0.0/24",
        "kind delete cluster --name=sluice",
    ]
    assert not calls.cluster.kubeconfig.exists()


def test_down_twice_is_no_error(calls: Calls) -> None:
    """`down` without a cluster calls nothing."""
    calls.cluster.down(quiet)
    assert calls.made() == []


def test_without_a_cluster_the_status_is_an_error(calls: Calls) -> None:
    """The error makes tests start a cluster."""
    with pytest.raises(LocalClusterError, match="kind's cluster sluice is not up"):
        calls.cluster.status()


def test_images_are_built_by_docker_and_loaded(calls: Calls, home: Path) -> None:
    """A name without a tag gets a tag from the image's id."""
    image = Image("localhost/it", home, build_args={"A": "1"})
    assert calls.cluster.provide(image, say=quiet) == "localhost/it:0123456789ab"
    build, *_, load = calls.made()
    assert build == (
        f"docker build --tag=localhost/it:building --file={home}/Dockerfile --build-arg=A=1 {home}"
    )
    assert load == "kind load docker-image localhost/it:0123456789ab --name=sluice"
