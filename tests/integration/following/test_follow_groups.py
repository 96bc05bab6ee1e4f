"""A cutover of a source with two writers and two readers, whose groups go on in the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from support.command.follow_command import FollowingCopy

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone

RATE: Final = 1000
KEYS: Final = 20
READ: Final = 1500
"""Events that each reader of a group has read before the cutover."""
LATER: Final = 1000
"""Events that are written to the target afterwards."""
GROUPS: Final = ("billing", "audit")


@pytest.mark.timeout(600)
def test_reader_groups_go_on_behind_the_cut(
    tmp_path: Path, standalone: Standalone, scope: str, foreign: ForeignClient
) -> None:
    """After the cutover, reader groups get each event once and miss none.

    Both readers of `billing` close in the midst of the source. `audit` reads it to its sealed end.
    The seal refuses events of a writer that does not know of the cutover, and all its confirmed
    events count. The other writer stops before, and goes on in the target.
    """
    source, target = (scope, "source"), (scope, "target")
    foreign.create(*source, segments=4)
    for group in GROUPS:
        foreign.create_group(scope, group, "source")
    copy = FollowingCopy(tmp_path, standalone.controller_uri, source, target)
    copy.log_level = "warning"
    with copy.following("-o", "json") as process:
        unaware = foreign.start_writer(*source, rate=RATE, keys=KEYS, seed=1, outlives=True)
        aware = foreign.start_writer(*source, rate=RATE, keys=KEYS, seed=2)
        read = both(foreign, scope, "billing")
        assert foreign.scale(*source)
        read += both(foreign, scope, "billing")
        stopped = aware()
        copy.ends = {"cutover": "SealAndDrain"}
        assert copy.run("run", "-o", "json").code == 0
        assert process.ended().code == 0
    refused = unaware()
    assert foreign.info(*source).sealed
    whole = foreign.read(*target)
    assert whole.clean
    assert (whole.events, whole.digest) == ((of := foreign.read(*source)).events, of.digest)
    assert refused.acknowledged <= whole.events - stopped.events <= refused.events
    at_source = foreign.read_group(scope, "audit", events=whole.events)
    assert at_source.digest == whole.digest
    for group in GROUPS:
        moved = copy.run("position", "--reader-group", group, "--apply", "--as", f"{group}-2")
        assert moved.code == 0, moved.err
    foreign.write(*target, events=LATER, keys=KEYS, seed=2, first=stopped.events)
    all_ = foreign.read(*target)
    assert all_.clean
    assert all_.events == whole.events + LATER
    rest = foreign.read_group(scope, "billing-2", quiet_ms=5000)
    assert 4 * READ + rest.events == all_.events
    assert total([*read, rest.digest]) == all_.digest
    new = foreign.read_group(scope, "audit-2", quiet_ms=5000)
    assert new.events == LATER
    assert total([at_source.digest, new.digest]) == all_.digest


def both(foreign: ForeignClient, scope: str, group: str) -> list[str]:
    """Read with two readers of a group at once, and return the digest of each reader's events."""
    scripts = [
        [("readGroup", {"scope": scope, "group": group, "reader": name, "events": READ})]
        for name in ("one", "two")
    ]
    return [str(answers[0]["digest"]) for answers in foreign.together(scripts)]


def total(digests: list[str]) -> str:
    """Return the digest of all events: the sum of the parts' digests."""
    return f"{sum(int(one, 16) for one in digests) % 2**64:016x}"
