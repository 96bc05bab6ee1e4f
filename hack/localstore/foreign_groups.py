"""What the Java client does with reader groups."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from localstore import reports
from localstore.foreign_jvm import SECONDS, given


class ForeignGroups(ABC):
    """The part of a `ForeignClient` that makes, reads and deletes reader groups."""

    def create_group(
        self,
        scope: str,
        group: str,
        *streams: str,
        cut: str | None = None,
        checkpoint_ms: int | None = None,
    ) -> bool:
        """Makes a reader group, and tells whether it is new.

        Args:
            scope: Scope of the group and of what it reads.
            group: Its name.
            streams: That it reads.
            cut: Where it begins, as text, if that is one stream; else at the heads.
            checkpoint_ms: After how long its readers tell where they are; half a second when left
                out.

        Returns:
            Whether it was not there.
        """
        options = given(cut=cut, checkpoint=checkpoint_ms)
        arguments = _in(scope, group) | {"streams": ",".join(streams)} | options
        return self._changed("createGroup", arguments)

    def delete_group(self, scope: str, group: str) -> bool:
        """Deletes a reader group."""
        return self._changed("deleteGroup", _in(scope, group))

    def group_cuts(self, scope: str, group: str) -> dict[str, str]:
        """Tells where a group is, by what its readers told last: a cut as text for each stream.

        A segment that was read to its end is not in it.
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
        """Reads with a new reader of a group, where the group is.

        Args:
            scope: The group's scope.
            group: Its name.
            events: At most.
            quiet_ms: Until none came for so long; a minute when left out.
            pace_ms: For each event.
            stay: Whether the reader stays online, until `leave_group`.
            seconds: Deadline.

        Returns:
            What was found.
        """
        options = given(events=events, quiet=quiet_ms, pace=pace_ms, stay=stay or None)
        return reports.Read(**self._call("readGroup", _in(scope, group) | options, seconds))

    def leave_group(self, group: str) -> bool:
        """Takes the reader that stayed online out of a group."""
        return self._changed("leaveGroup", {"group": group})

    def _changed(self, command: str, arguments: Mapping[str, object]) -> bool:
        return bool(self._call(command, arguments)["changed"])

    @abstractmethod
    def _call(
        self, command: str, arguments: Mapping[str, object], seconds: float = SECONDS
    ) -> dict[str, Any]: ...


def _in(scope: str, group: str) -> dict[str, object]:
    return {"scope": scope, "group": group}
