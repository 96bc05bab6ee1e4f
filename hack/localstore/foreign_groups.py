"""The Java client's commands for reader groups."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from localstore import reports
from localstore.foreign_jvm import SECONDS, given


class ForeignGroups(ABC):
    """The part of a `ForeignClient` that creates, reads and deletes reader groups."""

    def create_group(
        self,
        scope: str,
        group: str,
        *streams: str,
        cut: str | None = None,
        checkpoint_ms: int | None = None,
    ) -> bool:
        """Create a reader group, and tell whether it is new.

        Args:
            scope: scope of the group and its streams.
            group: the group's name.
            streams: the streams that the group reads.
            cut: first position of a group of one stream, as text; the head if left out.
            checkpoint_ms: interval in ms at which readers report their positions; 500 if left
                out.

        Returns:
            Whether the group is new.
        """
        options = given(cut=cut, checkpoint=checkpoint_ms)
        arguments = _in(scope, group) | {"streams": ",".join(streams)} | options
        return self._changed("createGroup", arguments)

    def delete_group(self, scope: str, group: str) -> bool:
        """Delete a reader group."""
        return self._changed("deleteGroup", _in(scope, group))

    def group_cuts(self, scope: str, group: str) -> dict[str, str]:
        """Return a group's positions, as its readers last reported: a cut as text for each stream.

        A cut omits segments that were read to their ends.
        """
        return dict(self._call("groupCuts", _in(scope, group))["cuts"])

    def read_group(
        self,
        scope: str,
        group: str,
        *,
        events: int | None = None,
        quiet_ms: int | None = None,
        pace_ms: int | None = None,
        stay: bool = False,
        seconds: float = SECONDS,
    ) -> reports.Read:
        """Read with a new reader of a group, from the group's positions on.

        Args:
            scope: the group's scope.
            group: the group's name.
            events: maximum number of events.
            quiet_ms: time in ms without an event that ends the reading; a minute if left out.
            pace_ms: time in ms per event.
            stay: whether the reader stays online until `leave_group`.
            seconds: deadline in seconds.

        Returns:
            A report of the read events.
        """
        options = given(events=events, quiet=quiet_ms, pace=pace_ms, stay=stay or None)
        return reports.Read(**self._call("readGroup", _in(scope, group) | options, seconds))

    def leave_group(self, group: str) -> bool:
        """Remove the reader that stayed online from a group."""
        return self._changed("leaveGroup", {"group": group})

    def _changed(self, command: str, arguments: Mapping[str, object]) -> bool:
        return bool(self._call(command, arguments)["changed"])

    @abstractmethod
    def _call(
        self, command: str, arguments: Mapping[str, object], seconds: float = SECONDS
    ) -> dict[str, Any]: ...


def _in(scope: str, group: str) -> dict[str, object]:
    return {"scope": scope, "group": group}
