"""The known effects of a driver's own steps, compared with the results of a look."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sluice.core.copy import next_append_step, next_step
from sluice.core.copy.steps import Done, Transfer, Verify
from sluice.core.values import identity
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from support.engine.appends import APPEND, put_target
from support.engine.sources import REQUEST, planned, put_scaled_source, split
from support.model import ModelStore, World

if TYPE_CHECKING:
    from sluice.core.copy.observed import Observed
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.copy.steps import Step

ALL = "MakeTarget Stage Transfer Stitch Verify ConfigureTarget DeleteJournal Done"
SCALED = "MakeTarget Stage Transfer Stitch Verify ConfigureTarget"
EMPTY = "MakeTarget ConfigureTarget DeleteJournal Done"
APPENDED = "Stage Transfer Stitch Verify DeleteJournal Done"
CASES = {
    "a new target": (REQUEST, [[9, 30], [20]], [], ALL),
    "of a scaled source": (REQUEST, [[9, 30], [20]], [("split", 0)], SCALED),
    "of a truncated source": (REQUEST, [[9, 30], [20]], [("split", 0), ("truncate", 0)], ALL),
    "of an empty source": (REQUEST, [[], []], [], EMPTY),
    "that is sealed": (
        REQUEST.model_copy(update={"seal": True}),
        [[9, 30], [20]],
        [],
        "MakeTarget Stage Transfer Stitch Verify ConfigureTarget Done",
    ),
    "of a move": (
        REQUEST.model_copy(update={"move": True}),
        [[9, 30], [20]],
        [],
        "MakeTarget Stage Transfer Verify ConfigureTarget Done",
    ),
    "that is not verified": (
        REQUEST.model_copy(update={"verify": False}),
        [[9, 30], [20]],
        [],
        "MakeTarget Stage Transfer Verify ConfigureTarget DeleteJournal Done",
    ),
    "an append": (APPEND, [[9, 30], [20]], [], APPENDED),
    "of a scaled source to a stream": (APPEND, [[9, 30], [20]], [("split", 0)], APPENDED),
}


class Compared(StreamCopyWork):
    """A driver that also makes the looks that it could leave out, and compares.

    Attributes:
        known: the steps that it decided without a look.
    """

    known: list[str]

    def _known_step(self) -> Step | None:
        step = super()._known_step()
        if step is not None:
            known, seen = self._seen, self._ending.observe()
            assert known is not None
            append = self.plan.append
            assert _gist(seen, append=append) == _gist(known, append=append)
            decide = next_append_step if append else next_step
            assert decide.next_step(self.plan, seen) == step
            self.known.append(type(step).__name__)
        return step


def _gist(seen: Observed, *, append: bool) -> Observed:
    """Return an observation without the parts on which no decision depends."""
    if append:
        seen = replace(seen, segments=tuple(replace(one, target=None) for one in seen.segments))
    if seen.target is None:
        return seen
    told = [tag for tag in seen.target.tags if tag.startswith(identity.TAG_COMPLETE)]
    return replace(seen, target=replace(seen.target, tags=tuple(told)))


@pytest.mark.parametrize(("request_", "shapes", "moves", "known"), CASES.values(), ids=CASES)
def test_a_known_effect_is_the_one_that_a_look_shows(
    request_: CopyRequest, shapes: list[list[int]], moves: list[tuple[str, int]], known: str
) -> None:
    """This holds for each omitted look of a copy that no other client disturbs."""
    world = World()
    put_scaled_source(world, shapes, moves)
    if request_.append:
        put_target(world, 2)
    store = ModelStore(world)
    copy = Compared(split(planned(store, request_)), 0, [store], store)
    copy.known = []
    copy.begin(permit=None)
    while not isinstance(step := copy.look(), Done):
        if isinstance(step, Transfer | Verify):
            work = copy.slices(step, Limits(), 1)
            copy.absorb(step, InlineExecutor([store], store).run(work) if work else [])
        else:
            copy.perform(step)
    assert " ".join(copy.known) == known
