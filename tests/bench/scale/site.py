"""The site of measurements with thousands of resources: a cluster, a store, an operator process.

The operator is a process of this machine, so the kernel tells its processor time and memory. It
serves namespaces of its own, at the real API server.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import uuid4

from kubernetes.aio import client, config

from bench import usage
from bench.cluster import lives
from bench.cluster.site import running_cluster
from bench.model import BenchError
from localstore import ForeignClient, Standalone
from sluice.kube.api.client import Api
from support.cluster.operator_process import OperatorProcess
from support.cluster.outside import OUTSIDE, nobody_else

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

    from bench.cluster.lives import Samples
    from localcluster import Cluster

    Say = Callable[[str], None]

PATIENCE: Final = 1800.0
"""Seconds to wait for an event, enough for a busy machine."""

RESYNC: Final = 60
"""Seconds between two rounds of the operator's resync: the chart's value."""

_CRDS: Final = Path(__file__).parents[3] / "crds"
_POLL: Final = 0.5


@dataclass(frozen=True)
class Site:
    """A cluster, a store on this machine, the store's official client, and a folder."""

    cluster: Cluster
    store: Standalone
    java: ForeignClient
    folder: Path

    def run(self, work: Callable[[Api], Awaitable[None]]) -> None:
        """Run a coroutine with a client of the API server that is not the operator's."""

        async def with_client() -> None:
            async with self.connected() as api:
                await work(api)

        asyncio.run(with_client())

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Api]:
        """Provide a client of the API server."""
        found = client.Configuration()
        await config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(self.cluster.kubeconfig), client_configuration=found
        )
        found.connection_pool_maxsize = 0
        async with Api(client.ApiClient(found)) as api:
            yield api

    def list(self, path: str) -> list[dict[str, Any]]:
        """List the objects at a path of the API."""
        found: list[dict[str, Any]] = json.loads(self.cluster.kubectl("get", f"--raw={path}"))[
            "items"
        ]
        return found


class Operator:
    """An operator process and its use of resources.

    Args:
        site: the site where it runs.
        namespaces: the namespaces that it serves.
    """

    def __init__(self, site: Site, namespaces: Sequence[str]) -> None:
        folder = site.folder / uuid4().hex[:8]
        folder.mkdir()
        first, *others = namespaces
        self._process = OperatorProcess(
            folder,
            site.cluster.kubeconfig,
            first,
            {"default": {}},
            others=others,
            more={"resyncSeconds": RESYNC},
        )
        self.began = 0.0

    def __enter__(self) -> Self:
        """Start the operator. It is not ready yet."""
        self.began = time.monotonic()
        self._process.begin()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the operator."""
        self._process.__exit__()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    @property
    def cpu(self) -> float:
        """The operator's processor seconds so far."""
        return usage.cpu_seconds(self.pid)

    @property
    def peak(self) -> int:
        """The operator's peak memory, in bytes."""
        return usage.peak_rss(self.pid)

    @property
    def memory(self) -> int:
        """The operator's present memory, in bytes."""
        return usage.rss(self.pid)

    def until(self, what: str, check: Callable[[], bool]) -> float:
        """Wait until a check is true. Return the seconds since the process began.

        Raises:
            BenchError: the check never becomes true, or the process ended.
        """
        deadline = time.monotonic() + PATIENCE
        while not check():
            if not self._process.is_running:
                raise BenchError(f"the operator ended: {self._process.log()[-2000:]}")
            if time.monotonic() > deadline:
                raise BenchError(f"not within {PATIENCE:g} s: {what}")
            time.sleep(_POLL)
        return self.seconds

    @property
    def is_ready(self) -> bool:
        """Tell whether /readyz succeeds."""
        return self._process.probe("readyz")[0] == 200

    @property
    def is_alive(self) -> bool:
        """Tell whether /livez succeeds."""
        return self._process.probe("livez")[0] == 200

    def metrics(self) -> Samples:
        """Return the operator's metrics; none while it does not serve them."""
        return lives.samples(self._process.probe("metrics")[1])

    def waiting(self) -> float:
        """Return the number of resources that wait for a worker."""
        return total(self.metrics(), "sluice_queue_depth")


def total(samples: Samples, name: str, **labels: str) -> float:
    """Return the sum of a metric's samples with some labels."""
    return sum(
        value
        for (metric, found), value in samples.items()
        if metric == name and labels.items() <= dict(found).items()
    )


def by_labels(samples: Samples, name: str) -> dict[str, float]:
    """Return the samples of a metric that are not 0, by the values of their labels."""
    return {
        " ".join(value for _, value in labels): found
        for (metric, labels), found in sorted(samples.items())
        if metric == name and found
    }


@contextmanager
def scale_site(say: Say) -> Iterator[Site]:
    """Provide a cluster with Sluice's definitions, and an empty store, for the block."""
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(say))
        cluster.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={_CRDS}")
        stack.enter_context(nobody_else(cluster))
        store = stack.enter_context(Standalone(heap="4g", lasting=True))
        java = stack.enter_context(ForeignClient(store.controller_uri, lasting=True))
        yield Site(cluster, store, java, Path(stack.enter_context(TemporaryDirectory())))


@contextmanager
def namespace(site: Site) -> Iterator[str]:
    """Provide a namespace that no other operator serves, with a scope of that name in the store.

    Afterwards it is deleted with its contents, without the operator, since the store goes too.
    """
    name = f"{OUTSIDE}scale-{uuid4().hex[:8]}"
    site.cluster.kubectl("create", "namespace", name)
    site.java.create_scope(name)
    try:
        yield name
    finally:
        dismantle(site, name)


def dismantle(site: Site, name: str) -> None:
    """Delete a namespace. Remove all finalizers, since the store of its resources goes as well."""
    from bench.scale import filling  # noqa: PLC0415 - it needs this module

    site.cluster.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")
    site.run(lambda api: filling.free(api, name))
