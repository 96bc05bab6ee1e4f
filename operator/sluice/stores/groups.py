"""The part of a store that has reader groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from sluice.core.values.groups import GroupConfig, GroupName, GroupSettings, GroupState
    from sluice.core.values.model import StreamName


class ReaderGroups(Protocol):
    """The reader groups of a store, and the positions up to which they have read."""

    def reader_group(self, group: GroupName) -> GroupConfig | None:
        """Return the configuration of a reader group; None if there is no such group."""
        ...

    def group_state(self, group: GroupName) -> GroupState:
        """Return the positions up to which a reader group has read.

        Raises:
            ReaderGroupNotFound: there is no such group, or it is still being made.
            ProtocolError: its readers are of a version that Sluice does not know.
        """
        ...

    def create_reader_group(
        self,
        group: GroupName,
        start: Mapping[StreamName, Mapping[int, int]],
        *,
        settings: GroupSettings,
        identity: UUID,
    ) -> bool:
        """Make a reader group that begins at a cut of each stream, and reads on without end.

        Args:
            group: its name. A group that exists already is not changed.
            start: offsets in bytes by segment id, by stream.
            settings: the group's settings.
            identity: the new group's identity; see `core.values.identity.group_identity`. If the
                call is cut off anywhere, it can be repeated with another identity.

        Returns:
            False if the group exists and began at these positions; it may have read on since.

        Raises:
            ReaderGroupExists: a group of that name began at other positions.
            ScopeNotFound: there is no such scope.
            InvalidSpec: the store does not allow the name.
        """
        ...
