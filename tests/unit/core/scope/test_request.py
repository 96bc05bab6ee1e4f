from typing import Any

import pytest

from sluice.api.kinds.scopecopy import ScopeCopy
from sluice.core.archive.manifest import Maker
from sluice.core.archive.names import Format
from sluice.core.copy.planner import SourceRequest
from sluice.core.scope.request import ArchiveTo, Rename, RestoreFrom, ScopeRequest, Selector
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.core.workloads.request import scope_request


def scope_copy(**spec: Any) -> ScopeCopy:
    """Return a ScopeCopy with these fields beside source and target."""
    return ScopeCopy.model_validate(
        {
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": "ScopeCopy",
            "metadata": {"name": "all", "namespace": "n"},
            "spec": {
                "source": {"storeRef": {"name": "here"}, "scope": "in"},
                "target": {"storeRef": {"name": "there"}, "scope": "out"},
                **spec,
            },
        }
    )


def test_a_scope_copy_asks_for_all_that_users_made() -> None:
    """Without optional fields, the request has the defaults."""
    copy = scope_copy()
    assert scope_request(copy, cluster="c") == ScopeRequest(
        scope_id=identity.copy_id(
            cluster="c", namespace="n", name="all", identity=copy.spec.identity()
        ),
        source="in",
        target="out",
    )


def test_a_scope_copy_asks_for_what_its_spec_says() -> None:
    """The request has each field that shapes a plan."""
    request = scope_request(
        scope_copy(
            target={
                "storeRef": {"name": "there"},
                "scope": "out",
                "scopePolicy": "CreateIfAbsent",
            },
            streams={
                "include": [{"type": "Prefix", "value": "a"}],
                "exclude": [{"type": "Tag", "value": "x=y"}],
                "includeEphemeral": True,
            },
            rename=[{"fromPrefix": "a-", "toPrefix": "b-"}],
            onExists="Skip",
            onTruncation="Record",
            sourceOnComplete="Delete",
        ),
        cluster="c",
        part_bytes=1 << 30,
        tasks=4,
        verify=False,
    )
    assert request.make_scope
    assert request.include == (Selector(type="Prefix", value="a"),)
    assert request.exclude == (Selector(type="Tag", value="x=y"),)
    assert request.ephemeral
    assert request.rename == (Rename(from_prefix="a-", to_prefix="b-"),)
    assert (request.on_exists, request.on_truncation) == ("Skip", "Record")
    assert (request.move, request.verify) == (True, False)
    assert (request.part_bytes, request.tasks) == (1 << 30, 4)


def test_streams_are_asked_for_from_archives() -> None:
    """The request has the latest time of a run, in milliseconds.

    Planning finds the run of each stream.
    """
    archive = {"storeRef": {"name": "here"}, "path": "a/b", "until": "2026-05-04T12:00:00.5Z"}
    request = scope_request(scope_copy(source={"archive": archive}), cluster="c")
    assert (request.source, request.target, request.archive) == ("a/b", "out", None)
    assert request.restore == RestoreFrom(until=1_777_896_000_500)
    del archive["until"]
    request = scope_request(scope_copy(source={"archive": archive}), cluster="c")
    assert request.restore == RestoreFrom()


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, ArchiveTo()),
        ({"format": "Parquet"}, ArchiveTo(format=Format.PARQUET)),
        (
            {"format": "EventObjects", "maxEvents": 5},
            ArchiveTo(format=Format.EVENT_OBJECTS, max_events=5),
        ),
    ],
)
def test_streams_are_asked_for_as_archives(fields: dict[str, Any], wanted: ArchiveTo) -> None:
    """The request has folder, format and maker of the archives, and makes no scope."""
    archive = {"storeRef": {"name": "there"}, "path": "a/b"} | fields
    copy = scope_copy(target={"archive": archive, "scopePolicy": "MustExist"})
    request = scope_request(copy, cluster="c")
    assert (request.source, request.target, request.restore) == ("in", "a/b", None)
    maker = Maker(id=request.scope_id, name="ScopeCopy n/all")
    assert request.archive == wanted.model_copy(update={"maker": maker})
    assert not request.make_scope


@pytest.mark.parametrize("on_exists", ["Fail", "Skip", "Append"])
def test_each_stream_is_asked_for_as_a_copy_of_its_own(on_exists: str) -> None:
    """The stream's copy id follows from the scope copy's id and the stream's name."""
    request = ScopeRequest.model_validate(
        {"scope_id": "5c" * 16, "source": "in", "target": "out", "on_exists": on_exists}
    )
    one = request.of("a", "b")
    assert one.copy_id == identity.stream_copy_id("5c" * 16, "a")
    assert one.sources == (SourceRequest(stream=StreamName(scope="in", stream="a")),)
    assert one.target == StreamName(scope="out", stream="b")
    assert one.append == (on_exists == "Append")
