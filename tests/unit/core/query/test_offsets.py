"""Spark's file with the offsets of a planned batch."""

import pytest

from sluice.core.query.offsets import PlannedOffsets, parse_offsets
from sluice.errors import CheckpointDiverged


def test_watermark_and_ends_are_read() -> None:
    """The watermark is in milliseconds, and each end is the text that its source wrote."""
    found = parse_offsets('v1\n{"batchWatermarkMs": -5, "conf": {}}\n{"a": 1}\n-\n')
    assert found == PlannedOffsets(-5, ['{"a": 1}', "-"])


@pytest.mark.parametrize(
    "about",
    [
        "",
        "{",
        "[]",
        "7",
        "{}",
        "[" * 100_000,
        *(
            f'{{"batchWatermarkMs": {mark}}}'
            for mark in ("1e999", "NaN", "1.5", "true", "null", '"7"', "[7]")
        ),
    ],
    ids=lambda about: about[:40],
)
def test_what_spark_cannot_have_written_is_refused(about: str) -> None:
    """Other metadata raises CheckpointDiverged: any client of the volume may have written it."""
    with pytest.raises(CheckpointDiverged, match="not the offsets of a batch"):
        parse_offsets(f"v1\n{about}\n{{}}\n")


def test_a_file_without_metadata_is_refused() -> None:
    """An interrupted write leaves such a file."""
    with pytest.raises(CheckpointDiverged):
        parse_offsets("v1")
