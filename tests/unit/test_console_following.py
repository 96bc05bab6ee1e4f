"""Texts about a copy that follows its source, and the order of a file's copies."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sluice.api.load import load
from sluice.commands.copying import in_turn
from sluice.config import Settings
from sluice.console import following
from sluice.core.follow import ending
from sluice.core.follow.lag import Age, Followed, FollowedStreams, StreamLag
from sluice.core.values.wish import Wish
from sluice.errors import InvalidSpec
from sluice.pipelines.programs.jobs import all_jobs
from support.cases.resources import COPY, STORE, changed, text
from support.cases.wrong_continuous import continuous

FOLLOWED = Followed(live=True, position=1_300_000_000, proved=1_299_000_000, lag_bytes=0)


def behind(count: int, age: Age) -> Followed:
    """Return the state of a copy that is behind its source."""
    return FOLLOWED._replace(lag_bytes=count, lag=age)


@pytest.mark.parametrize(
    ("follow", "said"),
    [
        (FOLLOWED, "0 B behind"),
        (behind(12_000, Age(1.0, certain=True, pending=True)), "12 kB, <2s behind"),
        (behind(12_000, Age(75.0, certain=True)), "12 kB, 1m15s behind"),
        (behind(12_000, Age(75.0, certain=False)), "12 kB, at least 1m15s behind"),
    ],
)
def test_the_distance_is_told_in_bytes_and_seconds(follow: Followed, said: str) -> None:
    """An age that was not measured is not shown."""
    assert following.behind(follow) == said


def test_the_line_has_all_on_a_wide_page() -> None:
    """The line has bytes, rate, distance and proved position, and retries if there were any."""
    line = following.live_line(FOLLOWED, 1_100_000, 2, 200)
    assert line == "1.3 GB  1.1 MB/s  0 B behind  proved to 1.3 GB  2 retries"
    assert "retries" not in following.live_line(FOLLOWED, 1_100_000, 0, 200)


def test_a_narrow_page_keeps_what_matters() -> None:
    """The distance and the proof are left out last."""
    line = following.live_line(FOLLOWED, 1_100_000, 2, 30)
    assert line == "0 B behind  proved to 1.3 GB"


def test_nothing_that_is_not_proved_is_called_verified() -> None:
    """An interrupted copy shows its proved position, how to go on, and how to end."""
    said = following.left("orders", FOLLOWED)
    assert "verified" not in said
    assert "proved to 1.3 GB" in said
    assert "run the same command again" in said
    assert "stopWhen, or cutover: Drain or SealAndDrain" in said


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(), "until the source is sealed"),
        (Wish(idle_seconds=600), "until nothing came for 10m00s or the source is sealed"),
        (
            Wish(bytes=1_000_000, time=datetime(2026, 12, 1, tzinfo=UTC)),
            "until 1.0 MB are there, 2026-12-01T00:00:00Z or the source is sealed",
        ),
        (Wish(cutover="Drain"), "until nothing comes any more (Drain) or the source is sealed"),
        (
            Wish(cutover="SealAndDrain"),
            "until it is near the source's end, which it then seals (SealAndDrain)",
        ),
    ],
)
def test_the_end_is_told_beforehand(wish: Wish, said: str) -> None:
    """The text has the words of the fields."""
    assert following.until(wish) == said


def test_each_reason_of_an_end_has_words() -> None:
    """The text has the reason's name in the result, too. An unknown reason is shown as it is."""
    reasons = (
        ending.SEALED,
        ending.IDLE,
        ending.BYTES,
        ending.TIME,
        ending.DRAINED,
        ending.CUT_OVER,
    )
    for why in reasons:
        assert following.ending(why).endswith(f" ({why})")
    assert following.ending("Other") == "Other"


def test_what_follows_its_source_is_run_last() -> None:
    """Other copies come before, in the order of the file."""
    last = changed(COPY, "metadata.name", "after")
    jobs = all_jobs(load(text(STORE, continuous({}), last)), Settings())
    assert [job.name for job in in_turn(jobs)] == ["after", "orders"]


def test_several_that_follow_are_refused() -> None:
    """The first copy might never end. A suspended copy is not run, and does not count."""
    other = {"metadata.name": "other"}
    with pytest.raises(InvalidSpec, match="2 copies of the file follow") as refused:
        in_turn(all_jobs(load(text(STORE, continuous({}), continuous(other))), Settings()))
    assert refused.value.field == "spec.mode"
    other["spec.suspend"] = True
    jobs = all_jobs(load(text(STORE, continuous({}), continuous(other))), Settings())
    assert len(in_turn(jobs)) == 2


STREAMS = FollowedStreams(followed=40, coming=1, failed=2, worst=(StreamLag("a[red]", 9, 75.0),))


def test_the_line_of_a_scope_counts_its_streams() -> None:
    """It names the stream that is furthest behind. A narrow page keeps distance and proof."""
    follow = behind(12_000, Age(75.0, certain=True))._replace(streams=STREAMS)
    line = following.live_line(follow, 1_100_000, 0, 200)
    assert line.startswith(
        "40 streams  1 to come  2 failed  most: a\\[red]  1.3 GB  1.1 MB/s  12 kB"
    )
    narrow = following.live_line(follow, 1_100_000, 0, 50)
    assert narrow == "2 failed  12 kB, 1m15s behind  proved to 1.3 GB"


@pytest.mark.parametrize(
    ("streams", "said"),
    [
        (STREAMS, "planned bytes of 40 streams are verified and readable; 1 to come; 2 streams"),
        (FollowedStreams(followed=1), "shop is followed: all planned bytes are verified and"),
    ],
)
def test_a_scope_that_came_live_says_what_is_missing(streams: FollowedStreams, said: str) -> None:
    """Streams that are still to come are not called verified."""
    assert said in following.scope_is_live("shop", streams)


def test_the_end_of_a_scope_is_told_beforehand() -> None:
    """The copy ends by itself once all of its streams are sealed."""
    assert following.until(Wish(), of_scope=True) == "until all of them are sealed"
