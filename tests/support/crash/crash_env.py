"""A store of four processes behind two proxies, and a source whose copy takes every step."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localstore import Cluster, ForeignClient
from support.command.sluice_command import Copy
from support.crash.breakpoint import Breakpoint
from support.crash.call_proxy import Call, CallProxy
from support.crash.crash_points import place_of
from support.crash.followed_source import FollowedSource, group_of
from support.crash.proxy import FrameProxy
from support.witness import foreign_witness as witness

if TYPE_CHECKING:
    from pathlib import Path

    from localstore.cluster_config import Name
    from support.crash.breakpoint import Sign
    from support.crash.crash_points import Point
    from support.crash.crash_table import Cell
    from support.tenants.tenant import Object, Tenant

Stream = tuple[str, str]

SOURCE: Stream = ("in", "events")
SCOPE = "out"
ENVIRONMENT = {"SLUICE_PART_BYTES": str(8 << 20), "SLUICE_SPARK_BYTES": str(8 << 20)}
EPOCH = 1 << 32
KEYS = 400
EVENTS = 200_000
"""Events of about 108 bytes. Nearly all are in one segment, which is copied in three parts."""

LATER = 5_000
"""Number of events after each scale event."""

OWN_SEGMENTS, OWN_EVENTS = 3, 1_000
"""Numbers of segments and events of an append's target, whose layout the source never had."""

_KEPT = 2
"""Segments that an append leaves beside its target: a receipt, and the log of turns."""


@dataclass(frozen=True)
class Own:
    """A stream before a copy appended to it: bytes by segment, and the keys it took."""

    reports: list[dict[str, Any]]
    keys: list[tuple[float, float]]


class CrashEnv:
    """The store, its source, and the proxies before it.

    Attributes:
        cluster: the store; its own addresses lead past the proxies.
        foreign: the official client, which calls only the controller directly.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._frames = self._stack.enter_context(FrameProxy())
        self.cluster = Cluster(published_port=self._frames.port)
        self._frames.upstream = self.cluster.segment_store
        self._calls = CallProxy(self.cluster.controller)
        self.foreign = ForeignClient(self.cluster.controller_uri)
        self._expected: list[dict[str, Any]] = []
        self._own: dict[str, Own] = {}
        self._followed: dict[str, FollowedSource] = {}

    def start(self) -> None:
        """Start the store and write the source."""
        with self._stack.pop_all() as stack:
            for part in (self.cluster, self._calls, self.foreign):
                stack.enter_context(part)
            self._write()
            self._expected = self._reports(SOURCE)
            self._stack = stack.pop_all()

    def stop(self) -> None:
        """Stop the store."""
        self._stack.close()

    @property
    def uri(self) -> str:
        """The store's address, through the proxies."""
        return self._calls.uri

    def copy(self, folder: Path, target: str) -> Copy:
        """Return a copy of the source, as a command."""
        if target in self._followed:
            return self._followed[target].whole_copy(folder)
        return Copy(
            folder,
            self.uri,
            SOURCE,
            (SCOPE, target),
            environment=ENVIRONMENT,
            exists=self.exists(target),
        )

    def exists(self, target: str) -> str:
        """Return the copy's `onExists`: its action on an existing target."""
        return "Append" if target in self._own else "Fail"

    def make(self, target: str) -> None:
        """Make a target for a copy to append to: another user's stream, with more segments."""
        stream = (SCOPE, target)
        self.foreign.create(*stream, segments=OWN_SEGMENTS)
        self.foreign.write(*stream, events=OWN_EVENTS, keys=KEYS)
        self._own[target] = Own(self._reports(stream), self._keys(stream))

    def follow(self, target: str, step: str) -> None:
        """Let a copy to a target follow a source of its own, of which much is left to follow.

        Args:
            target: the target.
            step: the step of following that the source is to bring about.
        """
        stream = (SCOPE, target)
        made = FollowedSource(self.cluster, self.foreign, self.uri, stream, step)
        made.prepare()
        self._followed[target] = made

    def resource(self, tenant: Tenant, target: str) -> Object:
        """Return a copy of the source, as a resource for an operator."""
        found = tenant.copy_resource(target, "/".join(SOURCE), f"{SCOPE}/{target}")
        found["spec"]["target"]["onExists"] = self.exists(target)
        return found

    def hold_up(self, point: Point, target: str) -> Breakpoint:
        """Hold up the frames or calls at a point of the copy to a target, from now on."""

        def told(sign: Sign) -> bool:
            return _is_about(sign, target) and point.told_by(sign)

        hold = Breakpoint(told, point.number)
        self._frames.hold = self._calls.hold = hold
        return hold

    def restart(self, server: Name) -> None:
        """Start a killed server again, and return when all servers serve."""
        self.cluster.restart(server)
        self.cluster.wait_ready()

    def assert_halfway(self, cell: Cell) -> None:
        """Check that a foreign reader finds no event in the target before bytes are published."""
        if cell.point.hidden and cell.victim == "driver":
            assert self.foreign.visible(SCOPE, cell.name).bytes == 0

    def assert_finished(self, cell: Cell) -> None:
        """Check that the copy is whole."""
        self.assert_copied(cell.name)

    def assert_copied(self, target: str) -> None:
        """Check that the target has the source's bytes in each segment, and nothing else is left.

        An append leaves earlier bytes in place, before its own, and the target takes its former
        keys. Otherwise the target takes the source's keys. So no event is lost, none is there
        twice, and none came before another that it followed.
        """
        if target in self._followed:
            self._followed[target].assert_copied()
            self.assert_nothing_left(target)
            return
        own = self._own.get(target)
        before = [] if own is None else own.reports
        actual = self._reports((SCOPE, target))
        witness.assert_alike([*before, *self._expected], actual, same_ids=False)
        assert self._keys((SCOPE, target)) == (self._keys(SOURCE) if own is None else own.keys)
        # A transaction that a dead driver opened without recording it ends with its lease.
        left = [name for name in self._left(target) if place_of(name) != "transaction"]
        assert {place_of(name) for name in left} <= {"journal"}
        assert len(left) == (0 if own is None else _KEPT)

    def assert_nothing_left(self, target: str) -> None:
        """Check that none of the staging segments ever made for a target is left."""
        assert self._left(target) == []

    def _left(self, target: str) -> list[str]:
        """Return the segments beside a target's that were made for a copy and exist."""
        made = witness.staging_of(self._frames, (SCOPE, target))
        assert made
        return witness.left_of(self.cluster.segment_store, made)

    def _reports(self, stream: Stream) -> list[dict[str, Any]]:
        """Return the witness' report on each segment that holds bytes."""
        found = witness.hashes(self.cluster.segment_store, self.foreign, stream)
        return [report for report in found if report["length"]]

    def _keys(self, stream: Stream) -> list[tuple[float, float]]:
        """Return the key ranges of the segments that take events, in order."""
        segments = self.foreign.info(*stream).segments
        return sorted(
            (one.low, one.high) for one in segments if one.low is not None and one.high is not None
        )

    def _write(self) -> None:
        """Write the source: first unlike a new stream in shape, then split, then merged."""
        foreign = self.foreign
        foreign.create_scope(SCOPE)
        foreign.create(*SOURCE, segments=1)
        first, small = EPOCH | 1, EPOCH | 2
        self._scale([0], [(0.0, 0.95), (0.95, 1.0)])
        assert foreign.truncate(*SOURCE, offsets={first: 0, small: 0})
        foreign.write(*SOURCE, events=EVENTS, keys=KEYS)
        self._scale([first], [(0.0, 0.4), (0.4, 0.95)])
        foreign.write(*SOURCE, events=LATER, keys=KEYS, first=EVENTS)
        self._scale([small, 2 * EPOCH | 3, 2 * EPOCH | 4], [(0.0, 1.0)])
        foreign.write(*SOURCE, events=LATER, keys=KEYS, first=EVENTS + LATER)

    def _scale(self, ended: list[int], ranges: list[tuple[float, float]]) -> None:
        assert self.foreign.scale(*SOURCE, segments=ended, ranges=ranges)


def _is_about(sign: Sign, target: str) -> bool:
    """Tell whether a frame or a call is about a target. Names of targets have one length."""
    if isinstance(sign, Call):
        return target.encode() in sign.request
    return sign.segment.startswith((f"{SCOPE}/{target}/", f"{SCOPE}/_RG{group_of(target)}/"))
