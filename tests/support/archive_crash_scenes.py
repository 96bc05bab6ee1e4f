"""A gateway that dies while something is done with an archive, and archives that are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from support.crash_scenes import CommandScene, OperatorScene

if TYPE_CHECKING:
    from pathlib import Path

    from support.archive_crash_lab import ArchiveCrashLab
    from support.office import Office


class GatewayScene(CommandScene):
    """The gateway dies and comes back; the command goes on by itself.

    Args:
        lab: where.
        target: name of the target.
        folder: for files and logs.
    """

    def __init__(self, lab: ArchiveCrashLab, target: str, folder: Path) -> None:
        super().__init__(lab, target, folder)
        self._lab = lab

    def kill(self) -> list[int]:
        """Kill the gateway."""
        return [self._lab.kill_gateway(self.target)]

    def go_on(self) -> None:
        """Start it again."""
        self._lab.gateway.start()
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
        lab: where.
        target: name of the target.
        folder: for files and logs.
        office: whose operator it is.
    """

    def __init__(self, lab: ArchiveCrashLab, target: str, folder: Path, office: Office) -> None:
        super().__init__(lab, target, folder, office)
        self._lab = lab

    def kill(self) -> list[int]:
        """Kill the gateway."""
        return [self._lab.kill_gateway(self.target)]

    def go_on(self) -> None:
        """Start it again."""
        self._lab.gateway.start()
        self.settle()
