"""Replicas of the operator, as processes of this machine that share a Lease.

Each replica has its own connection to the API server, which a test can cut. The connection goes
through `kubectl proxy` without encryption, so that tests see which calls of a replica arrive.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from support.cluster.operator_process import OperatorProcess
from support.kube.link import Link
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from localcluster import Cluster

    Disturbance = Callable[["Replica"], Callable[[], None]]
    """Disturb a replica. The function that it returns undoes that, and starts a new replica."""

LEASE = "sluice-operator"
LOST = 7
"""Exit code of a replica that lost the Lease."""
_LEADS = re.compile(r"^sluice_leader 1\.0$", re.MULTILINE)


@dataclass(frozen=True)
class Replica:
    """One replica: its process, and its connection to the API server."""

    operator: OperatorProcess
    link: Link

    @property
    def leads(self) -> bool:
        """Tell whether the replica's metrics say that it works."""
        return bool(_LEADS.search(self.operator.probe("metrics")[1]))

    @contextmanager
    def changing_nothing(self) -> Iterator[None]:
        """Assert that the replica changes nothing but the Lease during the block."""
        before = len(self.link.changes)
        yield
        changes = [one for one in self.link.changes[before:] if "/leases" not in one]
        assert not changes, f"the replica has made {changes}"


class Replicas:
    """Two replicas, of which one works."""

    def __init__(self, replicas: tuple[Replica, Replica]) -> None:
        self._replicas = replicas

    def roles(self) -> tuple[Replica, Replica]:
        """Wait until one replica works, and return it and the other one."""
        leader = until("a replica works", self._leader)
        (other,) = (one for one in self._replicas if one is not leader)
        return leader, other

    def _leader(self) -> Replica | None:
        found = [one for one in self._replicas if one.operator.is_running and one.leads]
        assert len(found) < len(self._replicas), "both replicas work"
        return found[0] if found else None

    def disturb(self, how: Disturbance) -> float:
        """Disturb the working replica, and wait until the other one works.

        Returns:
            The seconds until then.
        """
        leader, other = self.roles()
        began = time.monotonic()
        mend = how(leader)
        until("the other replica works", lambda: other.leads, poll=0.1)
        seconds = time.monotonic() - began
        mend()
        return seconds


def killed(replica: Replica) -> Callable[[], None]:
    """Kill a replica, and return the function that starts it anew."""
    replica.operator.kill()
    return replica.operator.start


def stopped(replica: Replica) -> Callable[[], None]:
    """End a replica as Kubernetes does. The result checks that it changes nothing meanwhile."""
    replica.operator.signal(signal.SIGTERM)

    def mend() -> None:
        with replica.changing_nothing():
            assert replica.operator.ended() == 0
        replica.operator.start()

    return mend


def frozen(replica: Replica) -> Callable[[], None]:
    """Freeze a replica. The returned function checks that it then ends without any change."""
    replica.operator.signal(signal.SIGSTOP)

    def mend() -> None:
        with replica.changing_nothing():
            replica.operator.signal(signal.SIGCONT)
            assert replica.operator.ended() == LOST
        assert "another replica has the Lease" in replica.operator.log()
        replica.operator.start()

    return mend


def cut_off(replica: Replica) -> Callable[[], None]:
    """Cut off a replica from the API server. The returned function checks that it then ends."""
    replica.link.go_away()

    def mend() -> None:
        assert replica.operator.is_running
        assert not replica.leads
        with replica.changing_nothing():
            replica.link.come_back()
            assert replica.operator.ended() == LOST
        replica.operator.start()

    return mend


@contextmanager
def _unencrypted(kube: Cluster, folder: Path) -> Iterator[Path]:
    """Yield a kubeconfig that reaches the cluster's API server without TLS and login."""
    words = kube.kubectl_command("proxy", "--port=0")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        address = proxy.stdout.readline().split()[-1]
        access = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "here", "cluster": {"server": f"http://{address}"}}],
            "users": [{"name": "anybody", "user": {}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "anybody"}}],
            "current-context": "here",
        }
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(access))
        try:
            yield path
        finally:
            proxy.terminate()


@contextmanager
def replicas(
    kube: Cluster,
    folder: Path,
    namespace: str,
    profiles: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Iterator[Replicas]:
    """Yield two replicas that serve a namespace, which also holds their Lease.

    Args:
        kube: the cluster.
        folder: directory for their files.
        namespace: the namespace.
        profiles: see OperatorProcess.
        more: other settings.
    """
    made: list[Replica] = []
    lease = {"lease": {"namespace": namespace, "name": LEASE}}
    with ExitStack() as stack:
        plain = stack.enter_context(_unencrypted(kube, folder))
        for name in ("one", "two"):
            place = folder / name
            place.mkdir()
            through = place / "kubeconfig"
            link = stack.enter_context(Link.to(plain, through))
            operator = OperatorProcess(
                place, through, namespace, profiles, more={**lease, **(more or {})}
            )
            made.append(Replica(stack.enter_context(operator), link))
        yield Replicas((made[0], made[1]))
