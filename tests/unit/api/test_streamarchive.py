"""Archives in resources: StreamArchives, stores of archives, and copies from archives."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from sluice.api.fields.common import StoreRef
from sluice.api.kinds.streamarchive import StreamArchive
from sluice.api.kinds.streamcopy import StreamCopy
from sluice.api.kinds.streamstore import StreamStore
from sluice.api.load import invalid, load
from sluice.api.registry import KINDS
from sluice.core.values.archive_layout import checked_path
from sluice.core.workloads.request import store_address
from sluice.errors import InvalidSpec
from support.cases.resources import ARCHIVE, BUCKET, COPY, VOLUME, changed, label, text
from support.cases.wrong_archives import ARCHIVES, FROM_ARCHIVE, GOOD, GOOD_ARCHIVES, WRONG, made

MODELS = {kind.name: kind.model for kind in KINDS}


@pytest.mark.parametrize(("like", "path", "values", "said"), WRONG, ids=label)
def test_a_wrong_resource_is_refused(
    like: dict[str, Any], path: str, values: dict[str, object], said: str
) -> None:
    """The error contains the path of the wrong field, or its name if two fields conflict."""
    assert said
    kind = like["kind"]
    with pytest.raises(ValidationError) as caught:
        MODELS[kind].model_validate(made(like, values))
    error = str(invalid(caught.value, kind))
    name = path.rpartition(".")[2]
    assert path in error or name in error
    assert kind in error


@pytest.mark.parametrize("good", GOOD, ids=label)
def test_a_good_resource_is_read(good: dict[str, Any]) -> None:
    """Every valid combination of fields is accepted."""
    assert MODELS[good["kind"]].model_validate(good)


def test_a_path_has_one_verdict() -> None:
    """The field `path` and the layout of archives accept and refuse the same paths."""
    for _, values, _ in ARCHIVES:
        wrong = values.get("spec.destination.path")
        if isinstance(wrong, str):
            with pytest.raises(InvalidSpec):
                checked_path(wrong, field="path")
    for values in GOOD_ARCHIVES:
        path = made(ARCHIVE, values)["spec"]["destination"]["path"]
        assert checked_path(path, field="path") == path


def test_what_is_left_out_is_careful() -> None:
    """By default an archive keeps every run and fails on truncation.

    Its objects stay when the resource is deleted.
    """
    spec = StreamArchive.model_validate(ARCHIVE).spec
    assert (spec.format, spec.on_delete, spec.on_truncation) == ("Segments", "Retain", "Fail")
    assert (spec.schedule, spec.retention, spec.suspend) == (None, None, False)
    assert spec.most_events == 1_000_000


def test_how_long_runs_are_kept_is_read() -> None:
    """`keepWithin` takes hours or days, and becomes seconds."""
    for written, seconds in (("12h", 12 * 3600), ("30d", 30 * 24 * 3600)):
        body = changed(ARCHIVE, "spec.retention", {"keepWithin": written})
        retention = StreamArchive.model_validate(body).spec.retention
        assert retention is not None
        assert retention.seconds == seconds
    only_count = StreamArchive.model_validate(changed(ARCHIVE, "spec.retention", {"keepLast": 2}))
    assert only_count.spec.retention is not None
    assert only_count.spec.retention.seconds is None


def test_when_and_how_long_make_no_other_archive() -> None:
    """Schedule, retention, onDelete and suspension are no part of the identity; the format is."""
    plain = StreamArchive.model_validate(ARCHIVE).spec.identity()
    for path, value in (
        ("schedule", {"cron": "@daily"}),
        ("retention", {"keepLast": 1}),
        ("onDelete", "Delete"),
        ("suspend", True),
    ):
        body = changed(ARCHIVE, f"spec.{path}", value)
        assert StreamArchive.model_validate(body).spec.identity() == plain
    other = changed(ARCHIVE, "spec.format", "Parquet")
    assert StreamArchive.model_validate(other).spec.identity() != plain


def test_archives_are_read_from_files() -> None:
    """Archives keep the file's order, beside stores and copies.

    A second one of a name is refused.
    """
    resources = load(text(BUCKET, ARCHIVE, changed(ARCHIVE, "metadata.name", "b"), COPY))
    assert [one.metadata.name for one in resources.archives] == ["orders", "b"]
    store = resources.store(
        resources.archives[0], StoreRef(name="archives"), field="spec.destination.storeRef.name"
    )
    assert store.spec.holds_archives
    with pytest.raises(InvalidSpec, match="two StreamArchives 'orders'"):
        load(text(ARCHIVE, ARCHIVE))


@pytest.mark.parametrize(
    "written", ["2026-05-04T12:00:00Z", "2026-05-04T14:00:00+02:00", "2026-05-04T12:00:00.000Z"]
)
def test_a_time_is_the_same_however_it_is_written(written: str) -> None:
    """Quotes, zones and fractions do not change the time, so a copy has one identity."""
    quoted = changed(
        COPY, "spec.source", {"archive": {**FROM_ARCHIVE["archive"], "until": written}}
    )
    plain = text(quoted).replace(f"'{written}'", written)
    specs = [load(one).copies[0].spec for one in (text(quoted), plain)]
    noon = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
    for spec in specs:
        assert spec.source is not None
        assert spec.source.archive is not None
        assert spec.source.archive.until == noon
    first = {"source": {"archive": {**FROM_ARCHIVE["archive"], "until": "2026-05-04T12:00:00Z"}}}
    assert {**specs[0].identity(), **first} == specs[1].identity()


def test_a_copy_from_an_archive_names_its_store_by_another_field() -> None:
    """The source gives the archive's store and the field that names it."""
    spec = StreamCopy.model_validate(changed(COPY, "spec.source", FROM_ARCHIVE)).spec
    assert spec.source is not None
    assert (spec.source.store, spec.source.store_field) == ("archives", "archive.storeRef.name")
    assert (spec.source.title, spec.source.holds_archives) == ("in/orders", True)
    assert spec.target.holds_archives is False


@pytest.mark.parametrize(
    ("like", "values", "uri", "more"),
    [
        (BUCKET, {}, "s3://archives", {"secret": "keys"}),
        (BUCKET, {"spec.s3.prefix": "a/b"}, "s3://archives/a/b", {}),
        (
            BUCKET,
            {"spec.s3.endpoint": "http://s3:9000", "spec.s3.region": "eu-west-1"},
            "s3://archives",
            {"endpoint": "http://s3:9000", "region": "eu-west-1"},
        ),
        (
            BUCKET,
            {"spec.s3.caBundleRef": {"name": "trust"}},
            "s3://archives",
            {"ca": "_trust/ca.crt"},
        ),
        (
            BUCKET,
            {"spec.s3.caBundleRef": {"name": "trust", "kind": "Secret", "key": "a"}},
            "s3://archives",
            {"ca": "trust/a"},
        ),
        (
            BUCKET,
            {"spec.s3.caBundleRef": {"name": "kube-root-ca.crt"}},
            "s3://archives",
            {"ca": "_kube-root-ca.crt/ca.crt"},
        ),
        (VOLUME, {}, "volume://archives", {"claim": "archives"}),
        (VOLUME, {"spec.volume.path": "a/b"}, "volume://archives/a/b", {"claim": "archives"}),
    ],
    ids=label,
)
def test_a_store_of_archives_has_an_address(
    like: dict[str, Any], values: dict[str, object], uri: str, more: dict[str, str]
) -> None:
    """The address has the store's URI, and the names of its Secret, its CA bundle or its volume.

    It has no secret values.
    """
    address = store_address(StreamStore.model_validate(made(like, values)))
    assert address.uri == uri
    for name, value in more.items():
        assert getattr(address, name) == value
