"""Scenes: work in progress, and a process of it that is killed."""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from support.cluster.kubelet import DriverPod
from support.command.sluice_command import descendants, finish, is_alive, workers_of
from support.until import PATIENCE, TIGHT, until

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from localstore.cluster_config import Name
    from support.cluster.local_operator import LocalOperator
    from support.command.sluice_command import Filed
    from support.crash.crash_env import CrashEnv
    from support.tenants.tenant import Object, Tenant

_COPY_SECONDS = 200.0


class Filing(Protocol):
    """An environment whose work is a command."""

    def copy(self, folder: Path, target: str) -> Filed:
        """Return the work for a target, as a command."""


class Applying(Protocol):
    """An environment whose work is a resource for an operator."""

    def resource(self, tenant: Tenant, target: str) -> Object:
        """Return the work for a target, as a resource for an operator."""


class Scene(ABC):
    """Work in progress."""

    @abstractmethod
    def __enter__(self) -> Self:
        """Begin the work."""

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """Leave nothing running."""

    @abstractmethod
    def kill(self) -> list[int]:
        """Kill the victim. Return the ids of its processes, which are dead by then."""

    @abstractmethod
    def go_on(self) -> None:
        """Wait until the work is finished, by the process that has to finish it."""


class CommandScene(Scene):
    """Work that a command does.

    Args:
        env: the environment.
        target: name of the target.
        folder: directory for files and logs.
    """

    def __init__(self, env: Filing, target: str, folder: Path) -> None:
        self.target = target
        self.copy = env.copy(folder, target)
        self.driver: subprocess.Popen[str]

    def __enter__(self) -> Self:
        """Begin the work."""
        self.driver = self.copy.start("run", "-o", "json")
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing running."""
        self.driver.kill()
        self.driver.communicate()

    def go_on(self) -> None:
        """Wait until the same command has finished the work."""
        finished = finish(self.driver, _COPY_SECONDS)
        assert finished.code == 0, finished.err
        assert finished.json[0]["outcome"] in {"Copied", "Archived"}


class DriverScene(CommandScene):
    """A scene in which the driver dies with its JVM and all workers, and the command runs again."""

    def kill(self) -> list[int]:
        """Kill the whole process tree."""
        pids = [self.driver.pid, *descendants(self.driver.pid)]
        _kill(pids)
        self.driver.wait(PATIENCE)
        return pids

    def go_on(self) -> None:
        """Run the command again."""
        second = self.copy.run()
        assert second.code == 0, second.err


class ExecutorScene(CommandScene):
    """A scene in which the Python workers of Spark's tasks die, and Spark starts others."""

    def kill(self) -> list[int]:
        """Kill all workers, so that the worker whose frame is held up is among them."""
        pids = workers_of(self.driver.pid)
        _kill(pids)
        return pids


class ServerScene(CommandScene):
    """A scene in which a server of the store dies and comes back.

    Args:
        env: the environment.
        target: name of the target.
        folder: directory for files and logs.
    """

    server: Name

    def __init__(self, env: CrashEnv, target: str, folder: Path) -> None:
        super().__init__(env, target, folder)
        self.env = env

    def kill(self) -> list[int]:
        """Kill the server."""
        pid = self.env.cluster.processes[self.server].pid
        self.env.cluster.kill(self.server)
        return [pid]

    def go_on(self) -> None:
        """Start the server again. The copy goes on by itself."""
        self.env.restart(self.server)
        super().go_on()


class ControllerScene(ServerScene):
    """A scene in which the controller dies and comes back."""

    server = "controller"


class SegmentStoreScene(ServerScene):
    """A scene in which the segment store dies and comes back."""

    server = "segmentstore"


class BookieScene(ServerScene):
    """A scene in which the bookie dies and comes back, and the segment store recovers."""

    server = "bookie"


class OperatorScene(Scene):
    """A scene in which the operator dies; the driver goes on, and the next operator finds it.

    Args:
        env: the environment.
        target: name of the target, and of the resource.
        folder: directory for files and logs.
        local_operator: the operator with its tenant.

    Attributes:
        tenant: the namespace.
    """

    def __init__(
        self, env: Applying, target: str, folder: Path, local_operator: LocalOperator
    ) -> None:
        self.target = target
        self._folder = folder
        self._resource = env.resource(local_operator.tenant, target)
        self.tenant = replace(local_operator.tenant, copies=self._resource["kind"])
        self._operator = local_operator.operator
        self._pod: DriverPod

    def __enter__(self) -> Self:
        """Apply the resource, and run the pod that the operator makes."""
        tenant = self.tenant
        tenant.apply(self._resource)
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
        """Start an operator, and wait until it has finished the work."""
        self._operator.start()
        self.settle()

    def settle(self) -> None:
        """Wait until the operator reports the work as done, and has cleaned up."""
        self.drive()
        self.tenant.until("nothing holds the resource", self._is_free, about=self.target)

    def drive(self) -> None:
        """Wait until the driver has ended, and the operator reports the work as done."""
        assert self._pod.finish(_COPY_SECONDS) == 0
        status = self.tenant.until_ready(self.target)
        assert status["attempts"] == 1

    def _is_free(self) -> bool:
        resource = self.tenant.get(self.tenant.copies, self.target)
        return resource is not None and "finalizers" not in resource["metadata"]

    def _pods(self, phase: str) -> list[dict[str, Any]]:
        return self.tenant.get_all("pods", fieldSelector=f"status.phase={phase}")


def _kill(pids: list[int]) -> None:
    """Kill processes at once, and return when they are dead."""
    os.kill(pids[0], signal.SIGKILL)
    for pid in pids[1:]:
        with suppress(ProcessLookupError):  # it has ended by the end of the process that began it
            os.kill(pid, signal.SIGKILL)
    until("they are dead", lambda: not any(map(is_alive, pids)), poll=TIGHT)
