"""Copies that follow their source, as users write them: good ones, wrong ones, and changes."""

from __future__ import annotations

from typing import Any, Final

from support.cases.resources import COPY, REMOVED, changed

CONTINUOUS: Final = changed(COPY, "spec.mode", "Continuous")

Row = tuple[dict[str, object], str, str]
"""Fields by their paths, the path of the wrong field, and the expected text of the error."""

_SOURCE: Final = COPY["spec"]["source"]
_ARCHIVE: Final = {"archive": {"storeRef": {"name": "archives"}, "path": "in/orders"}}
_ONLY: Final = "add mode: Continuous, or remove"

GOOD: Final[list[dict[str, object]]] = [
    {},
    {"spec.stopWhen": {"idleSeconds": 600}},
    {"spec.stopWhen": {"bytes": "1Ti", "time": "2026-12-01T00:00:00+01:00"}},
    {"spec.stopWhen": {"idleSeconds": 1}, "spec.activeDeadlineSeconds": 60},
    {"spec.cutover": "None"},
    {"spec.cutover": "Drain", "spec.readerGroups": [{"name": "billing"}]},
    {"spec.cutover": "SealAndDrain", "spec.sourceOnComplete": "Retain"},
    {"spec.readerGroups": [{"name": f"g{n}", "as": f"h{n}"} for n in range(32)]},
    {"spec.readerGroups": [{"name": "a", "as": "b"}, {"name": "b", "as": "a"}]},
    {"spec.lagObjectiveSeconds": 1, "spec.limits": {"bytesPerSecond": "10Mi"}},
    {"spec.onTruncation": "Record", "spec.target.sealWhenDone": True},
    {"spec.hooks": {"after": {"cronJobRef": {"name": "tell"}}}},
    {"spec.source.ranges": []},
]
"""Valid fields of a copy that follows its source, by their paths."""

WRONG: Final[list[Row]] = [
    ({"spec.mode": "Forever"}, "spec.mode", ""),
    ({"spec.source": REMOVED, "spec.sources": [_SOURCE]}, "spec.sources", "follows one stream"),
    ({"spec.source": _ARCHIVE}, "spec.source.archive", "name the stream, or remove mode"),
    ({"spec.source.ranges": [{}]}, "spec.source.ranges", "remove ranges, or mode"),
    ({"spec.source.stream": "_RGbilling"}, "spec.source.stream", "the store's own streams"),
    ({"spec.target.onExists": "Append"}, "spec.target.onExists", "take onExists: Fail"),
    (
        {"spec.sourceOnComplete": "Delete", "spec.cutover": "SealAndDrain"},
        "spec.sourceOnComplete",
        "delete the stream once they have moved",
    ),
    ({"spec.activeDeadlineSeconds": 60}, "spec.activeDeadlineSeconds", "give stopWhen, or remove"),
    ({"spec.stopWhen": {}}, "spec.stopWhen", "give idleSeconds, bytes or time"),
    ({"spec.stopWhen": {"idleSeconds": 0}}, "spec.stopWhen.idleSeconds", "greater than or equal"),
    ({"spec.stopWhen": {"bytes": 0}}, "spec.stopWhen.bytes", "write 1 to 1000000Ti"),
    ({"spec.stopWhen": {"time": "tomorrow"}}, "spec.stopWhen.time", ""),
    ({"spec.stopWhen": {"time": "2026-12-01"}}, "spec.stopWhen.time", ""),
    ({"spec.cutover": "Now"}, "spec.cutover", ""),
    ({"spec.readerGroups": [{"name": "a"}] * 2}, "spec.readerGroups", ""),
    (
        {"spec.readerGroups": [{"name": "a"}, {"name": "b", "as": "a"}]},
        "spec.readerGroups",
        "give another name or as",
    ),
    (
        {"spec.readerGroups": [{"name": "other/billing"}]},
        "spec.readerGroups[0].name",
        "remove the scope",
    ),
    (
        {"spec.readerGroups": [{"name": "a", "as": "other/a"}]},
        "spec.readerGroups[0].as",
        "remove the scope",
    ),
    ({"spec.readerGroups": [{"as": "a"}]}, "spec.readerGroups[0].name", "equired"),
    ({"spec.readerGroups": [{"name": f"g{n}"} for n in range(33)]}, "spec.readerGroups", "32"),
    ({"spec.lagObjectiveSeconds": 0}, "spec.lagObjectiveSeconds", "greater than or equal to 1"),
    *(
        ({"spec.mode": mode, f"spec.{name}": value}, f"spec.{name}", f"{_ONLY} {name}")
        for mode in (REMOVED, "Snapshot")
        for name, value in (
            ("stopWhen", {"idleSeconds": 5}),
            ("cutover", "None"),
            ("readerGroups", [{"name": "billing"}]),
            ("lagObjectiveSeconds", 30),
        )
    ),
]
"""Invalid fields of a copy that follows its source, with the wrong field and the error."""


def continuous(changes: dict[str, object]) -> dict[str, Any]:
    """Return a copy that follows its source, with changes by the paths of fields."""
    result = CONTINUOUS
    for path, value in changes.items():
        result = changed(result, path, value)
    return result
