"""The machine of following without an adversary, which comes to its end."""

from sluice.engine.copy.report import Outcome
from unit.engine.follow.test_follow_machine import Following


def test_a_driver_without_an_adversary_follows() -> None:
    """Later bytes and scale events are in the target when the source is sealed."""
    machine = Following()
    machine.source([[20, 9], [30]], [], record=False, every=0.0, ready=1)
    first = machine.alive[0]
    for place in range(4):
        machine.write(place, [40, 8])
        for _ in range(20):
            machine.step(first)
        machine.scale(place, [11], merges=place % 2 == 1)
    machine.seal()
    machine.run(first)
    assert first.error is None
    assert first.result is Outcome.COPIED
    machine.teardown()
