from dataclasses import replace
from typing import Any

import pytest

from sluice.core.copy.journal import Journal
from sluice.core.copy.next_staging_step import staged
from sluice.core.copy.next_step import next_step
from sluice.core.copy.observed import Observed, SeenSource, SeenStaging, SeenTarget
from sluice.core.copy.steps import (
    Bind,
    ConfigureTarget,
    DeleteJournal,
    Done,
    MakeTarget,
    Publish,
    Seal,
    Shape,
    Stage,
    Step,
    Stitch,
    Sweep,
    Transfer,
    Verify,
)
from sluice.core.values.identity import ABORTED, owner_tags
from sluice.core.values.model import KeyRange, Segment, SegmentInfo
from sluice.errors import SluiceError, SourceReplaced, SourceTruncated
from support.engine.plans import COPY, segment_plan, stream_plan

CHUNK = 8 << 20
LENGTH = 3 * CHUNK
PLAN = stream_plan(segment_plan(LENGTH, cuts=(2 * CHUNK,)), segment_plan(5, start=5, number=1))
FIRST, SECOND = PLAN.segments[0].parts
HEAD = (
    Segment(id=10, keys=KeyRange(low=0, high=0.5)),
    Segment(id=11, keys=KeyRange(low=0.5, high=1)),
)
OURS = SeenTarget(owner_tags(COPY), (10, 11), HEAD)
WHOLE = SeenTarget((*owner_tags(COPY), "sluice.dev/complete=12"), (10, 11), HEAD)
SEALED = replace(WHOLE, sealed=True)
FOREIGN = SeenTarget(("team=b",), (10, 11), HEAD)
UNEVEN = tuple(
    Segment(id=number, keys=KeyRange(low=low, high=high))
    for number, low, high in [(11, 0.5, 0.75), (12, 0.75, 1)]
)
JOURNAL = Journal(PLAN)
BOUND = Journal(PLAN, (10, 11))
DIGESTS = {0: ((0, b"0" * 32 + b"1" * 32 + b"2" * 32),)}


def info(length: int, start: int = 0) -> SegmentInfo:
    """Return a segment of this length."""
    return SegmentInfo(start=start, length=length, sealed=False)


def segment(*parts: int | None, **other: Any) -> SeenStaging:
    """Return a segment of the plan with staging segments of these lengths and an empty target."""
    bare = SeenStaging(
        parts=tuple(None if length is None else info(length) for length in parts),
        stitched=None,
        verified=None,
        published=None,
        target=info(0),
    )
    return replace(bare, **other)


EMPTY = segment()
STITCHED = segment(LENGTH, None, stitched=LENGTH)
VERIFIED = replace(STITCHED, verified=LENGTH)
PUBLISHED = segment(None, None, published=LENGTH, target=info(LENGTH))
EMPTY_PUBLISHED = segment(published=0)
SOURCES = (SeenSource(info(LENGTH + 9), 1_000), SeenSource(info(5, start=5), 1_001))


def observed(first: SeenStaging, second: SeenStaging = EMPTY, **other: Any) -> Observed:
    """Return an observation of a copy whose target is bound."""
    seen = Observed(journal=BOUND, target=OURS, segments=(first, second), sources=SOURCES)
    return replace(seen, **other)


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        pytest.param(Observed(JOURNAL, None), MakeTarget(), id="no target: claim it"),
        pytest.param(Observed(JOURNAL, OURS), Bind((10, 11)), id="claimed: bind it"),
        pytest.param(
            Observed(JOURNAL, replace(OURS, head=(HEAD[0], *UNEVEN))),
            Shape((10, 11)),
            id="other keys than the source's head: shape it",
        ),
        pytest.param(
            Observed(JOURNAL, replace(OURS, segments=(20, 21, 22))),
            Bind((10, 11)),
            id="scaled by a driver whose journal is lost: bind it",
        ),
        pytest.param(
            observed(segment(None, None)), Stage(((0, FIRST), (0, SECOND))), id="bound: stage"
        ),
        pytest.param(observed(segment(7, None)), Stage(((0, SECOND),)), id="one part: stage it"),
        pytest.param(
            observed(segment(0, 3)),
            Transfer(((0, FIRST, 0), (0, SECOND, 2 * CHUNK + 3))),
            id="staged: transfer from where each part stands",
        ),
        pytest.param(
            observed(segment(2 * CHUNK, 3)),
            Transfer(((0, SECOND, 2 * CHUNK + 3),)),
            id="one part whole: transfer the other",
        ),
        pytest.param(
            observed(segment(2 * CHUNK, CHUNK)), Stitch(((0, SECOND),)), id="all parts: stitch"
        ),
        pytest.param(observed(STITCHED), Verify((0,)), id="stitched: verify"),
        pytest.param(observed(VERIFIED), Publish((0, 1)), id="verified: publish"),
        pytest.param(
            observed(VERIFIED, EMPTY_PUBLISHED), Publish((0,)), id="one published: publish the rest"
        ),
        pytest.param(
            observed(PUBLISHED), Publish((1,)), id="only the empty segment left: publish it"
        ),
        pytest.param(
            observed(PUBLISHED, EMPTY_PUBLISHED), ConfigureTarget(), id="published: configure"
        ),
        pytest.param(
            observed(segment(4, None), target=WHOLE), Sweep(((0, 0),)), id="leftovers: sweep"
        ),
        pytest.param(
            observed(PUBLISHED, target=WHOLE), DeleteJournal(), id="whole: forget the journal"
        ),
        pytest.param(
            observed(PUBLISHED, target=SEALED), DeleteJournal(), id="sealed by others: forget"
        ),
        pytest.param(Observed(None, WHOLE), Done("12"), id="whole, no journal: done"),
        pytest.param(
            Observed(JOURNAL, WHOLE), DeleteJournal(), id="whole, late driver's journal: forget"
        ),
    ],
)
def test_each_observation_has_its_next_step(seen: Observed, step: Step) -> None:
    """The stores' contents alone decide the step, for any driver and any history."""
    assert next_step(PLAN, seen) == step


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        pytest.param(
            observed(PUBLISHED, EMPTY_PUBLISHED), ConfigureTarget(), id="published: configure"
        ),
        pytest.param(observed(segment(4, None), target=WHOLE), Seal(), id="whole: seal it first"),
        pytest.param(observed(segment(4, None), target=SEALED), Sweep(((0, 0),)), id="sealed"),
        pytest.param(
            observed(PUBLISHED, target=SEALED), DeleteJournal(), id="sealed, swept: forget"
        ),
        pytest.param(Observed(None, SEALED), Done("12"), id="sealed, no journal: done"),
    ],
)
def test_a_target_that_is_to_be_sealed_is_sealed_before_it_is_forgotten(
    seen: Observed, step: Step
) -> None:
    """The journal is deleted only after the seal, so that another driver can seal the target."""
    assert next_step(PLAN.model_copy(update={"seal": True}), seen) == step


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        pytest.param(Observed(JOURNAL, FOREIGN), "TargetExists", id="foreign target"),
        pytest.param(Observed(None, FOREIGN), "TargetExists", id="foreign target, no journal"),
        pytest.param(
            observed(EMPTY, target=FOREIGN), "TargetReplaced", id="foreign stream in its place"
        ),
        pytest.param(observed(EMPTY, target=None), "TargetReplaced", id="target deleted"),
        pytest.param(
            observed(EMPTY, target=replace(OURS, segments=(12, 13))),
            "TargetReplaced",
            id="made again by this copy",
        ),
        pytest.param(Observed(None, None), "CopyAborted", id="no journal"),
        pytest.param(Observed(None, OURS), "CopyAborted", id="no journal, target claimed"),
        pytest.param(Observed(None, None, scopeless=True), "TargetLost", id="no scope either"),
        pytest.param(
            observed(replace(VERIFIED, published=ABORTED)), "CopyAborted", id="first segment shut"
        ),
        pytest.param(
            observed(PUBLISHED, replace(EMPTY, published=ABORTED)),
            "CopyAborted",
            id="last segment shut",
        ),
        pytest.param(
            observed(segment(0, None, target=info(3))), "TargetReplaced", id="foreign bytes"
        ),
        pytest.param(
            observed(VERIFIED, segment(target=info(3))),
            "TargetReplaced",
            id="foreign bytes in an empty segment",
        ),
        pytest.param(
            observed(segment(0, None, target=None)), "TargetReplaced", id="target segment gone"
        ),
        pytest.param(
            observed(segment(0, 0), sources=(None, None)), "SourceNotFound", id="source gone"
        ),
        pytest.param(
            observed(segment(0, 0), sources=(None, None), renewed=frozenset({0})),
            "SourceReplaced",
            id="source made again with other segments",
        ),
        pytest.param(
            observed(segment(0, 0), sources=(None, SOURCES[1])),
            "SourceTruncated",
            id="source truncated past a segment",
        ),
        pytest.param(
            observed(segment(0, 0), sources=(SeenSource(info(LENGTH), 7), SOURCES[1])),
            "SourceReplaced",
            id="source made again",
        ),
        pytest.param(
            observed(segment(None, None), sources=(SeenSource(info(LENGTH, 1), 1_000), None)),
            "SourceTruncated",
            id="needed bytes truncated",
        ),
        pytest.param(observed(segment(0, 0), sources=None), "StoreUnavailable", id="not observed"),
        pytest.param(
            observed(replace(PUBLISHED, published=LENGTH - 1), EMPTY_PUBLISHED),
            "IntegrityError",
            id="less was published",
        ),
    ],
)
def test_each_surprise_has_its_error(seen: Observed, reason: str) -> None:
    """An observation that contradicts the plan raises the error of its cause."""
    with pytest.raises(SluiceError) as caught:
        next_step(PLAN, seen)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("start", "refused"),
    [(0, False), (CHUNK, False), (CHUNK + 1, True), (LENGTH, True)],
    ids=["whole", "up to the needed chunk", "into the needed chunk", "beyond"],
)
def test_a_truncation_matters_only_if_it_took_needed_bytes(start: int, refused: bool) -> None:  # noqa: FBT001
    """A source may lose bytes that are staged and hashed.

    It may lose no bytes that are still needed.
    """
    seen = observed(
        segment(CHUNK + 5, 0),
        journal=replace(BOUND, digests=DIGESTS),
        sources=(SeenSource(info(LENGTH, start), 1_000), SOURCES[1]),
    )
    if refused:
        with pytest.raises(SourceTruncated) as caught:
            next_step(PLAN, seen)
        assert f"needs it from {CHUNK} on" in str(caught.value)
    else:
        step = Transfer(((0, FIRST, CHUNK + 5), (0, SECOND, 2 * CHUNK)))
        assert next_step(PLAN, seen) == step


@pytest.mark.parametrize("sources", [None, (None, None)], ids=["not observed", "deleted"])
def test_a_source_that_is_staged_and_hashed_is_not_missed(
    sources: tuple[None, None] | None,
) -> None:
    """Once all bytes are staged and all digests known, the copy no longer needs the source."""
    seen = observed(STITCHED, journal=replace(BOUND, digests=DIGESTS), sources=sources)
    assert next_step(PLAN, seen) == Verify((0,))


def test_a_source_that_was_made_again_is_refused_once_all_is_staged() -> None:
    """After the last look, the copy may have read the last bytes from the new stream."""
    for step in (STITCHED, segment(2 * CHUNK, CHUNK)):
        seen = observed(
            step,
            journal=replace(BOUND, digests=DIGESTS),
            sources=(SeenSource(info(LENGTH, 0), 1_001), SOURCES[1]),
        )
        with pytest.raises(SourceReplaced):
            next_step(PLAN, seen)


def test_an_unknown_digest_needs_the_source() -> None:
    """A staged chunk without a recorded digest must be read from the source again.

    A copy that does not verify needs no digest.
    """
    known = {0: ((0, b"0" * 32), (2, b"2" * 32))}
    seen = observed(
        STITCHED,
        journal=replace(BOUND, digests=known),
        sources=(SeenSource(info(LENGTH, CHUNK + 1), 1_000), SOURCES[1]),
    )
    with pytest.raises(SourceTruncated):
        next_step(PLAN, seen)
    unverified = PLAN.model_copy(update={"verify": False})
    assert next_step(unverified, seen) == Verify((0,))


def test_growth_of_the_source_does_not_matter() -> None:
    """Events that a source gets after the bounds do not change the step."""
    grown = (SeenSource(info(LENGTH * 9), 1_000), SOURCES[1])
    assert next_step(PLAN, observed(segment(0, CHUNK), sources=grown)) == Transfer(((0, FIRST, 0),))


def test_a_stream_without_bytes_is_published_at_once() -> None:
    """Empty segments are neither staged nor verified."""
    plan = stream_plan(segment_plan(0), segment_plan(0, number=1))
    seen = Observed(Journal(plan, (10, 11)), OURS, segments=(segment(), segment()))
    assert next_step(plan, seen) == Publish((0, 1))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (segment(None, None), 0),
        (segment(7, None), 7),
        (segment(7, 9), 16),
        (STITCHED, LENGTH),
        (PUBLISHED, LENGTH),
        (replace(EMPTY, parts=(None, None), published=ABORTED), 0),
    ],
    ids=["nothing", "one part", "two parts", "stitched", "published", "shut"],
)
def test_staged_bytes_are_counted_once(state: SeenStaging, expected: int) -> None:
    """Progress counts a byte once: in a part, in the stitched segment or in the target."""
    assert staged(PLAN.segments[0], state) == expected
