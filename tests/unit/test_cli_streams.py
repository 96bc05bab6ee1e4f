"""The lines of `sluice streams read`."""

import json

import pytest

from sluice.commands.streams.events import line_of
from sluice.engine.streams.reading import Event

ATTACK = b"\x1b]0;owned\x07\xff\xfe"


@pytest.mark.parametrize("terminal", [True, False])
def test_an_event_is_json_in_one_line_of_any_bytes(*, terminal: bool) -> None:
    """Bytes that are no UTF-8 are base64, and control characters are escaped."""
    line = line_of(Event(segment=1, offset=2, data=ATTACK), "json", terminal=terminal)
    assert json.loads(line) == {"segmentID": 1, "offset": 2, "base64": "G10wO293bmVkB//+"}
    assert line_of(Event(1, 2, b"\x1b[m"), "json", terminal=terminal).count(b"\x1b") == 0


def test_a_program_gets_an_events_own_bytes() -> None:
    """So a file of events can be written again unchanged."""
    assert line_of(Event(1, 2, ATTACK), "text", terminal=False) == ATTACK + b"\n"


def test_an_event_does_not_control_the_terminal() -> None:
    """A tenant's bytes are shown as text."""
    line = line_of(Event(1, 2, ATTACK), "text", terminal=True).decode()
    assert line == " ]0;owned \ufffd\ufffd\n"
