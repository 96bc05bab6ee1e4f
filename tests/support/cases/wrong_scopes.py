"""Invalid ScopeCopies: the field of the error, the values that cause it, and the error's text."""

from __future__ import annotations

from typing import Any

from support.cases.resources import REMOVED, SCOPE, changed

LABEL = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
ENUM = "Unsupported value"
NO_NAME = "streams have letters, digits, '.', '_' and '-' in their names"
NO_GAPS = "copies that append record no gaps: take onTruncation: Fail, or onExists: Fail or Skip"
NOT_MOVED = "take onExists: Fail or Skip, and include no names that begin with _"
ONE_SCOPE = "source and target are one scope: rename the streams, or name another scope or store"
EITHER = "a scope (storeRef and scope) or a folder of archives (archive): name it"
IN_PLACE = "archive stands in place of storeRef and scope: remove these"
NO_FOLDER = "these are folders of archives"
NO_EXECUTORS = "there are no executor pods to describe: remove executor, or the 0 from executors"

ORDERS = {"type": "Prefix", "value": "orders-"}
OLD = {"fromPrefix": "", "toPrefix": "old-"}

Row = tuple[str, dict[str, object], str]
"""The field that the error names, the values by their paths, and the error's text."""


def _single(path: str, value: object, said: str) -> Row:
    return path, {path: value}, said


def _included(*selectors: object) -> dict[str, object]:
    return {"spec.streams.include": [*selectors]}


def _selector(field: str, value: object, said: str) -> Row:
    selector = {name: one for name, one in {**ORDERS, field: value}.items() if one is not REMOVED}
    return f"spec.streams.exclude[0].{field}", {"spec.streams.exclude": [selector]}, said


def _rename(field: str, value: object, said: str) -> Row:
    rename = {name: one for name, one in {**OLD, field: value}.items() if one is not REMOVED}
    return f"spec.rename[0].{field}", {"spec.rename": [rename]}, said


MOVE: dict[str, object] = {"spec.sourceOnComplete": "Delete"}
RECORD: dict[str, object] = {"spec.onTruncation": "Record"}
APPEND: dict[str, object] = {"spec.onExists": "Append"}
HOME: dict[str, object] = {"spec.target.scope": "in"}

HOURLY: dict[str, object] = {"spec.schedule": {"cron": "0 * * * *"}}
KEPT: dict[str, object] = {"spec.retention": {"keepLast": 7, "keepWithin": "30d"}}

FOLDER = {"storeRef": {"name": "archives"}, "path": "backup/in"}
RESTORE: dict[str, object] = {"spec.source": {"archive": FOLDER}}
ARCHIVED: dict[str, object] = {"spec.target": {"archive": FOLDER}}


def _restored(**given: object) -> dict[str, object]:
    return {"spec.source": {"archive": {**FOLDER, **given}}}


def _archived(**given: object) -> dict[str, object]:
    return {"spec.target": {"archive": {**FOLDER, **given}}}


BROKEN: list[Row] = [
    ("spec.rename", {"spec.rename": [{**OLD, "toPrefix": "old_"}]}, "choose another toPrefix"),
    ("spec.rename", {"spec.rename": [{**OLD, "toPrefix": "_RG"}]}, "choose another toPrefix"),
    ("spec.rename", HOME, ONE_SCOPE),
    ("spec.rename", HOME | {"spec.rename": []}, ONE_SCOPE),
    ("spec.onTruncation", RECORD | APPEND, NO_GAPS),
    ("spec.sourceOnComplete", MOVE | APPEND, NOT_MOVED),
    ("spec.sourceOnComplete", MOVE | _included({"type": "Exact", "value": "_RGa"}), NOT_MOVED),
    (
        "spec.sourceOnComplete",
        MOVE | _included(ORDERS, {"type": "Prefix", "value": "_"}),
        NOT_MOVED,
    ),
    _selector("value", "a b", NO_NAME),
    ("spec.streams.include[0].value", _included({"type": "Exact", "value": "a\n"}), NO_NAME),
    (
        "spec.runtime.executor",
        {"spec.runtime": {"executors": 0, "executor": {}}},
        NO_EXECUTORS,
    ),
    ("spec.source.scope", {"spec.source.scope": REMOVED}, f"a source is {EITHER}"),
    ("spec.source.storeRef", {"spec.source": {}}, f"a source is {EITHER}"),
    ("spec.target.storeRef", {"spec.target": {"scope": "out"}}, f"a target is {EITHER}"),
    ("spec.source.scope", {"spec.source": {"archive": FOLDER, "scope": "in"}}, IN_PLACE),
    (
        "spec.target.storeRef",
        {"spec.target": {"archive": FOLDER, "storeRef": {"name": "local"}}},
        IN_PLACE,
    ),
    (
        "spec.target.scopePolicy",
        {"spec.target": {"archive": FOLDER, "scopePolicy": "CreateIfAbsent"}},
        "archives need no scope: remove scopePolicy",
    ),
    (
        "spec.target.archive.maxEvents",
        _archived(format="Parquet", maxEvents=5),
        "maxEvents goes with format: EventObjects",
    ),
    ("spec.source.archive.path", _restored(path="in/data"), NO_FOLDER),
    ("spec.target.archive.path", _archived(path="in/../out"), NO_FOLDER),
    ("spec.source.archive.until", _restored(until="1969-05-04T12:00:00Z"), "write a time"),
    ("spec.target", RESTORE | ARCHIVED, "archives are not copied to archives: mirror the bucket"),
    ("spec.onTruncation", RESTORE | RECORD | APPEND, NO_GAPS),
    ("spec.sourceOnComplete", RESTORE | MOVE, "restoring deletes no archives"),
    (
        "spec.sourceOnComplete",
        ARCHIVED | MOVE | _included({"type": "Exact", "value": "_RGa"}),
        NOT_MOVED,
    ),
    ("spec.schedule", HOURLY | APPEND, "have no runs: remove schedule, or name target.archive"),
    ("spec.schedule", RESTORE | HOURLY | APPEND, "have no runs: remove schedule"),
    ("spec.retention", KEPT, "have no runs: remove retention, or name target.archive"),
    ("spec.schedule", ARCHIVED | HOURLY, "take onExists: Append"),
    ("spec.schedule", ARCHIVED | HOURLY | {"spec.onExists": "Skip"}, "take onExists: Append"),
    ("spec.schedule", ARCHIVED | HOURLY | APPEND | MOVE, "streams are moved once"),
    (
        "spec.ttlSecondsAfterFinished",
        ARCHIVED | HOURLY | APPEND | {"spec.ttlSecondsAfterFinished": 60},
        "a copy with a schedule does not finish",
    ),
    (
        "spec.hooks",
        ARCHIVED | HOURLY | APPEND | {"spec.hooks": {"after": {"cronJobRef": {"name": "x"}}}},
        "hooks are for copies that end",
    ),
    ("spec.retention", ARCHIVED | {"spec.retention": {}}, "retention keeps something"),
    (
        "spec.source.archive.until",
        _restored(run=3, until="2026-05-04T12:00:00Z"),
        "give one of them",
    ),
]
"""Specs that rules refuse, in the same words on the API server and on the command line."""

WRONG: list[Row] = [
    *BROKEN,
    _single("metadata.name", "a.b", "no dots"),
    _single("spec", REMOVED, "Required value"),
    _single("spec.source", REMOVED, "Required value"),
    _single("spec.source.storeRef.name", "Local", LABEL),
    _single("spec.source.scope", "a/b", "digits, . and - only"),
    _single("spec.target.scope", "a_b", "digits, . and - only"),
    _single("spec.target", REMOVED, "Required value"),
    _single("spec.target.scope", "", "at least 1 chars"),
    _single("spec.target.scope", "a" * 250, "Too long"),
    _single("spec.target.scopePolicy", "Create", ENUM),
    _single("spec.streams", ["a"], "must be of type object"),
    _single("spec.streams.include", "all", "must be of type array"),
    _single("spec.streams.include", [ORDERS] * 257, "must have at most 256 items"),
    _single("spec.streams.includeEphemeral", "yes", "must be of type boolean"),
    _selector("type", "Regex", ENUM),
    _selector("type", REMOVED, "Required value"),
    _selector("value", REMOVED, "Required value"),
    _selector("value", "", "at least 1 chars"),
    _selector("value", "a" * 250, "Too long"),
    _single("spec.rename", [OLD] * 65, "must have at most 64 items"),
    _rename("fromPrefix", "a/", "should match"),
    _rename("fromPrefix", REMOVED, "Required value"),
    _rename("toPrefix", "a b", "should match"),
    _rename("toPrefix", "a" * 250, "Too long"),
    _single("spec.onExists", "Replace", ENUM),
    _single("spec.onTruncation", "Skip", ENUM),
    _single("spec.sourceOnComplete", "Drop", ENUM),
    _single("spec.failurePolicy", "Retry", ENUM),
    _single("spec.parallelism", 0, "greater than or equal to 1"),
    _single("spec.parallelism", 65, "less than or equal to 64"),
    _single("spec.parallelism", "4", "must be of type integer"),
    _single("spec.suspend", "yes", "must be of type boolean"),
    _single("spec.limits.bytesPerSecond", "1k", "write 1Ki to 1Ti, in bytes or with a suffix"),
    _single("spec.backoffLimit", 101, "less than or equal to 100"),
    _single("spec.activeDeadlineSeconds", 59, "greater than or equal to 60"),
    _single("spec.runtime.profile", "Large", LABEL),
    ("spec.source.archive.path", {"spec.source": {"archive": {"storeRef": {"name": "a"}}}}, "path"),
    ("spec.source.archive.until", _restored(until="yesterday"), "should match"),
    ("spec.target.archive.path", _archived(path="a" * 263), "Too long"),
    ("spec.target.archive.format", _archived(format="Json"), ENUM),
    ("spec.source.archive.run", _restored(run=0), "greater than or equal to 1"),
    ("spec.schedule.cron", ARCHIVED | APPEND | {"spec.schedule": {}}, "Required value"),
    ("spec.retention.keepLast", ARCHIVED | {"spec.retention": {"keepLast": 0}}, "equal to 1"),
    (
        "spec.target.archive.maxEvents",
        _archived(format="EventObjects", maxEvents=0),
        "greater than or equal to 1",
    ),
]

UNKNOWN: list[Row] = [
    _single(path, value, "unknown field")
    for path, value in {
        "spec.source.stream": "a",
        "spec.target.onExists": "Fail",
        "spec.streams.includeInternal": True,
        "spec.publish": "Progressive",
        "spec.source.archive": {**FOLDER, "event": 3},
    }.items()
]

CHANGED: list[Row] = [
    ("spec.source", {"spec.source.scope": "another"}, "the source cannot be changed"),
    ("spec.target", {"spec.target.storeRef.name": "another"}, "the target cannot be changed"),
    ("spec.target", {"spec.target.scopePolicy": "CreateIfAbsent"}, "the target cannot be changed"),
    ("spec.source", RESTORE, "the source cannot be changed"),
    ("spec.target", ARCHIVED, "the target cannot be changed"),
    ("spec.streams", _included(ORDERS), "streams cannot be changed"),
    ("spec.rename", {"spec.rename": [OLD]}, "rename cannot be changed"),
    ("spec.onExists", APPEND, "onExists cannot be changed"),
    ("spec.onTruncation", RECORD, "onTruncation cannot be changed"),
    ("spec.sourceOnComplete", MOVE, "sourceOnComplete cannot be changed"),
]
"""Changes that the API server refuses only on existing resources."""

CHANGEABLE: list[dict[str, object]] = [
    {"spec.suspend": True},
    {"spec.parallelism": 4},
    {"spec.failurePolicy": "Stop"},
    {"spec.limits": {"bytesPerSecond": "1Mi"}},
    {"spec.backoffLimit": 1},
    {"spec.activeDeadlineSeconds": 60},
    {"spec.runtime": {"executors": 2}},
    {"spec.onExists": "Fail", "spec.target.scopePolicy": "MustExist"},
]
"""Changes that are allowed on existing resources, or that set a field's present value."""

GOOD: list[dict[str, object]] = [
    {},
    {"spec.target.scopePolicy": "CreateIfAbsent", "spec.streams": {}, "spec.rename": []},
    HOME | {"spec.rename": [OLD]},
    HOME | {"spec.target.storeRef.name": "remote"},
    {"spec.streams": {"include": [ORDERS] * 256, "exclude": [ORDERS], "includeEphemeral": True}},
    _included({"type": "Exact", "value": "_RGa"}, {"type": "Tag", "value": "team a/b"}),
    {"spec.rename": [{"fromPrefix": "a-", "toPrefix": ""}, OLD]},
    {"spec.onExists": "Append", "spec.failurePolicy": "Stop", "spec.parallelism": 64},
    RECORD | {"spec.onExists": "Skip"},
    MOVE | RECORD | {"spec.onExists": "Skip"},
    MOVE | _included({"type": "Tag", "value": "_old"}),
    {"spec.limits": {"bytesPerSecond": "200Mi"}, "spec.runtime": {"executors": 2}},
    RESTORE | APPEND | {"spec.target.scopePolicy": "CreateIfAbsent"},
    _restored(until="2026-05-04T12:00:00+02:00") | RECORD | {"spec.rename": [OLD]},
    ARCHIVED | APPEND | RECORD | MOVE,
    _archived(format="EventObjects", maxEvents=5) | {"spec.onExists": "Skip"},
    {"spec.target": {"archive": {**FOLDER, "storeRef": {"name": "local"}}}},
    ARCHIVED | APPEND | HOURLY | KEPT | RECORD,
    ARCHIVED | KEPT,
    _restored(run=3),
]


def scope_copy(values: dict[str, object]) -> dict[str, Any]:
    """Return the resource with these values."""
    found = SCOPE
    for path, value in values.items():
        found = changed(found, path, value)
    return found
