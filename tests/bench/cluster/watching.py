"""Watches of a namespace that record when each line came."""

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
    """Watch a collection during the block.

    `kubectl get --raw` passes lines on as they come.

    Args:
        cluster: the cluster.
        path: path of the collection at the API server.
        take: callback `(time, type, object)` for each line, called in a thread.
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
                return  # the missing objects fail the run at its deadline
            take(at, word["type"], word["object"])


class Watching:
    """Watches of a namespace's objects, from the beginning of the block on.

    Objects carry whole seconds only. So the time when a watch's line came counts, by this machine's
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
        """Start the watches."""
        for kind, root in _KINDS.items():
            path = f"{root}/namespaces/{self._namespace}/{kind}"
            self._stack.enter_context(follow(self._cluster, path, self._take))
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the watches."""
        self._stack.close()

    @property
    def seen(self) -> list[Seen]:
        """All objects seen, in the order in which they came."""
        with self._news:
            return sorted(self._seen, key=lambda seen: seen.at)

    def until(self, what: str, check: Callable[[Object], bool], *, seconds: float) -> None:
        """Wait until an object passes the check. Objects seen before count too.

        Raises:
            BenchError: no object passes the check in time.
        """
        with self._news:
            if not self._news.wait_for(lambda: any(check(s.body) for s in self._seen), seconds):
                raise BenchError(f"not within {seconds:g} s: {what}")

    def _take(self, at: float, _: str, body: Object) -> None:
        with self._news:
            self._seen.append(Seen(at, body))
            self._news.notify_all()
