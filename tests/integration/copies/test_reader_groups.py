"""Reader groups that go on in a copy at their positions in its source, by the Java client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from localstore import Standalone, User
from localstore.accounts import ADMIN
from sluice.core.values.groups import AT_END, GroupName
from sluice.core.values.model import ScaleType, Scaling, StreamConfig, StreamName
from sluice.engine.copy.report import Outcome
from sluice.pipelines.programs.stores import Stores
from support.command.sluice_command import Copy, Finished
from support.store.inline import SETTINGS, job_of, run_inline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from localstore import ForeignClient
    from localstore.reports import Read
    from sluice.core.values.groups import GroupState

EVENTS = 2000
KEYS = 32
GROUP = "readers"
ELSEWHERE = User("elsewhere", "3333_cccc", "prn::*,READ_UPDATE")
MOVER = User(
    "mover",
    "4444_dddd",
    "prn::/scope:shop,READ;prn::/scope:shop/stream:orders,READ_UPDATE"
    f";prn::/scope:shop/reader-group:{GROUP},READ_UPDATE",
)
"""A user who may copy one stream, and read the position of one reader group."""

MANIFEST = """\
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {{name: main}}
spec: {{pravega: {{controllerURI: "{source_uri}", auth: {{basic: {{secretRef: {{name: main}}}}}}}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {{name: backup}}
spec: {{pravega: {{controllerURI: "{uri}", auth: {{basic: {{secretRef: {{name: backup}}}}}}}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: StreamCopy
metadata: {{name: orders}}
spec:
  source: {{storeRef: {{name: main}}, scope: {source[0]}, stream: {source[1]}}}
  target: {{storeRef: {{name: backup}}, scope: {target[0]}, stream: {target[1]}}}
"""


@dataclass
class CopyBetweenStores(Copy):
    """A copy from a store into another one, each with a login of its own.

    Args:
        source_uri: the source's address.
    """

    source_uri: str = ""

    @property
    def file(self) -> Path:
        """The file. Each access writes it anew."""
        path = self.folder / "copy.yaml"
        path.write_text(
            MANIFEST.format(
                source_uri=self.source_uri, uri=self.uri, source=self.source, target=self.target
            )
        )
        return path

    def log_in(self, main: User, backup: User) -> None:
        """Write the two Secrets to files, as Kubernetes would mount them."""
        for name, user in (("main", main), ("backup", backup)):
            secret = self.folder / "credentials" / name
            secret.mkdir(parents=True, exist_ok=True)
            (secret / "username").write_text(user.name)
            (secret / "password").write_text(user.password)
        self.environment["SLUICE_CREDENTIALS_DIR"] = str(self.folder / "credentials")


@pytest.fixture(scope="module")
def elsewhere(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Standalone]:
    """Yield a third store, which knows none of the second one's users."""
    server = Standalone(users=[ELSEWHERE, MOVER], heap="1g")
    with announce("another Pravega standalone with authentication"):
        server.start()
    yield server
    server.stop()


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str, foreign: ForeignClient) -> Copy:
    """Return a copy from one scope of a store to another, whose source is still to be made."""
    foreign.create_scope(f"{scope}-copy")
    return Copy(tmp_path, standalone.controller_uri, (scope, "source"), (f"{scope}-copy", "target"))


def _position(copy: Copy, *options: str) -> Any:
    """Return the JSON output of `sluice position` about the group."""
    finished = copy.run("position", "--reader-group", GROUP, "-o", "json", *options)
    assert finished.code == 0, finished.err
    return finished.json


def _refused(copy: Copy, *options: str) -> Finished:
    finished = copy.run("position", "--reader-group", GROUP, *options)
    assert finished.code == 2, finished
    return finished


def _state(copy: Copy) -> GroupState:
    """Return the positions of the source's group, in a store without logins."""
    job = job_of(copy)
    with Stores(SETTINGS) as stores:
        return stores[job.sources[0]].group_state(GroupName(copy.source[0], GROUP))


def _copied(copy: Copy) -> None:
    report = run_inline(copy)
    assert report.outcome is Outcome.COPIED, report.error


def _assert_whole(whole: Read, *parts: Read) -> None:
    """Check that consecutive reads together have each event once, in order per key."""
    assert all(part.clean for part in parts), parts
    assert sum(part.events for part in parts) == whole.events
    digests = (int(part.digest, 16) for part in parts)
    assert sum(digests) % (1 << 64) == int(whole.digest, 16)


@pytest.mark.exhaustive
def test_a_group_goes_on_in_another_store(
    tmp_path: Path,
    standalone_auth: Standalone,
    elsewhere: Standalone,
    foreign_for: Callable[..., ForeignClient],
) -> None:
    """A group goes on in another store. Each store has its own logins.

    The source's user may only read one stream and one group. The group has read half of a scaled
    stream of two segments. In the other store it gets exactly the rest. From then on Sluice leaves
    the new group alone.
    """
    here = foreign_for(elsewhere.controller_uri, ELSEWHERE)
    there = foreign_for(standalone_auth.controller_uri, ADMIN)
    copy = CopyBetweenStores(
        tmp_path,
        standalone_auth.controller_uri,
        ("shop", "orders"),
        ("backup", "orders"),
        source_uri=elsewhere.controller_uri,
    )
    here.create(*copy.source, segments=2)
    here.write(*copy.source, events=EVENTS, keys=KEYS)
    assert here.scale(*copy.source)
    here.write(*copy.source, events=EVENTS, keys=KEYS, first=EVENTS)
    assert here.create_group("shop", GROUP, "orders")
    before = here.read_group("shop", GROUP, events=EVENTS * 8 // 5)
    there.create_scope("backup")

    for main, backup in ((ADMIN, ADMIN), (MOVER, MOVER)):
        copy.log_in(main, backup)
        refused = copy.run("run")
        assert (refused.code, "AuthenticationFailed" in refused.err) == (3, True), refused
        assert there.streams("backup") == []
    copy.log_in(MOVER, ADMIN)
    finished = copy.run("run")
    assert finished.code == 0, finished.err

    assert _position(copy)["applied"] == "No"
    told = _position(copy, "--apply")
    assert (told["applied"], told["targetReaderGroup"]) == ("Created", f"backup/{GROUP}")
    assert len(told["offsets"]) == 3
    after = there.read_group("backup", GROUP, quiet_ms=4000)
    _assert_whole(here.read(*copy.source), before, after)

    assert _position(copy, "--apply")["applied"] == "AlreadyThere"
    here.read_group("shop", GROUP, events=10)
    assert "ReaderGroupExists" in _refused(copy, "--apply").err
    assert _position(copy, "--apply", "--as", "others")["applied"] == "Created"
    after = there.read_group("backup", "others", quiet_ms=4000)
    assert after.events == 2 * EVENTS - before.events - 10


def _merged(copy: Copy, foreign: ForeignClient, checkpoint_ms: int | None = None) -> None:
    """Make a stream of two segments with 20 and 3,000 events, merge them, and write 500 more."""
    foreign.create(*copy.source, segments=2)
    with Stores(SETTINGS) as stores:  # the official client's policy would keep two segments
        policy = Scaling(type=ScaleType.BY_EVENTS, target_rate=10**9, scale_factor=2)
        name = StreamName(scope=copy.source[0], stream=copy.source[1])
        stores[job_of(copy).sources[0]].update_stream(name, StreamConfig(scaling=policy))
    foreign.write(*copy.source, events=20, keys=8, segments=[0])
    foreign.write(*copy.source, events=3000, keys=8, seed=1, segments=[1])
    foreign.create_group(copy.source[0], GROUP, "source", checkpoint_ms=checkpoint_ms)
    assert foreign.scale(*copy.source, segments=[0, 1], ranges=[(0.0, 1.0)])
    foreign.write(*copy.source, events=500, keys=8, seed=2)


def _goes_on(copy: Copy, foreign: ForeignClient, *before: Read) -> None:
    """Check that the target's group reads the rest of both merged segments and the successor."""
    _copied(copy)
    assert len(_position(copy, "--apply")["offsets"]) == 2
    rest = foreign.read_group(copy.target[0], GROUP, quiet_ms=4000)
    assert rest.events > 500
    _assert_whole(foreign.read(*copy.source), *before, rest)


def test_a_group_goes_on_in_the_middle_of_a_merge(copy: Copy, foreign: ForeignClient) -> None:
    """A group that has reported the end of only one of two merged segments goes on.

    A reader reports an end when it next looks at the group's state, each half second.
    """
    _merged(copy, foreign)
    before = foreign.read_group(copy.source[0], GROUP, events=500, pace_ms=8)
    state = _state(copy)
    assert [len(one) for one in state.awaiting.values()] == [1], state
    _goes_on(copy, foreign, before)


@pytest.mark.exhaustive
def test_a_group_goes_on_at_an_end_that_its_reader_reached_as_it_left(
    copy: Copy, foreign: ForeignClient
) -> None:
    """A group whose reader left right at the end of one of two merged segments goes on.

    Sometimes a new reader begins with one segment only.
    """
    _merged(copy, foreign, checkpoint_ms=600_000)
    before: list[Read] = []
    offsets: Mapping[int, int] = {}
    while AT_END not in offsets.values():
        before.append(foreign.read_group(copy.source[0], GROUP, events=50))
        assert sum(part.events for part in before) < 3000, offsets
        (offsets,) = _state(copy).positions.values()
    _goes_on(copy, foreign, *before)


@pytest.mark.exhaustive
def test_a_group_that_read_all_of_a_sealed_source_gets_nothing_twice(
    copy: Copy, foreign: ForeignClient
) -> None:
    """A group at the source's end gets only events that are written to the target later."""
    foreign.create(*copy.source, segments=2)
    foreign.write(*copy.source, events=EVENTS, keys=KEYS)
    foreign.seal(*copy.source)
    foreign.create_group(copy.source[0], GROUP, "source")
    before = foreign.read_group(copy.source[0], GROUP, quiet_ms=3000)
    assert before.events == EVENTS
    _copied(copy)
    assert _position(copy, "--apply")["applied"] == "Created"
    assert foreign.read_group(copy.target[0], GROUP, quiet_ms=3000).events == 0


@pytest.mark.exhaustive
def test_a_group_whose_position_is_not_known_is_not_moved(
    copy: Copy, foreign: ForeignClient
) -> None:
    """A group with an online reader, or ahead of the copy, is refused. A given cut is accepted."""
    foreign.create(*copy.source, segments=1)
    foreign.write(*copy.source, events=200, keys=8)
    assert "ReaderGroupNotFound" in _after_copy(copy, foreign)
    foreign.create_group(copy.source[0], GROUP, "source")
    foreign.read_group(copy.source[0], GROUP, events=50, stay=True)
    online = _refused(copy, "--apply")
    assert "ReaderGroupBusy" in online.err
    assert "reader" in online.err
    cut = foreign.info(*copy.source).tail
    told = _position(copy, "--apply", "--cut", cut, "--as", "by-cut")
    assert told["applied"] == "Created"
    assert foreign.read_group(copy.target[0], "by-cut", quiet_ms=2000).events == 0
    foreign.leave_group(GROUP)
    foreign.write(*copy.source, events=100, keys=8, first=200)
    foreign.read_group(copy.source[0], GROUP, events=250)
    assert "has not got this position" in _refused(copy, "--apply").err


def _after_copy(copy: Copy, foreign: ForeignClient) -> str:
    """Return the refusal of `sluice position` after the copy, before the group is made."""
    _copied(copy)
    assert foreign.streams(copy.target[0]) == ["target"]
    return _refused(copy).err


@pytest.mark.exhaustive
def test_a_group_of_two_streams_leaves_one_behind_only_if_asked(
    copy: Copy, foreign: ForeignClient
) -> None:
    """A group of two streams moves without the other one only on request. The output names it."""
    scope = copy.source[0]
    foreign.create(*copy.source, segments=1)
    foreign.create(scope, "other", segments=1)
    foreign.write(*copy.source, events=200, keys=8)
    foreign.write(scope, "other", events=200, keys=8, seed=1)
    foreign.create_group(scope, GROUP, "source", "other")
    foreign.read_group(scope, GROUP, events=100)
    _copied(copy)
    assert f"{scope}/other" in _refused(copy, "--apply").err
    shown = copy.run("position", "--reader-group", GROUP, "--only-this-stream")
    assert shown.code == 0, shown.err
    assert "Nothing is made" in shown.out
    assert f"{scope}/other" in shown.out
    told = _position(copy, "--apply", "--only-this-stream")
    assert (told["applied"], told["otherStreams"]) == ("Created", [f"{scope}/other"])
    (at,) = told["sourceOffsets"]
    rest = foreign.read_group(copy.target[0], GROUP, quiet_ms=2000)
    assert (rest.clean, rest.events) == (True, 200 - at["offset"] // 108)
