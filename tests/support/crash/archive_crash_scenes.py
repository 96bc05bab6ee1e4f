"""Scenes in which a gateway dies during the work on an archive, and scenes of deletions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from support.crash.crash_scenes import CommandScene, OperatorScene

if TYPE_CHECKING:
    from pathlib import Path

    from support.cluster.local_operator import LocalOperator
    from support.crash.archive_crash_env import ArchiveCrashEnv


class GatewayScene(CommandScene):
    """A scene in which the gateway dies and comes back, and the command goes on by itself.

    Args:
        env: the environment.
        target: name of the target.
        folder: directory for files and logs.
    """

    def __init__(self, env: ArchiveCrashEnv, target: str, folder: Path) -> None:
        super().__init__(env, target, folder)
        self._env = env

    def kill(self) -> list[int]:
        """Kill the gateway."""
        return [self._env.kill_gateway(self.target)]

    def go_on(self) -> None:
        """Start the gateway again, and wait for the command."""
        self._env.gateway.start()
        super().go_on()


class DeletionScene(OperatorScene):
    """A scene in which an operator dies while it deletes an archive, and the next one goes on."""

    def __enter__(self) -> Self:
        """Archive a run, and delete the resource."""
        super().__enter__()
        self.drive()
        self.tenant.run("delete", self.tenant.copies, self.target, "--wait=false")
        return self

    def settle(self) -> None:
        """Wait until the resource is gone."""
        self.tenant.until_gone(self.tenant.copies, self.target)


class GatewayDeletionScene(DeletionScene):
    """A scene in which the gateway dies while an operator deletes an archive.

    Args:
        env: the environment.
        target: name of the target.
        folder: directory for files and logs.
        local_operator: the operator with its tenant.
    """

    def __init__(
        self, env: ArchiveCrashEnv, target: str, folder: Path, local_operator: LocalOperator
    ) -> None:
        super().__init__(env, target, folder, local_operator)
        self._env = env

    def kill(self) -> list[int]:
        """Kill the gateway."""
        return [self._env.kill_gateway(self.target)]

    def go_on(self) -> None:
        """Start the gateway again, and wait until the resource is gone."""
        self._env.gateway.start()
        self.settle()
