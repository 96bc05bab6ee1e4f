"""StreamCuts as the official client writes them."""

from __future__ import annotations

import base64
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.values.model import StreamName
from sluice.errors import InvalidSpec
from sluice.stores.pravega import names
from sluice.stores.pravega.groups import cuts

CLIENTS = "H4sIAAAAAAAA/zOwSi4tKdZPtDLWMdIx1DGxMtQxAEJDK0MDCwMdE2MjINvUEEgaAAAcQG3mKgAAAA=="
"""What StreamCut.asText of version 0.13.0 gave for a stream that was scaled once."""

CUT = {names.segment_id(1, 3): 1080, 2: 4320, 1: 15_120, names.segment_id(1, 4): 0}
NAME = StreamName(scope="cuts", stream="a")

cut_dicts = st.dictionaries(
    st.builds(names.segment_id, st.integers(0, 1 << 20), st.integers(0, 1 << 31)),
    st.integers(0, 1 << 62),
    min_size=1,
    max_size=20,
)


def test_a_clients_text_is_read() -> None:
    """The text may be compressed or plain, with white space around it."""
    assert cuts.read(CLIENTS) == (NAME, CUT)
    plain = gzip.decompress(base64.b64decode(CLIENTS)).decode()
    assert cuts.read(f"  {plain}\n") == (NAME, CUT)


@given(cut_dicts)
def test_what_is_written_is_read(cut: dict[int, int]) -> None:
    """A text that Sluice wrote is read as the same stream and cut."""
    assert cuts.read(cuts.write(NAME, cut)) == (NAME, cut)


def _packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode())).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "!!!!",
        CLIENTS[:-8],
        _packed("0:cuts/a:1,2:0,0:5"),
        _packed("1:cuts/a:1:0:5"),
        _packed("0:cuts:1:0:5"),
        _packed("0:cuts/a:1,,2:0,0,0:5,5,5"),
        base64.b64encode(b"\xff\xfe").decode(),
        _packed("0:cuts/a:" + "1," * (1 << 20)),
    ],
    ids=range(10),
)
def test_other_text_is_refused(text: str) -> None:
    """InvalidSpec has a remedy, which names the client's method for such a text."""
    with pytest.raises(InvalidSpec) as caught:
        cuts.read(text)
    assert "StreamCut.asText" in str(caught.value.remedy)
