"""Say how far a copy is that follows its source, how it ends, and why it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.markup import escape

from sluice.console.page import printable
from sluice.core.follow.ending import BYTES, CUT_OVER, DRAINED, IDLE, SEALED, TIME
from sluice.core.follow.lag import RESOLUTION
from sluice.core.values.text import counted, duration, rate, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.core.follow.lag import Followed, FollowedStreams
    from sluice.core.values.wish import Wish

_ENDS: Final = {
    SEALED: "the source is sealed, and was followed to its end",
    IDLE: "nothing came for the seconds of stopWhen.idleSeconds",
    BYTES: "the bytes of stopWhen.bytes are there",
    TIME: "the time of stopWhen.time has come",
    DRAINED: "nothing comes any more, and the target has all",
    CUT_OVER: "the source was sealed for the cutover, and was followed to its end",
}


FAR_BEHIND: Final = "is far ahead: what is missing is staged and verified, and then it is followed"
"""What is said of a source whose target is far behind."""


def ending(why: str) -> str:
    """Say why a copy ends, by the reason that its journal has."""
    said = _ENDS.get(why)
    return why if said is None else f"{said} ({why})"


def until(wish: Wish, *, of_scope: bool = False) -> str:
    """Say until when a copy follows its source, or all streams of a scope."""
    ways = list(_ways(wish))
    if wish.cutover != "SealAndDrain":
        ways.append("all of them are sealed" if of_scope else "the source is sealed")
    return f"until {', '.join(ways[:-1])}{' or ' if ways[1:] else ''}{ways[-1]}"


def _ways(wish: Wish) -> Iterator[str]:
    if wish.cutover == "Drain":
        yield "nothing comes any more (Drain)"
    if wish.cutover == "SealAndDrain":
        yield "it is near the source's end, which it then seals (SealAndDrain)"
    if wish.idle_seconds is not None:
        yield f"nothing came for {duration(wish.idle_seconds)}"
    if wish.bytes is not None:
        yield f"{size(wish.bytes)} are there"
    if wish.time is not None:
        yield f"{wish.time:%Y-%m-%dT%H:%M:%SZ}"


def behind(follow: Followed) -> str:
    """Say how far a target is behind its source, in bytes and in seconds."""
    if not follow.lag_bytes:
        return "0 B behind"
    lag = follow.lag
    least = "" if lag.certain else "at least "
    age = f"{least}{duration(lag.seconds)}" if lag.seconds >= RESOLUTION else "<2s"
    return f"{size(follow.lag_bytes)}, {age} behind"


def standing(follow: Followed) -> str:
    """Say what a target has, and up to where it was compared."""
    return f"{size(follow.position)} in the target, proved to {size(follow.proved)}"


def live_line(follow: Followed, speed: float, retries: int, room: int) -> str:
    """Write the line of a copy that follows its source.

    Args:
        follow: how far it is.
        speed: bytes per second.
        retries: how often a failure was tried again.
        room: characters that the line may have. The parts that are needed least are left out.
    """
    parts = {
        **_streams(follow.streams),
        "there": size(follow.position),
        "rate": rate(speed),
        "lag": behind(follow),
        "staged": _staged(follow),
        "proved": f"proved to {size(follow.proved)}",
        "retries": f"{retries:,} retries" if retries else "",
    }
    text = ""
    for spare in ("", "furthest", "there", "rate", "retries", "coming", "streams"):
        parts.pop(spare, None)
        text = "  ".join(part for part in parts.values() if part)
        if len(text) <= room:
            break
    return text


def _staged(follow: Followed) -> str:
    """Return what a line says of bytes that are staged, since the target is far behind."""
    if follow.catching is None:
        return ""
    return "{} of {} staged".format(*map(size, follow.catching))


def _streams(streams: FollowedStreams | None) -> dict[str, str]:
    """Return what a line says of the streams of a scope."""
    if streams is None:
        return {}
    worst = streams.worst[0] if streams.worst else None
    late = worst is not None and worst.seconds >= RESOLUTION
    return {
        "streams": counted(streams.followed, "stream"),
        "coming": f"{streams.coming:,} to come" if streams.coming else "",
        "failed": f"{streams.failed:,} failed" if streams.failed else "",
        "furthest": f"most: {escape(printable(worst.stream))}" if worst and late else "",
    }


def scope_is_live(source: str, streams: FollowedStreams) -> str:
    """Say that a scope is followed, and which of its streams are not.

    Args:
        source: the scope.
        streams: its streams.
    """
    of = f" of {counted(streams.followed, 'stream')}" if streams.coming else ""
    rest = f"; {streams.coming:,} to come" if streams.coming else ""
    failed = f"; {counted(streams.failed, 'stream')} failed" if streams.failed else ""
    return f"{source} is followed: all planned bytes{of} are verified and readable{rest}{failed}"


def left(name: str, follow: Followed | None) -> str:
    """Say what an interrupt leaves of a copy that follows its source, and how to go on.

    Args:
        name: the name of the copy.
        follow: how far it was; None if that was not seen yet.
    """
    far = "" if follow is None else f": {standing(follow)}; {behind(follow)} its source"
    return (
        f"Interrupted. {name} stays live{far}.\n"
        "Nothing follows the source now. To go on, run the same command again.\n"
        "To end the copy, give stopWhen, or cutover: Drain or SealAndDrain, in the file, and run "
        "it again."
    )
