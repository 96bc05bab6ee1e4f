"""A gateway that dies while something is done with an archive, and archives that are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from support.crash.crash_scenes import CommandScene, OperatorScene

if TYPE_CHECKING:
    from pathlib import Path

    from support.cluster.local_operator import LocalOperator
    from support.crash.archive_crash_env import ArchiveCrashEnv


class GatewayScene(CommandScene):
    """The gateway dies and comes back; the command goes on by itself.

    Args:
        env: where.
        target: name of the target.
        folder: for files and logs.
    """

    def __init__(self, env: ArchiveCrashEnv, target: str, folder: Path) -> None:
        super().__init__(env, target, folder)
        self._env = env

    def kill(self) -> list[int]:
        """Kill the gateway."""
        return [self._env.kill_gateway(self.target)]

    def go_on(self) -> None:
        """Start it again."""
        self._env.gateway.start()
        super().go_on()


class DeletionScene(OperatorScene):
    """An operator deletes an archive with its resource; it dies, and the next one goes on."""

    def __enter__(self) -> Self:
        """Let a run be made, and delete the resource."""
        super().__enter__()
        self.drive()
        self.tenant.run("delete", self.tenant.copies, self.target, "--wait=false")
        return self

    def settle(self) -> None:
        """Wait until the resource is gone."""
        self.tenant.until_gone(self.tenant.copies, self.target)


class GatewayDeletionScene(DeletionScene):
    """The gateway dies while an operator deletes an archive.

    Args:
        env: where.
        target: name of the target.
        folder: for files and logs.
        local_operator: whose operator it is.
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
        """Start it again."""
        self._env.gateway.start()
        self.settle()
