"""A node on this machine, which runs every driver's pod of a namespace during a test."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from localcluster import LocalClusterError
from support.cluster.kubelet import DriverPod

if TYPE_CHECKING:
    from pathlib import Path

    from support.tenants.tenant import Object, Tenant

_LOOK_SECONDS = 0.2


class Node:
    """A node that runs the waiting pods of a namespace, and reports their ends.

    Args:
        tenant: the namespace.
        folder: directory for the files of pods.
    """

    def __init__(self, tenant: Tenant, folder: Path) -> None:
        self._tenant = tenant
        self._folder = folder
        self._running: dict[str, DriverPod] = {}
        self._seen: set[str] = set()
        self._over = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="node")

    def __enter__(self) -> Self:
        """Start to look for pods."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the drivers that still run. Raise an error of the node's thread in the test."""
        self._over.set()
        self._thread.join()
        for driver in self._running.values():
            driver.close()
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        try:
            while not self._over.wait(_LOOK_SECONDS):
                self._look()
        except Exception as error:  # noqa: BLE001 - it is raised in the test's thread
            self._error = error

    def _look(self) -> None:
        """Start pods, report those that have ended, and kill those that were deleted."""
        pods = {pod["metadata"]["name"]: pod for pod in self._tenant.get_all("pods")}
        for name, driver in list(self._running.items()):
            if name not in pods or "deletionTimestamp" in pods[name]["metadata"]:
                driver.close()
            elif driver.process.poll() is not None:
                with suppress(LocalClusterError):  # if it was deleted this moment
                    driver.finish(0)
            else:
                continue
            del self._running[name]
        for name, pod in pods.items():
            if name not in self._seen and _waits(pod):
                self._seen.add(name)
                folder = self._folder / name
                folder.mkdir()
                self._running[name] = DriverPod(self._tenant, pod, folder)


def _waits(pod: Object) -> bool:
    meta, phase = pod["metadata"], pod["status"].get("phase")
    return phase == "Pending" and "deletionTimestamp" not in meta
