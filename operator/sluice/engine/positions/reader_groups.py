"""Move reader groups: read a group's position in a source, and make a group in the target there."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

from sluice.core.values.groups import AT_END, DEFAULT_SETTINGS, GroupSettings, finished
from sluice.core.values.identity import group_identity
from sluice.core.values.model import break_in
from sluice.engine.positions.position_map import translate
from sluice.errors import InvalidSpec, ReaderGroupBusy, ReaderGroupNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.values.groups import GroupConfig, GroupName
    from sluice.core.values.model import StreamName
    from sluice.engine.positions.position_map import Mapped
    from sluice.stores.base import Store
    from sluice.stores.groups import ReaderGroups

FIELD = "--reader-group"


class Move(NamedTuple):
    """A group's position in a source, and the same position in the target.

    Attributes:
        settings: the group's settings.
        source: offsets by segment id of the source.
        target: offsets by segment id of the target.
        left: other streams that the group reads, and that are not the copy's.
    """

    settings: GroupSettings
    source: dict[int, int]
    target: dict[int, int]
    left: tuple[StreamName, ...]


def look(
    group: GroupName,
    stream: StreamName,
    mapped: Sequence[Mapped],
    store: Store,
    *,
    cut: Mapping[int, int] | None = None,
    alone: bool = False,
) -> Move:
    """Find the position of a group that reads a source, and translate it to the target.

    Args:
        group: the group's name.
        stream: the source.
        mapped: the copy's map.
        store: the source's store.
        cut: a position to take in place of the group's: offsets by segment id of the source.
        alone: whether the group may read other streams as well, which are left out.

    Raises:
        ReaderGroupNotFound: the group does not exist, or does not read the source.
        ReaderGroupBusy: readers of the group are online, or its positions are being set.
        InvalidSpec: the group reads other streams or only up to a cut, its position is not known,
            or the copy does not hold the position.
    """
    config = store.reader_group(group)
    if config is None and cut is None:
        raise ReaderGroupNotFound(f"there is no reader group {group}", field=FIELD)
    left = () if config is None else _left(group, stream, config, alone=alone)
    source = dict(cut) if cut is not None else _position(group, stream, mapped, store)
    settings = DEFAULT_SETTINGS if config is None else config.settings
    return Move(settings, source, _translated(group, source, mapped), left)


def make(
    group: GroupName,
    target: StreamName,
    cut: Mapping[int, int],
    *,
    settings: GroupSettings,
    copy_id: str,
    store: ReaderGroups,
) -> bool:
    """Make a group that begins at a cut of the target. Return False if this group exists already.

    Raises:
        ReaderGroupExists: a group of that name began at another position.
    """
    identity = group_identity(copy_id, group.scope, group.name, secrets.randbits(64))
    return store.create_reader_group(
        group, {target: dict(cut)}, settings=settings, identity=identity
    )


def _left(
    group: GroupName, stream: StreamName, config: GroupConfig, *, alone: bool
) -> tuple[StreamName, ...]:
    if stream not in config.streams:
        raise ReaderGroupNotFound(
            f"the reader group {group} reads {_listed(config.streams)}, not the source {stream}",
            field=FIELD,
        )
    others = tuple(one for one in config.streams if one != stream)
    if others and not alone:
        raise InvalidSpec(
            f"the reader group {group} reads {_listed(others)} as well, and this copy has {stream}",
            field=FIELD,
            remedy="With --only-this-stream its new group reads the target alone.",
        )
    if stream in config.bounded:
        raise InvalidSpec(
            f"the reader group {group} reads {stream} only up to a cut",
            field=FIELD,
            remedy="Translate both cuts with --cut, and make the group with your client.",
        )
    return others


def _position(
    group: GroupName, stream: StreamName, mapped: Sequence[Mapped], store: Store
) -> dict[int, int]:
    """Return the cut of the source that a group has read up to.

    While the group passes a scale event, it reads nothing for some keys. The segments that it has
    finished are then put at their end, so that the position is a cut.
    """
    state = store.group_state(group)
    if state.readers:
        readers = ", ".join(state.readers)
        raise ReaderGroupBusy(f"readers of {group} are online: {readers}", field=FIELD)
    if state.changing:
        raise ReaderGroupBusy(
            f"another process is setting the positions of {group}",
            field=FIELD,
            remedy="Open one of its readers, which ends that, and close it again.",
        )
    cut = dict(state.positions.get(stream, {}))
    ended = {segment for segment, offset in cut.items() if offset == AT_END}
    keys = {one.source: one.keys for one in mapped}
    read = sorted((keys[segment] for segment in cut if segment in keys), key=lambda one: one.low)
    if break_in(read) is not None:
        ended |= finished(cut, state.awaiting.get(stream, {}), store.generations(stream))
    infos = store.infos([store.segment_name(stream, segment) for segment in sorted(ended)])
    for segment, info in zip(sorted(ended), infos, strict=True):
        if info is None or not info.sealed:
            why = "is gone" if info is None else "takes events"
            raise InvalidSpec(
                f"where the reader group {group} is between scale events of {stream} is not known:"
                f" segment {segment}, which it does not read any more, {why}",
                field=FIELD,
                remedy="Let the group read on past the scale event, and close its readers.",
            )
        cut[segment] = info.length
    return cut


def _translated(
    group: GroupName, cut: Mapping[int, int], mapped: Sequence[Mapped]
) -> dict[int, int]:
    try:
        return translate(cut, mapped)
    except InvalidSpec as error:
        raise InvalidSpec(
            f"{error.message} (that of {group})",
            field=FIELD,
            remedy="Copy the source again, up to a later cut; or let the group read on first, if"
            " it is before the copy's beginning or between two scale events.",
        ) from None


def _listed(streams: Sequence[StreamName]) -> str:
    return ", ".join(map(str, streams))
