from hypothesis import given
from hypothesis import strategies as st

from sluice.stores.pravega.segments.window import InFlightWindow

MIB = 1 << 20


def test_bytes_in_flight_are_bounded() -> None:
    """There is room until the limit is reached, and again once bytes are confirmed."""
    window = InFlightWindow(3 * MIB)
    for number in range(3):
        assert window.has_room(MIB)
        window.sent(number, MIB, now=0)
    assert not window.has_room(1)
    window.acknowledged(0, now=0.1)
    assert window.has_room(MIB)
    assert window.in_flight == 2 * MIB


def test_a_block_larger_than_the_window_goes_alone() -> None:
    """A block above the limit is sent when no other block is in flight."""
    window = InFlightWindow(10)
    assert window.has_room(1000)
    window.sent(1, 1000, now=0)
    assert not window.has_room(1)


def test_one_acknowledgement_confirms_all_blocks_before_it() -> None:
    """The store confirms only the last number, which includes all earlier ones."""
    window = InFlightWindow(MIB)
    for number in range(10, 15):
        window.sent(number, 100, now=0)
    window.acknowledged(13, now=0)
    assert window.in_flight == 100


def test_a_late_acknowledgement_halves_the_window_once() -> None:
    """Blocks that were sent before a halving do not halve it again, however late they are."""
    window = InFlightWindow(8 * MIB, stall=1.0)
    for number in range(4):
        window.sent(number, MIB, now=0)
    for number in range(4):
        window.acknowledged(number, now=5)
    assert window.limit == 4 * MIB


def test_stalls_narrow_the_window_down_to_one_block_at_a_time() -> None:
    """While the store stays slow, no more than one block is in flight."""
    window = InFlightWindow(8 * MIB, stall=1.0)
    for number in range(40):
        window.sent(number, MIB, now=number * 10)
        window.acknowledged(number, now=number * 10 + 5)
    assert window.limit == 1
    window.sent(100, MIB, now=1000)
    assert not window.has_room(1)


def test_a_store_that_keeps_up_again_gets_the_window_back_slowly() -> None:
    """The window grows by an eighth of the bytes confirmed in time, up to its first limit."""
    window = InFlightWindow(4 * MIB, stall=1.0)
    window.sent(0, MIB, now=0)
    window.acknowledged(0, now=2)
    assert window.limit == 2 * MIB
    window.sent(1, MIB, now=3)
    window.acknowledged(1, now=3.1)
    assert window.limit == 2 * MIB + MIB // 8
    for number in range(2, 100):
        window.sent(number, MIB, now=4)
        window.acknowledged(number, now=4.1)
    assert window.limit == 4 * MIB


@given(
    st.lists(st.tuples(st.integers(1, 5 * MIB), st.floats(0, 3)), max_size=100),
    st.integers(1, 8 * MIB),
)
def test_the_window_never_leaves_its_bounds(blocks: list[tuple[int, float]], limit: int) -> None:
    """The limit stays between 1 and the first limit, and in the end no byte is in flight."""
    window, now = InFlightWindow(limit), 0.0
    for number, (size, delay) in enumerate(blocks):
        if not window.has_room(size):
            window.acknowledged(number - 1, now)
        assert window.has_room(size)
        window.sent(number, size, now)
        now += delay
        assert 1 <= window.limit <= limit
    window.acknowledged(len(blocks), now)
    assert window.in_flight == 0
