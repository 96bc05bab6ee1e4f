"""Build the status of a StreamCopy that follows its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sluice.api.status.follow_status import CutoverState, CutoverStatus, GroupStatus
from sluice.core.reconcile.copies.statuses.following import FollowingStatus
from sluice.core.reconcile.copies.statuses.streams import StreamStatus
from sluice.core.reconcile.shared import conditions
from sluice.core.reconcile.shared.conditions import Saying
from sluice.core.workloads.answers import Complete

if TYPE_CHECKING:
    from sluice.api.status.common import CopyingStatus
    from sluice.core.reconcile.copies.world import World


class FollowedStreamStatus(FollowingStatus, StreamStatus):
    """Builder of the next status of a StreamCopy that follows its source."""

    cutover: ClassVar[type[CutoverState]] = CutoverStatus

    def regrouping(self, world: World) -> CopyingStatus:
        """Report that the target is complete, and which reader groups are waited for.

        Writers need not wait for them, so the cutover is done.
        """
        self._take_groups(world)
        self._take_cut(world)
        waiting = [group for group in world.groups if not group.made]
        names = ", ".join(group.name for group in waiting)
        why = next((f" {group.why}" for group in waiting if group.why), "")
        said = f"The target is whole. Reader groups that are not made yet: {names}.{why}"
        return self._say(conditions.working(Saying("WaitingForReaders", said)))

    def _take_groups(self, world: World) -> None:
        if world.groups:
            self._set(
                reader_groups=tuple(
                    GroupStatus(
                        name=group.name,
                        made=group.target,
                        state="Made" if group.made else "Waiting",
                        why=group.why or None,
                    )
                    for group in world.groups
                )
            )

    def _take_cut(self, world: World) -> None:
        whole = world.answer
        if isinstance(whole, Complete) and whole.cut is not None:
            cuts = {"source_cut": whole.cut.source, "target_cut": whole.cut.target}
            self._set(cutover=self._reached("Done", **{k: v for k, v in cuts.items() if v}))

    def over(self, world: World) -> CopyingStatus:
        """Report that the target is complete, and where it is cut over."""
        self._take_cut(world)
        self._end_following()
        self._take_groups(world)
        return super().over(world)

    def _ended_as(self, said: Saying) -> Saying:
        if self._spec.cutover == "None" or said.reason != "Copied":
            return said
        groups = ", ".join(group.made for group in self._spec.reader_groups)
        made = f" Reader groups that were made for it: {groups}." if groups else ""
        return super()._ended_as(said._replace(message=f"{said.message}{made}"))

    def _of_run(self) -> dict[str, Any]:
        return super()._of_run() | {"follow": None, "cutover": None, "reader_groups": None}
