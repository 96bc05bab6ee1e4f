"""Watches of a namespace that note when each word came."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Self

from bench.cluster.timeline import Seen
from bench.model import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

    from bench.cluster.timeline import Object
    from localcluster import Cluster

_KINDS: Final = {
    "scopecopies": "/apis/sluice.dev/v1alpha1",
    "streamcopies": "/apis/sluice.dev/v1alpha1",
    "jobs": "/apis/batch/v1",
    "configmaps": "/api/v1",
    "pods": "/api/v1",
    "events": "/api/v1",
}


@contextmanager
def follow(
    cluster: Cluster, path: str, take: Callable[[float, str, Object], None]
) -> Iterator[None]:
    """Watch a collection: `take` is told when each line came, its type, and the object.

    `kubectl get --raw` hands lines on as they come. `take` is called in a thread.

    Args:
        cluster: the cluster.
        path: of the collection at the API server.
        take: what is told.
    """
    child = subprocess.Popen(
        cluster.kubectl_command("get", f"--raw={path}?watch=true"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        threading.Thread(target=_read, args=(child.stdout, take), daemon=True).start()
        yield
    finally:
        child.kill()
        child.wait()


def _read(lines: IO[bytes], take: Callable[[float, str, Object], None]) -> None:
    with lines:
        for line in lines:
            at = time.time()
            if not line.endswith(b"\n"):
                return  # cut off at the end of the block
            word = json.loads(line)
            if word["type"] == "ERROR":
                return  # what is missing then fails the run at its deadline
            take(at, word["type"], word["object"])


class Watching:
    """What the API server tells of a namespace, from the beginning of the block on.

    Objects carry whole seconds only, so what counts is when a watch's line came, by this machine's
    clock.

    Args:
        cluster: the cluster.
        namespace: the namespace.
    """

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._stack = ExitStack()
        self._news = threading.Condition()
        self._seen: list[Seen] = []

    def __enter__(self) -> Self:
        """Begin to watch."""
        for kind, root in _KINDS.items():
            path = f"{root}/namespaces/{self._namespace}/{kind}"
            self._stack.enter_context(follow(self._cluster, path, self._take))
        return self

    def __exit__(self, *_: object) -> None:
        """End the watches."""
        self._stack.close()

    @property
    def seen(self) -> list[Seen]:
        """All that was seen, in the order in which it came."""
        with self._news:
            return sorted(self._seen, key=lambda seen: seen.at)

    def until(self, what: str, check: Callable[[Object], bool], *, seconds: float) -> None:
        """Wait until an object is seen that is as wanted, also one that was seen already.

        Raises:
            BenchError: it did not come in time.
        """
        with self._news:
            if not self._news.wait_for(lambda: any(check(s.body) for s in self._seen), seconds):
                raise BenchError(f"not within {seconds:g} s: {what}")

    def _take(self, at: float, _: str, body: Object) -> None:
        with self._news:
            self._seen.append(Seen(at, body))
            self._news.notify_all()
