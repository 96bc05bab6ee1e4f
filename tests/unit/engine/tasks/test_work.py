from itertools import chain, repeat

import pytest

from sluice.core.values.model import StreamName
from sluice.engine.copy.report import Outcome
from sluice.errors import StoreUnavailable
from support.engine.plans import TARGET
from support.engine.sources import Heard, ManualClock, copy_all, planned, put_source
from support.model import Fate, ModelStore, World


@pytest.fixture
def world() -> World:
    """Return a world with a source."""
    made = World()
    put_source(made, [40, 40], [9])
    return made


class Deaf(ModelStore):
    """A store that accepts the first calls to seal a stream, and does nothing.

    Args:
        world: the world that it shows.
        calls: the fates of these calls: the request is lost, or is answered without effect.
    """

    def __init__(self, world: World, *calls: Fate) -> None:
        super().__init__(world)
        self.calls = iter(calls)
        self.asked = 0

    def seal_stream(self, name: StreamName) -> None:
        """See Store."""
        self.asked += 1
        match next(self.calls, None):
            case None:
                super().seal_stream(name)
            case Fate.REQUEST_LOST:
                raise StoreUnavailable("the request was lost")


def sealing(world: World, *calls: Fate) -> tuple[Outcome, Deaf, Heard, ManualClock]:
    """Run a copy that seals its target last; the first calls to seal have these fates."""
    store, heard, clock = Deaf(world, *calls), Heard(), ManualClock()
    plan = planned(ModelStore(world)).model_copy(update={"seal": True})
    (report,) = copy_all(
        ModelStore(world), plan, target=store, listener=heard, clock=clock, patience=60.0
    )
    return report.outcome, store, heard, clock


def test_a_step_that_errors_kept_from_being_done_is_tried_on(world: World) -> None:
    """The driver tries again after any number of errors, since the store may come back."""
    outcome, store, heard, _ = sealing(world, *[Fate.REQUEST_LOST] * 7)
    assert outcome is Outcome.COPIED
    assert (store.asked, len(heard.retries)) == (8, 7)
    assert world.streams[TARGET].sealed


def test_a_step_that_shows_no_effect_is_done_again_later(world: World) -> None:
    """It is done again three times at once, then after growing waits, as after errors."""
    outcome, store, heard, _ = sealing(world, *[Fate.DONE] * 7)
    assert outcome is Outcome.COPIED
    assert store.asked == 8
    assert [delay for _, delay in heard.retries] == [0.2, 0.4, 0.8, 1.6]


@pytest.mark.parametrize(
    "calls", [[Fate.DONE], [Fate.REQUEST_LOST], [Fate.DONE, Fate.REQUEST_LOST]]
)
def test_a_step_without_effect_ends_the_patience(world: World, calls: list[Fate]) -> None:
    """Errors in between make no difference, since none of them counts as progress."""
    forever = chain.from_iterable(repeat(calls))
    outcome, _, _, clock = sealing(world, *(next(forever) for _ in range(200)))
    assert outcome is Outcome.FAILED
    assert 60 < clock.now < 90
    assert not world.streams[TARGET].sealed
