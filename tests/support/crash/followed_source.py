"""A source and a copy that follows it. The copy takes every step up to a cutover."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import segment_hash
from sluice.core.values.model import ScaleType, Scaling, StoreAddress, StreamName
from sluice.pipelines.programs.stores import Stores
from support.command.follow_command import FollowingCopy
from support.store.inline import SETTINGS

if TYPE_CHECKING:
    from localstore import Cluster, ForeignClient

EVENTS, LATER = 2_000, 500
"""Numbers of events before the copy follows, and in each later write."""

LOST = 5 * 108
"""Bytes that each segment of the source loses before the copy follows them: five events."""

READ = 700
"""Events that a reader group has read before the copy follows."""

QUIET_MS = 5_000

KEYS = 100
ANY_NUMBER = Scaling(
    type=ScaleType.BY_EVENTS, target_rate=1_000_000, scale_factor=2, min_segments=1
)
"""A policy that takes any number of segments."""

_BLOCK = 1 << 20


def group_of(target: str) -> str:
    """Return the name of the reader group that reads a source and then its target."""
    return f"{target}-group"


class FollowedSource:
    """A source of two segments, which changes once its copy follows it.

    Args:
        cluster: the store; its own addresses lead past the proxies.
        foreign: the official client.
        uri: the store's address for the copy.
        target: scope and name of the target.
        step: the step that the source brings about. For Skip, the source loses bytes before the
            copy follows them. For Translate, a reader group reads it. For CatchUp, the copy stages
            any number of bytes. For Halt, both segments stay to the end; for other steps they are
            merged.
    """

    def __init__(
        self,
        cluster: Cluster,
        foreign: ForeignClient,
        uri: str,
        target: tuple[str, str],
        step: str,
    ) -> None:
        self._cluster = cluster
        self._foreign = foreign
        self._uri = uri
        self._target = target
        self._loses = step == "Skip"
        self._merges = step != "Halt"
        self._environment = {"SLUICE_FAR_BYTES": "1"} if step == "CatchUp" else {}
        self._group = group_of(target[1]) if step == "Translate" else None
        self._source = ("in", f"{target[1]}-source")
        self._before: dict[int, bytes] = {}
        self._read = 0

    def copy(self, folder: Path, **ends: Any) -> FollowingCopy:
        """Return the copy, as a command. Without fields for its end, the copy goes on for ever."""
        return FollowingCopy(
            folder,
            self._uri,
            self._source,
            self._target,
            on_truncation="Record",
            environment=self._environment,
            ends=ends,
        )

    def whole_copy(self, folder: Path) -> FollowingCopy:
        """Return the copy with a cutover, and with the reader group that then reads the target."""
        groups = {} if self._group is None else {"readerGroups": [{"name": self._group}]}
        return self.copy(folder, cutover="SealAndDrain", **groups)

    def prepare(self) -> None:
        """Kill a driver once it follows the source, and then change the source in several ways."""
        foreign = self._foreign
        foreign.create(*self._source, segments=2)
        foreign.write(*self._source, events=EVENTS, keys=KEYS)
        if self._group is not None:
            foreign.create_group(self._source[0], self._group, self._source[1])
            read = foreign.read_group(self._source[0], self._group, events=READ)
            self._read = read.events
        with tempfile.TemporaryDirectory() as folder, self.copy(Path(folder)).following():
            pass
        self._before = self._contents(self._source)
        foreign.write(*self._source, events=LATER, keys=KEYS, first=EVENTS)
        if self._loses:
            begins = {segment: len(data) + LOST for segment, data in self._before.items()}
            assert foreign.truncate(*self._source, offsets=begins)
        self._configure()
        if self._merges:
            assert foreign.scale(*self._source, segments=[0, 1], ranges=[(0.0, 1.0)])
        foreign.write(*self._source, events=LATER, keys=KEYS, first=EVENTS + LATER)

    def assert_copied(self) -> None:
        """Check that the target has all bytes that the source ever had, except the lost ones."""
        assert self._foreign.info(*self._source).sealed
        expected = self._contents(self._source)
        if self._loses:
            for segment, data in self._before.items():
                expected[segment] = data + expected[segment]
        assert self._contents(self._target) == expected
        if self._group is not None:
            rest = self._foreign.read_group(self._target[0], self._group, quiet_ms=QUIET_MS)
            assert self._read + rest.events == EVENTS + 2 * LATER

    def _configure(self) -> None:
        """Give the source a tag and a policy that allows one segment. The copy follows both."""
        name = StreamName(scope=self._source[0], stream=self._source[1])
        with Stores(SETTINGS) as stores:
            store = stores[StoreAddress(uri=self._cluster.controller_uri)]
            described = store.describe(name)
            assert described is not None
            change = {"tags": ("team=a",), "scaling": ANY_NUMBER}
            store.update_stream(name, described.config.model_copy(update=change))

    def _contents(self, stream: tuple[str, str]) -> dict[int, bytes]:
        """Return the readable bytes of each segment of a stream, by the stand-alone script."""
        found = {}
        with segment_hash.Connection(*self._cluster.segment_store) as connection:
            for one in self._foreign.info(*stream).segments:
                name = segment_hash.segment_name(*stream, one.id)
                info = connection.info(name)
                assert info is not None
                data = bytearray()
                while (at := info["start"] + len(data)) < info["end"]:
                    data += connection.read(name, at, min(_BLOCK, info["end"] - at))
                found[one.id] = bytes(data)
        return found
