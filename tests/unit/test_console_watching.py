"""Bars of many resources, and logs of drivers, as users read them."""

from __future__ import annotations

import io
from typing import Any, Final

import pytest
from rich.console import Console

from sluice import console
from sluice.administration.following import FollowedResource
from sluice.administration.naming import Named
from sluice.administration.resources import Awaited
from sluice.api.registry import KINDS
from sluice.console import watching

TIME: Final = "2026-01-01T00:00:00Z"
STEP: Final = (
    '{"event": "step", "level": "info", "timestamp": "2026-01-01T00:00:00.5Z", '
    '"step": "Verify", "note": "two words", "bytes": 7, "attempt": 1, "resource": "x"}'
)
KIND: Final = {kind.name: kind for kind in KINDS}


def followed(
    name: str, reason: str, *, kind: str = "StreamCopy", met: bool | None = None, **status: Any
) -> FollowedResource:
    """Return a resource whose condition Ready has a reason."""
    spec = KIND[kind]
    condition = {
        "type": "Ready",
        "status": "Unknown" if met is None else str(met),
        "reason": reason,
        "lastTransitionTime": TIME,
    }
    read = spec.status.read({"conditions": [condition], **status})
    resource = Named(spec, "team", name)
    end = None if met is None else Awaited(resource, read.condition("Ready"), met)
    return FollowedResource(resource, read, end)


def progress(percent: int) -> dict[str, Any]:
    """Return the progress of a copy of 100 MB."""
    size = 1_000_000
    return {
        "bytes": percent * size,
        "totalBytes": 100 * size,
        "percent": percent,
        "bytesPerSecond": 5 * size,
        "etaSeconds": 12,
    }


def test_a_resource_at_work_tells_how_far_and_how_fast_it_is() -> None:
    """The line has kind, state, progress, rate and time left. A scope also counts streams."""
    one = followed("orders", "Copying", progress=progress(42))
    assert watching.shown(one, namespaces=True).line == (
        "team/streamcopy/orders  Copying  42%  42 MB/100 MB  5.0 MB/s  ETA 12s"
    )
    streams = {"total": 30, "copied": 12}
    scope = followed("shop", "Copying", kind="ScopeCopy", progress=progress(42), streams=streams)
    assert "12/30 streams  42 MB/100 MB" in watching.shown(scope, namespaces=False).line


def test_a_query_tells_its_rows_and_how_far_it_is_behind() -> None:
    """A query goes on without an end, so it has no percentage."""
    known = {"rows": 4000, "lag": "1.2 MB", "lagBytes": 1_200_000}
    one = followed("clicks", "Running", kind="StreamQuery", met=True, progress=known)
    assert watching.shown(one, namespaces=False).line == (
        "streamquery/clicks  Running  4,000 rows, lag 1.2 MB"
    )


def test_a_resource_at_rest_has_no_rate() -> None:
    """Its last rate is from before its end. A store has no progress at all."""
    done = followed("orders", "Copied", met=True, progress=progress(100))
    assert watching.shown(done, namespaces=False).line == (
        "streamcopy/orders  Copied  100%  100 MB/100 MB"
    )
    store = followed("local", "Reachable", kind="StreamStore", met=True)
    assert watching.shown(store, namespaces=False).line == "streamstore/local  Reachable"


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Return the output of a terminal of 100 columns and 5 lines."""
    file = io.StringIO()
    terminal = Console(file=file, force_terminal=True, width=100, height=5, color_system=None)
    monkeypatch.setattr(watching, "out", terminal)
    monkeypatch.setattr(console.note, "quiet", False)
    return file


def test_bars_fit_the_terminal_and_show_work_first(screen: io.StringIO) -> None:
    """A terminal of five lines shows three resources, and the number of the others."""
    found = [followed(f"done-{number}", "Copied", met=True) for number in range(9)]
    found.append(followed("slow", "Copying", progress=progress(42)))
    with console.Watching(namespaces=False) as bars:
        bars.show(found)
    shown = screen.getvalue()
    assert shown.index("streamcopy/slow") < shown.index("streamcopy/done-0")
    assert "42%" in shown
    assert "━" in shown
    assert "... and 7 more" in shown


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_narrow_terminal_cuts_bars_and_ends_of_lines(
    screen: io.StringIO, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Names, percent and states stay whole, and each resource has one line."""
    narrow = Console(file=screen, force_terminal=True, width=width, height=9, color_system=None)
    monkeypatch.setattr(watching, "out", narrow)
    with console.Watching(namespaces=False) as bars:
        bars.show([followed(name, "Verifying", progress=progress(42)) for name in ("a", "orders")])
    shown = screen.getvalue()
    for text in ("streamcopy/a ", "streamcopy/orders ", " 42% ", "Verifying"):
        assert text in shown
    assert ("ETA 12s" in shown) is (width > 60)
    assert "... " not in shown


def test_quiet_shows_no_bars(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written to the terminal."""
    monkeypatch.setattr(console.note, "quiet", True)
    with console.Watching(namespaces=False) as bars:
        bars.show([followed("slow", "Copying")])
    assert screen.getvalue() == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            STEP,
            '2026-01-01 00:00:00  INFO     step  step=Verify  note="two words"  bytes=7',
        ),
        ("no JSON\x1b[2J\tat all", "no JSON [2J at all"),
        ('{"level": "info"}', '{"level": "info"}'),
        ("[1]", "[1]"),
        (f"{'[' * 100_000}", f"{'[' * 100_000}"),
        (
            '{"event": "failed\\u001b", "exception": "Traceback:\\n  line\\u001b"}',
            "  " + " " * 7 + "  failed \nTraceback:\n  line ",
        ),
    ],
    ids=["fields", "other text", "no event", "no object", "deep", "exception"],
)
def test_lines_of_a_log_are_readable(line: str, expected: str) -> None:
    """JSON becomes a sentence with fields, and no character controls the terminal."""
    assert console.readable(line) == expected
