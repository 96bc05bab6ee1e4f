"""ScopeCopies on a real API server, which accepts, refuses, stores and shows them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from sluice.api.load import load
from sluice.api.registry import KINDS
from sluice.api.schema.schema import structural
from sluice.api.status.common import Condition, ProgressStatus
from sluice.api.status.follow_status import ScopeFollowStatus
from sluice.api.status.scope_status import ScopeCopyStatus, StreamCounts
from sluice.core.values.text import rate, size
from sluice.errors import InvalidSpec
from support.cases.largest import largest
from support.cases.resources import REMOVED, SCOPE, changed, label, text
from support.cases.wrong_scopes import (
    APPEND,
    ARCHIVED,
    BROKEN,
    CHANGEABLE,
    CHANGED,
    GOOD,
    HOURLY,
    UNKNOWN,
    WRONG,
    scope_copy,
)
from support.search import few

if TYPE_CHECKING:
    from support.kube.apply import Applier

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("values", GOOD, ids=label)
def test_a_good_one_is_taken(applier: Applier, values: dict[str, object]) -> None:
    """The API server accepts what the model accepts."""
    assert not applier.refusal_of_new(scope_copy(values))


@pytest.mark.parametrize(("path", "values", "said"), [*WRONG, *UNKNOWN], ids=label)
def test_a_wrong_one_is_refused(
    applier: Applier, path: str, values: dict[str, object], said: str
) -> None:
    """The API server names the field and a remedy. The model refuses the copy as well."""
    wrong = scope_copy(values)
    refusal = applier.refusal_of_new(wrong)
    assert path in refusal
    assert said in refusal
    with pytest.raises(InvalidSpec) as caught:
        load(text(wrong))
    assert path in str(caught.value)
    assert said in str(caught.value) or (path, values, said) not in BROKEN


@pytest.mark.parametrize(("path", "values", "said"), few(CHANGED, 4), ids=label)
def test_a_copy_stays_the_same(
    applier: Applier, path: str, values: dict[str, object], said: str
) -> None:
    """Source and target of a ScopeCopy cannot change. The refusal has a remedy."""
    applier.apply(SCOPE)
    refusal = applier.refusal(scope_copy(values))
    assert f"{path}: Forbidden: {said}" in refusal
    assert "make another copy, under another name" in refusal


def test_a_schedule_can_be_changed_but_neither_added_nor_removed(applier: Applier) -> None:
    """A copy keeps its schedule, or has none, for good. Retention may change at any time."""
    scheduled = changed(scope_copy(ARCHIVED | APPEND | HOURLY), "metadata.name", "nightly")
    once = changed(scope_copy(ARCHIVED | APPEND), "metadata.name", "once")
    applier.apply(scheduled)
    applier.apply(once)
    applier.apply(changed(scheduled, "spec.schedule.cron", "0 3 * * *"))
    applier.apply(changed(scheduled, "spec.retention", {"keepLast": 3}))
    applier.apply(changed(scheduled, "spec.schedule.startingDeadlineSeconds", 60))
    for other in (
        changed(scheduled, "spec.schedule", REMOVED),
        changed(once, "spec.schedule", {"cron": "0 3 * * *"}),
    ):
        refusal = applier.refusal(other)
        assert "spec.schedule: Forbidden: schedule can be changed, but neither added nor" in refusal
        assert "make another copy, under another name; to make no runs, set suspend" in refusal


@pytest.mark.parametrize("field", ["streams", "rename"])
def test_what_is_selected_cannot_be_left_out_later(applier: Applier, field: str) -> None:
    """The API server refuses to remove a list of selected or renamed streams."""
    rows = {
        "streams": {"include": [{"type": "Prefix", "value": "a"}]},
        "rename": [{"fromPrefix": "", "toPrefix": "old-"}],
    }
    wanted = changed(SCOPE, "metadata.name", f"whole-{field}")
    applier.apply(changed(wanted, f"spec.{field}", rows[field]))
    refusal = applier.refusal(wanted)
    assert f"spec.{field}: Forbidden: {field} cannot be changed" in refusal


@pytest.mark.parametrize("values", few(CHANGEABLE, 3), ids=label)
def test_all_else_can_be_changed(applier: Applier, values: dict[str, object]) -> None:
    """Limits, runtime and suspension of a copy can change at any time."""
    applier.apply(SCOPE)
    assert not applier.refusal(scope_copy(values))


def test_only_what_is_frozen_is_filled_in(applier: Applier) -> None:
    """A resource is stored as written, except fields whose defaults must not change later."""
    wanted = scope_copy({"metadata.name": "defaults", "spec.streams": {}})
    stored = applier.apply(wanted)
    frozen = {"onExists": "Fail", "onTruncation": "Fail", "sourceOnComplete": "Retain"}
    frozen["mode"] = "Snapshot"
    target = wanted["spec"]["target"] | {"scopePolicy": "MustExist"}
    streams = {"includeEphemeral": False}
    assert stored["spec"] == wanted["spec"] | frozen | {"target": target, "streams": streams}
    assert stored["status"] == {"observedGeneration": -1}
    assert load(text(stored)).scopes[0].spec == load(text(wanted)).scopes[0].spec


def test_a_target_of_archives_is_filled_in_as_well(applier: Applier) -> None:
    """A target of archives gets its fixed defaults, and the original can be applied again."""
    wanted = scope_copy({"metadata.name": "archived", **ARCHIVED})
    stored = applier.apply(wanted)
    archive = wanted["spec"]["target"]["archive"] | {"format": "Segments"}
    assert stored["spec"]["target"] == {"archive": archive, "scopePolicy": "MustExist"}
    assert load(text(stored)).scopes[0].spec == load(text(wanted)).scopes[0].spec
    assert not applier.refusal(wanted)


def test_a_status_is_taken_and_read_back(unwatched: Applier) -> None:
    """The operator's status is stored unchanged, even if every text has its full length."""
    unwatched.apply(changed(SCOPE, "metadata.name", "status"))
    schema = structural(next(kind for kind in KINDS if kind.name == "ScopeCopy"))
    wanted = ScopeCopyStatus.read(largest(schema["properties"]["status"]))
    assert len(wanted.failed_streams) == 50
    assert len(wanted.key_value_tables) == 50
    assert len(wanted.result_refs) == 64
    assert unwatched.write_status("scopecopies", "status", wanted.dump()) == wanted.dump()


def test_columns_tell_the_story(unwatched: Applier) -> None:
    """`kubectl get` fits into 80 characters. `-o wide` also shows source and target."""
    name = "everything"
    unwatched.apply(changed(SCOPE, "metadata.name", name))
    condition = Condition(
        type="Ready", status="False", reason="PartiallySucceeded", last_transition_time=NOW
    )
    status = ScopeCopyStatus(
        conditions=(condition,),
        progress=ProgressStatus(
            summary="99%", rate=rate(123e6), eta_seconds=86_000, size=size(108e6), events=25_500
        ),
        streams=StreamCounts(total=5000, copied=4990, failed=10, summary="4990/5000"),
        attempts=3,
        follow=ScopeFollowStatus(lag_seconds=31),
        source="main/in",
        target="main/out",
        duration="8s",
    )
    unwatched.write_status("scopecopies", name, status.dump())
    head, row = unwatched.get("scopecopies", name).splitlines()
    assert head.split() == ["NAME", "READY", "REASON", "STREAMS", "PROGRESS", "RATE", "AGE"]
    assert len(row.rstrip()) <= 80
    for cell in (name, "False", "PartiallySucceeded", "4990/5000", "99%", "123 MB/s"):
        assert cell in row
    head, row = unwatched.get("scopecopies", name, "--output=wide").splitlines()
    columns = [
        "SOURCE",
        "TARGET",
        "SIZE",
        "EVENTS",
        "DURATION",
        "FAILED",
        "LAST SUCCESS",
        "NEXT RUN",
        "ETA S",
        "ATTEMPTS",
        "LAG S",
    ]
    assert re.split(r" {2,}", head.split("AGE")[1].strip()) == columns
    cells = ["main/in", "main/out", "108 MB", "25500", "8s", "10", "86000", "3", "31"]
    assert re.split(r" {2,}", row.strip())[-9:] == cells


def test_what_kubectl_prints_can_be_read(applier: Applier) -> None:
    """The command line reads the output of `kubectl get -o yaml` as a file.

    The category and the short name find it.
    """
    applier.apply(changed(SCOPE, "metadata.name", "printed"))
    listed = applier.run("get", "streams", "--output=name").split()
    assert "scopecopy.sluice.dev/printed" in listed
    printed = applier.run("get", "sccp", "printed", "--output=yaml")
    assert load(printed).scopes[0].spec == load(text(SCOPE)).scopes[0].spec
