"""ScopeCopies that follow their sources, as users write them: good ones and wrong ones."""

from __future__ import annotations

from typing import Any, Final

from support.cases.resources import REMOVED, SCOPE, changed
from support.cases.wrong_scopes import APPEND, ARCHIVED, HOURLY, KEPT, RESTORE, Row

FOLLOWED: Final = changed(SCOPE, "spec.mode", "Continuous")

_ONLY: Final = "add mode: Continuous, or remove"

GOOD: Final[list[dict[str, object]]] = [
    {},
    {"spec.stopWhen": {"idleSeconds": 600}},
    {"spec.stopWhen": {"time": "2026-12-01T00:00:00+01:00"}, "spec.activeDeadlineSeconds": 60},
    {"spec.cutover": "None"},
    {"spec.cutover": "Drain", "spec.onExists": "Skip", "spec.onTruncation": "Record"},
    {"spec.cutover": "SealAndDrain", "spec.sourceOnComplete": "Retain"},
    {"spec.lagObjectiveSeconds": 1, "spec.limits": {"bytesPerSecond": "10Mi"}},
    {"spec.failurePolicy": "Continue", "spec.parallelism": 4},
    {"spec.streams": {"include": [{"type": "Tag", "value": "_old"}]}},
    {"spec.rename": [{"fromPrefix": "", "toPrefix": "new-"}], "spec.target.scope": "in"},
    {"spec.hooks": {"after": {"cronJobRef": {"name": "tell"}}}},
]
"""Valid fields of a copy that follows a scope, by their paths."""

WRONG: Final[list[Row]] = [
    ("spec.mode", {"spec.mode": "Forever"}, ""),
    ("spec.source.archive", RESTORE, "name the scope, or remove mode"),
    ("spec.target.archive", ARCHIVED, "name a scope, or remove mode and archive the streams"),
    ("spec.target.archive", ARCHIVED | HOURLY | APPEND, "archive the streams by a schedule"),
    ("spec.schedule", HOURLY, "have no runs: remove schedule"),
    ("spec.retention", KEPT, "have no runs: remove retention"),
    (
        "spec.streams.include",
        {"spec.streams": {"include": [{"type": "Prefix", "value": "_RG"}]}},
        "include no names that begin with _, or remove mode",
    ),
    ("spec.onExists", APPEND, "take onExists: Fail or Skip"),
    ("spec.failurePolicy", {"spec.failurePolicy": "Stop"}, "take failurePolicy: Continue"),
    (
        "spec.sourceOnComplete",
        {"spec.sourceOnComplete": "Delete", "spec.cutover": "SealAndDrain"},
        "delete the streams once they have moved",
    ),
    (
        "spec.activeDeadlineSeconds",
        {"spec.activeDeadlineSeconds": 60},
        "give stopWhen, or remove activeDeadlineSeconds",
    ),
    ("spec.stopWhen", {"spec.stopWhen": {}}, "give idleSeconds, bytes or time"),
    (
        "spec.stopWhen.bytes",
        {"spec.stopWhen": {"bytes": "1Ti", "idleSeconds": 5}},
        "give idleSeconds or time, or follow the stream by a StreamCopy",
    ),
    (
        "spec.stopWhen.idleSeconds",
        {"spec.stopWhen": {"idleSeconds": 0}},
        "greater than or equal to 1",
    ),
    ("spec.stopWhen.time", {"spec.stopWhen": {"time": "tomorrow"}}, ""),
    ("spec.cutover", {"spec.cutover": "Now"}, ""),
    ("spec.readerGroups", {"spec.readerGroups": [{"name": "billing"}]}, ""),
    (
        "spec.lagObjectiveSeconds",
        {"spec.lagObjectiveSeconds": 0},
        "greater than or equal to 1",
    ),
    *(
        (f"spec.{name}", {"spec.mode": mode, f"spec.{name}": value}, f"{_ONLY} {name}")
        for mode in (REMOVED, "Snapshot")
        for name, value in (
            ("stopWhen", {"idleSeconds": 5}),
            ("cutover", "None"),
            ("lagObjectiveSeconds", 30),
        )
    ),
]
"""The path of the wrong field, the fields by their paths, and the expected error."""


def followed(changes: dict[str, object]) -> dict[str, Any]:
    """Return a copy that follows a scope, with changes by the paths of fields."""
    result = FOLLOWED
    for path, value in changes.items():
        result = changed(result, path, value)
    return result
