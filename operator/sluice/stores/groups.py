"""What Sluice needs of a store's reader groups, besides what `stores.base` has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from sluice.core.values.groups import GroupConfig, GroupName, GroupSettings, GroupState
    from sluice.core.values.model import StreamName


class ReaderGroups(Protocol):
    """Applications read together as a group, and the store keeps how far it has read."""

    def reader_group(self, group: GroupName) -> GroupConfig | None:
        """How a reader group is configured; None when there is none."""
        ...

    def group_state(self, group: GroupName) -> GroupState:
        """How far a reader group has read.

        Raises:
            ReaderGroupNotFound: there is none, or it is being made.
            ProtocolError: its readers are of a version that we do not know.
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
            group: its name; nothing is changed where there is one.
            start: offsets by segment id, by stream.
            settings: of it.
            identity: of the one to be made; see `core.values.identity.group_identity`. Making it
                can be repeated, with another one, after it was cut off anywhere.

        Returns:
            False when it is there and began at these positions; it may have read on since.

        Raises:
            ReaderGroupExists: there is one of that name that began somewhere else.
            ScopeNotFound: there is no such scope.
            InvalidSpec: the store does not allow the name.
        """
        ...
