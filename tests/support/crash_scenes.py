"""A copy that is going on, and the one of its processes that is killed."""

from __future__ import annotations

import os
import signal
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from support.command import descendants, finish, is_alive, workers_of
from support.crash_lab import SCOPE, SOURCE
from support.node import DriverPod

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from localstore.cluster_config import Name
    from support.crash_lab import CrashLab
    from support.office import Office

_DEATH_SECONDS = 10.0
_COPY_SECONDS = 200.0


class Scene(ABC):
    """A copy to a target that is going on.

    Args:
        lab: where.
        target: name of the target.
    """

    def __init__(self, lab: CrashLab, target: str) -> None:
        self.lab = lab
        self.target = target

    @abstractmethod
    def __enter__(self) -> Self:
        """Begin to copy."""

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """Leave nothing running."""

    @abstractmethod
    def kill(self) -> list[int]:
        """Kill the victim; the ids of its processes, all dead now."""

    @abstractmethod
    def go_on(self) -> None:
        """Return when the copy is finished, by whom it is to be."""


class CommandScene(Scene):
    """A copy that is run by command.

    Args:
        lab: where.
        target: name of the target.
        folder: for files and logs.
    """

    def __init__(self, lab: CrashLab, target: str, folder: Path) -> None:
        super().__init__(lab, target)
        self.copy = lab.copy(folder, target)
        self.driver: subprocess.Popen[str]

    def __enter__(self) -> Self:
        """Begin to copy."""
        self.driver = self.copy.start("run", "-o", "json")
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing running."""
        self.driver.kill()
        self.driver.communicate()

    def go_on(self) -> None:
        """Wait until the same run has finished the copy."""
        finished = finish(self.driver, _COPY_SECONDS)
        assert finished.code == 0, finished.err
        assert finished.json[0]["outcome"] == "Copied"


class DriverScene(CommandScene):
    """The driver dies with its JVM and all workers, and somebody runs the copy again."""

    def kill(self) -> list[int]:
        """Kill the whole tree."""
        pids = [self.driver.pid, *descendants(self.driver.pid)]
        _kill(pids)
        self.driver.wait(_DEATH_SECONDS)
        return pids

    def go_on(self) -> None:
        """Run it again."""
        second = self.copy.run()
        assert second.code == 0, second.err


class ExecutorScene(CommandScene):
    """The Python workers die, in which Spark runs tasks, and Spark starts others."""

    def kill(self) -> list[int]:
        """Kill all of them, so that the one is among them whose frame is held up."""
        pids = workers_of(self.driver.pid)
        _kill(pids)
        return pids


class ServerScene(CommandScene):
    """A server of the store dies and comes back."""

    server: Name

    def kill(self) -> list[int]:
        """Kill the server."""
        pid = self.lab.cluster.processes[self.server].pid
        self.lab.cluster.kill(self.server)
        return [pid]

    def go_on(self) -> None:
        """Start it again; the copy goes on by itself."""
        self.lab.restart(self.server)
        super().go_on()


class ControllerScene(ServerScene):
    """The controller dies and comes back."""

    server = "controller"


class SegmentStoreScene(ServerScene):
    """The segment store dies and comes back."""

    server = "segmentstore"


class BookieScene(ServerScene):
    """The bookie dies and comes back, and the segment store recovers."""

    server = "bookie"


class OperatorScene(Scene):
    """The operator dies; the driver goes on, and the next operator finds it.

    Args:
        lab: where.
        target: name of the target.
        folder: for files and logs.
        office: whose operator it is.
    """

    def __init__(self, lab: CrashLab, target: str, folder: Path, office: Office) -> None:
        super().__init__(lab, target)
        self._folder = folder
        self._tenant, self._operator = office.tenant, office.operator
        self._pod: DriverPod

    def __enter__(self) -> Self:
        """Apply the resource, and run the pod that the operator makes."""
        tenant = self._tenant
        source, target = "/".join(SOURCE), f"{SCOPE}/{self.target}"
        resource = tenant.copy_resource(self.target, source, target)
        resource["spec"]["target"]["onExists"] = self.lab.exists(self.target)
        tenant.apply(resource)
        waiting = tenant.until("there is a pod", lambda: self._pods("Pending"), about=self.target)
        self._pod = DriverPod(tenant, waiting[0], self._folder)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing running."""
        self._pod.close()

    def kill(self) -> list[int]:
        """Kill the operator."""
        return [self._operator.kill()]

    def go_on(self) -> None:
        """Start an operator, and wait until it says that the copy is done."""
        self._operator.start()
        assert self._pod.finish(_COPY_SECONDS) == 0
        status = self._tenant.until_ready(self.target)
        assert status["attempts"] == 1
        # It is said first that the copy is done, and tidied up then.
        self._tenant.until("nothing holds the resource", self._is_free, about=self.target)

    def _is_free(self) -> bool:
        resource = self._tenant.get("scopy", self.target)
        return resource is not None and "finalizers" not in resource["metadata"]

    def _pods(self, phase: str) -> list[dict[str, Any]]:
        return self._tenant.list("pods", f"--field-selector=status.phase={phase}")


def _kill(pids: list[int]) -> None:
    """Kill processes at once, and return when they are dead."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _DEATH_SECONDS
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, f"{pids} do not die"
        time.sleep(0.01)
