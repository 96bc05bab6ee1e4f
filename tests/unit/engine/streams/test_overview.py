"""An overview of a scope for a login that may not read all of it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from sluice import cli
from sluice.core.values.model import StreamName
from sluice.engine.streams.overview import Forbidden, Overview, overviews, scopes
from sluice.errors import PermissionDenied
from sluice.pipelines.programs.stores import Stores
from support.engine.scope_drivers import SharedStore
from support.engine.sources import put_source
from support.model import World

if TYPE_CHECKING:
    from sluice.stores.reading import Stream

OPEN, HIDDEN = StreamName(scope="shop", stream="open"), StreamName(scope="shop", stream="hidden")


class Guarded(SharedStore):
    """A store that lists all streams, and refuses to show some of them."""

    def describe(self, name: StreamName) -> Stream | None:
        """Refuse the hidden stream."""
        if name == HIDDEN:
            raise PermissionDenied("\x1b[2J no")
        return super().describe(name)

    def list_streams(self, scope: str, **wanted: object) -> list[str]:
        """Refuse to list a scope that is private as a whole."""
        if scope == "private":
            raise PermissionDenied("no")
        return super().list_streams(scope, **wanted)  # type: ignore[arg-type]


@pytest.fixture
def store() -> Guarded:
    """Return a store with two streams in a scope, and with a scope that is private."""
    world = World()
    put_source(world, [30, 50], name=OPEN)
    put_source(world, [30], name=HIDDEN)
    world.scopes = {"private", "shop"}
    return Guarded(world)


def test_a_stream_that_is_not_permitted_hides_no_other(store: Guarded) -> None:
    """The stream without permission is listed by its name, with the store's refusal."""
    hidden, shown = sorted(overviews(store, "shop"), key=lambda one: one.name.stream)
    assert isinstance(hidden, Forbidden)
    assert (hidden.name, hidden.error.reason) == (HIDDEN, "PermissionDenied")
    assert isinstance(shown, Overview)
    assert (shown.name, shown.events) == (OPEN, 2)
    assert dict(scopes(store)) == {"private": None, "shop": 2}


@pytest.mark.parametrize("words", [["shop"], []])
def test_the_command_lists_the_rest_and_its_exit_code_tells(
    store: Guarded,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    """The list is a table or JSON, and the error names the missing right."""
    monkeypatch.setattr(Stores, "__getitem__", lambda *_: store)

    def run(*more: str) -> tuple[str, str]:
        command = ["sluice", "streams", "ls", *words, "--store", "tcp://here:1", *more]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 3
        return capsys.readouterr()

    table, error = run()
    assert "not permitted" in table
    assert f"may not look at 1 {'stream' if words else 'scope'}, such as" in error
    assert "Grant the user READ" in error
    found = json.loads(run("-o", "json")[0])
    if words:
        assert {one["stream"]: one.get("error") for one in found} == {
            "shop/hidden": "PermissionDenied",
            "shop/open": None,
        }
    else:
        assert {one["scope"]: one["streams"] for one in found} == {"private": None, "shop": 2}
