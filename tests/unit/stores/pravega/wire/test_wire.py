import random
import tracemalloc
from contextlib import suppress
from dataclasses import fields
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import ProtocolError
from sluice.stores.pravega.wire import messages, refusals
from sluice.stores.pravega.wire.refusals import decode
from sluice.stores.pravega.wire.wire import (
    MAX_DATA,
    MAX_PAYLOAD,
    MAX_READ,
    MAX_SHORT,
    Frame,
    FrameDecoder,
    FrameType,
    Message,
    decode_as,
    encode,
)

KINDS: list[type[Message]] = sorted(
    {
        kind
        for module in (messages, refusals)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Message) and hasattr(kind, "TYPE")
    },
    key=lambda kind: kind.TYPE,
)
LONG = st.integers(-(2**63), 2**63 - 1)
FIELDS: dict[str, st.SearchStrategy[object]] = {
    "q": LONG,
    "i": st.integers(-(2**31), 2**31 - 1),
    "b": st.integers(-128, 127),
    "?": st.booleans(),
    "s": st.text(max_size=50),
    "u": st.uuids(),
    "d": st.binary(max_size=200),
    "r": st.binary(max_size=80),
}
ANY_MESSAGE = st.sampled_from(KINDS).flatmap(
    lambda kind: st.builds(kind, *(FIELDS[letter] for letter in kind.LAYOUT.replace("|", "")))
)


def frames_in(data: bytes, chunks: random.Random | None = None) -> list[tuple[FrameType, bytes]]:
    """Return the frames of these bytes, fed as a socket would: in whole or in random chunks."""
    decoder, found, view = FrameDecoder(), [], memoryview(data)
    while view:
        room = decoder.room
        size = min(len(room), len(view), chunks.randint(1, 50) if chunks else len(view))
        room[:size] = view[:size]
        view = view[size:]
        frame = decoder.advance(size)
        if frame is not None:
            found.append((frame.type, bytes(frame.payload)))
    return found


def as_frame(message: Message) -> Frame:
    """Return the frame that a message is sent as."""
    ((kind, payload),) = frames_in(b"".join(encode(message)))
    return Frame(kind, memoryview(payload))


@given(ANY_MESSAGE)
def test_every_message_survives_encoding_and_decoding(message: Message) -> None:
    """An encoded message of any kind, with any fields, is decoded to an equal one."""
    assert decode_as(type(message), as_frame(message)) == message


def test_every_frame_type_is_one_message_of_ours() -> None:
    """Each frame type has exactly one class of messages."""
    assert sorted(kind.TYPE for kind in KINDS) == sorted(FrameType)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_layout_has_a_letter_for_each_field(kind: type[Message]) -> None:
    """The numbers of letters and fields are equal."""
    assert len(kind.LAYOUT.replace("|", "")) == len(fields(kind))  # type: ignore[arg-type]


@given(st.lists(ANY_MESSAGE, max_size=5), st.randoms(use_true_random=False))
def test_frames_are_found_however_the_bytes_arrive(
    sent: list[Message], chunks: random.Random
) -> None:
    """The decoder finds the same frames for any split of the bytes."""
    data = b"".join(b"".join(encode(message)) for message in sent)
    found = frames_in(data, chunks)
    assert [
        decode_as(type(message), Frame(kind, memoryview(payload)))
        for message, (kind, payload) in zip(sent, found, strict=True)
    ] == sent


@given(ANY_MESSAGE, st.data())
def test_a_message_cut_short_is_a_protocol_error_or_lacks_optional_fields(
    message: Message, data: st.DataObject
) -> None:
    """A payload that ends early raises ProtocolError, or its last fields have their defaults."""
    frame = as_frame(message)
    cut = data.draw(st.integers(0, len(frame.payload)))
    try:
        decoded = decode_as(type(message), Frame(frame.type, frame.payload[:cut]))
    except ProtocolError:
        return
    assert decoded == message or "|" in message.LAYOUT or message.LAYOUT.endswith("r")


@given(st.sampled_from(sorted(FrameType)), st.binary(max_size=300))
def test_any_payload_is_a_message_or_a_protocol_error(kind: FrameType, payload: bytes) -> None:
    """A hostile payload of any frame type raises no error but ProtocolError."""
    with suppress(ProtocolError):
        assert kind == decode(Frame(kind, memoryview(payload))).TYPE


@given(st.binary(max_size=500))
def test_any_bytes_are_frames_or_a_protocol_error(data: bytes) -> None:
    """A hostile stream of bytes raises no error but ProtocolError."""
    with suppress(ProtocolError):
        assert len(frames_in(data)) <= len(data) // 8


@pytest.mark.parametrize("length", [-1, -(2**31), MAX_PAYLOAD + 1, 2**31 - 1])
def test_a_length_that_no_frame_has_is_refused_before_its_bytes(length: int) -> None:
    """The header is enough to refuse a frame of negative or excessive length."""
    header = FrameType.SEGMENT_READ.to_bytes(4, "big") + length.to_bytes(4, "big", signed=True)
    with pytest.raises(ProtocolError, match="SEGMENT_READ frame of"):
        frames_in(header)


def test_an_unknown_frame_type_is_refused_before_its_bytes() -> None:
    """The decoder does not wait for the payload of an unknown frame."""
    with pytest.raises(ProtocolError, match="unknown type 4711"):
        frames_in((4711).to_bytes(4, "big") + (100).to_bytes(4, "big"))


def test_a_request_from_a_store_is_refused() -> None:
    """Messages that only clients send raise ProtocolError."""
    with pytest.raises(ProtocolError, match="SEAL_SEGMENT"):
        decode(as_frame(messages.SealSegment(1, "a/b/0.#epoch.0")))


@pytest.mark.parametrize("length", [-1, -(2**31), 10, 2**31 - 1])
def test_data_with_a_length_that_lies_are_refused(length: int) -> None:
    """A data field must fit into its frame, whatever its length says."""
    payload = b"\0\1x" + bytes(10) + length.to_bytes(4, "big", signed=True) + b"only 9 b."
    with pytest.raises(ProtocolError, match="do not fit"):
        decode(Frame(FrameType.SEGMENT_READ, memoryview(payload)))


def test_a_string_with_a_length_that_lies_is_refused() -> None:
    """A string field must fit into its frame, whatever its length says."""
    payload = bytes(8) + b"\xff\xffshort"
    with pytest.raises(ProtocolError, match="65535 bytes that do not fit"):
        decode(Frame(FrameType.SEGMENT_CREATED, memoryview(payload)))


def test_hostile_frames_do_not_make_memory_grow() -> None:
    """The decoder holds one frame of the allowed size, however many arrive."""
    biggest = FrameType.SEGMENT_READ.to_bytes(4, "big") + MAX_READ.to_bytes(4, "big")
    decoder = FrameDecoder()
    tracemalloc.start()
    try:
        for _ in range(5):
            decoder.room[:] = biggest
            assert decoder.advance(len(biggest)) is None
            assert decoder.advance(MAX_READ) is not None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * MAX_READ


@pytest.mark.parametrize("kind", [FrameType.HELLO, FrameType.ERROR_MESSAGE, FrameType.KEEP_ALIVE])
def test_frames_without_data_are_short(kind: FrameType) -> None:
    """A connection keeps the memory of its longest frame, and there are many connections."""
    decoder = FrameDecoder()
    longer = kind.to_bytes(4, "big", signed=True) + (MAX_SHORT + 1).to_bytes(4, "big")
    decoder.room[:] = longer
    with pytest.raises(ProtocolError, match=f"{kind.name} frame of {MAX_SHORT + 1} bytes"):
        decoder.advance(len(longer))


def test_data_are_sent_from_where_they_are() -> None:
    """Encoding an append does not copy its data."""
    data = bytearray(b"some data")
    _, piece, _ = encode(messages.AppendBlockEnd(UUID(int=1), 0, data, 1, 1, 1))
    data[:4] = b"SOME"
    assert bytes(piece) == b"SOME data"


def test_the_largest_block_fits_into_a_frame() -> None:
    """MAX_DATA bytes fit into both kinds of append, and a larger payload raises ProtocolError."""
    data = bytes(MAX_DATA)
    writer = UUID(int=1)
    for message in (
        messages.AppendBlockEnd(writer, 0, data, 1, 1, 1),
        messages.ConditionalBlockEnd(writer, 1, 0, data, 1),
    ):
        assert sum(map(len, encode(message))) <= MAX_PAYLOAD + 8
    with pytest.raises(ProtocolError, match="larger than"):
        encode(messages.AppendBlockEnd(writer, 0, bytes(MAX_PAYLOAD), 1, 1, 1))


def test_a_string_that_the_protocol_cannot_hold_is_refused() -> None:
    """A name of more than 65,535 bytes raises ProtocolError before it is sent."""
    with pytest.raises(ProtocolError, match="too long"):
        encode(messages.SealSegment(1, "x" * 65536))
