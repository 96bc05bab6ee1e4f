"""Read and write StreamCuts as text, in the form of Pravega's clients.

The plain form is `0:scope/stream:numbers:epochs:offsets`. The zero is the form's version, the last
three are lists with commas. Clients write this compressed by gzip and in base 64. Both forms are
read.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import zlib
from typing import TYPE_CHECKING, Final

from sluice.core.values.model import StreamName
from sluice.errors import InvalidSpec
from sluice.stores.pravega import names

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN: Final = re.compile(
    r"0:(?P<scope>[^/:]+)/(?P<stream>[^/:]+):(?P<numbers>[\d,]+):(?P<epochs>[\d,]+):(?P<offsets>[\d,]+)"
)
_LONGEST: Final = 1 << 20
"""Bytes of the longest plain text that is unpacked: a short compressed text may be very long."""


def read(text: str) -> tuple[StreamName, dict[int, int]]:
    """Return a cut's stream and its offsets by segment id. InvalidSpec if the text is no cut."""
    match = _PLAIN.fullmatch(text.strip()) or _PLAIN.fullmatch(_unpacked(text.strip()))
    remedy = "Give the text that StreamCut.asText of a client gives."
    if match is None:
        raise InvalidSpec("this text is no StreamCut", remedy=remedy)
    try:
        lists = [
            [int(item) for item in match[part].split(",")]
            for part in ("numbers", "epochs", "offsets")
        ]
        offsets = {
            names.segment_id(epoch, number): offset
            for number, epoch, offset in zip(*lists, strict=True)
        }
    except ValueError:
        raise InvalidSpec("this text is no StreamCut: its lists differ", remedy=remedy) from None
    return StreamName(scope=match["scope"], stream=match["stream"]), offsets


def write(stream: StreamName, cut: Mapping[int, int]) -> str:
    """Return a cut as compressed text, which clients can read."""
    ids = sorted(cut)
    lists = (
        map(names.number_of, ids),
        map(names.epoch_of, ids),
        (cut[segment] for segment in ids),
    )
    text = ":".join(["0", str(stream), *(",".join(map(str, values)) for values in lists)])
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _unpacked(text: str) -> str:
    """Return the plain text in a compressed one; an empty text if it cannot be unpacked."""
    try:
        packed = base64.b64decode(text, validate=True)
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        plain = inflater.decompress(packed, _LONGEST)
        return plain.decode() if inflater.eof else ""
    except (binascii.Error, zlib.error, ValueError):
        return ""
