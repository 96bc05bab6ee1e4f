"""Invalid EphemeralStreams: the field of the error, the values that cause it, and the error."""

from __future__ import annotations

from typing import Any

from support.cases.resources import EPHEMERAL, REMOVED, changed

OWNERS = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}]
PREFIX = {"spec.stream": REMOVED, "spec.streamPrefix": "app-"}
LABEL = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
INTERNAL = "letters, digits, . and - only, and those with _ are its own: choose another"
ONE_THING = "exactly one thing to own is needed: stream, streamPrefix"
RATE = "a policy that follows the load needs targetRate and scaleFactor"
FIXED = "targetRate and scaleFactor go with a policy that follows the load"
SIZE = "write 1Mi to 1Ti, in bytes or with a suffix (500k, 64Mi, 2Gi)"
FAR = "Kubernetes allows no owner reference to another namespace: set tracking to Observe"
ENUM = "Unsupported value"

Row = tuple[str, dict[str, object], str]
"""The field that the error names, the values by their paths, and the API server's error."""


def _single(path: str, value: object, said: str) -> Row:
    return path, {path: value}, said


def _owner(field: str, value: object, said: str) -> Row:
    return f"spec.owners[0].{field}", {"spec.owners": [{**OWNERS[0], field: value}]}, said


def _without(field: str) -> Row:
    owner = {name: value for name, value in OWNERS[0].items() if name != field}
    return f"spec.owners[0].{field}", {"spec.owners": [owner]}, "Required value"


WRONG: list[Row] = [
    _single("metadata.name", "a.b", "no dots"),
    _single("spec", REMOVED, "Required value"),
    _single("spec.storeRef", REMOVED, "Required value"),
    _single("spec.storeRef.name", "Local", LABEL),
    _single("spec.scope", REMOVED, "Required value"),
    _single("spec.scope", "a/b", "digits, . and - only"),
    _single("spec.scope", "a_b", "digits, . and - only"),
    ("spec.stream", {"spec.stream": REMOVED}, ONE_THING),
    ("spec.stream", {"spec.streamPrefix": "app-"}, ONE_THING),
    _single("spec.stream", "a b", "digits, . and - only"),
    _single("spec.stream", "under_score", "digits, . and - only"),
    _single("spec.stream", "_system", INTERNAL),
    _single("spec.stream", "", "at least 1 chars"),
    ("spec.streamPrefix", PREFIX | {"spec.streamPrefix": "app"}, "at least 4 chars"),
    ("spec.streamPrefix", PREFIX | {"spec.streamPrefix": "_mark"}, INTERNAL),
    ("spec.streamPrefix", PREFIX | {"spec.streamPrefix": "a" * 151}, "Too long"),
    ("spec.streamPrefix", PREFIX | {"spec.streamPrefix": "app*"}, "digits, . and - only"),
    ("spec.config", PREFIX | {"spec.config": {}}, "remove config, or name a stream"),
    ("spec.adopt", PREFIX | {"spec.adopt": "IfUnowned"}, "adopt is for one stream"),
    ("spec.claim", {"spec.claim": "NewOnly"}, "claim goes with streamPrefix"),
    ("spec.claim", PREFIX | {"spec.claim": "All"}, ENUM),
    _single("spec.adopt", "Always", ENUM),
    _single("spec.scopePolicy", "Create", ENUM),
    _single("spec.onRelease", "Archive", ENUM),
    _single("spec.tracking", "Watch", ENUM),
    _single("spec.releaseWhen", "Never", ENUM),
    ("spec.owners", {"spec.releaseWhen": "OwnersFinished"}, "no owners that could finish"),
    ("spec.owners", {"spec.owners": [{**OWNERS[0], "namespace": "other"}]}, FAR),
    ("spec.owners", {"spec.owners": OWNERS * 17}, "must have at most 16 items"),
    _owner("apiVersion", "apps", "should match"),
    _owner("kind", "deployment", "should match"),
    _owner("name", "App", "should match"),
    _without("kind"),
    _without("name"),
    _single("spec.gracePeriodSeconds", -1, "greater than or equal to 0"),
    _single("spec.gracePeriodSeconds", 31_536_001, "less than or equal to 31536000"),
    _single("spec.gracePeriodSeconds", "60", "must be of type integer"),
    _single("spec.maxAgeSeconds", 0, "greater than or equal to 1"),
    _single("spec.deletionTimeoutSeconds", 9, "greater than or equal to 10"),
    _single("spec.suspend", "yes", "must be of type boolean"),
    _single("spec.config.tags", ["a", "sluice.dev/managed"], "are set by Sluice: remove them"),
    _single("spec.config.tags", ["a", "a"], "Duplicate value"),
    _single("spec.config.tags", [str(number) for number in range(17)], "at most 16 items"),
    _single("spec.config.scaling.minSegments", 0, "greater than or equal to 1"),
    _single("spec.config.scaling.type", "ByLoad", ENUM),
    ("spec.config.scaling", {"spec.config.scaling": {"type": "ByEventsPerSecond"}}, RATE),
    (
        "spec.config.scaling",
        {"spec.config.scaling": {"type": "ByBytesPerSecond", "targetRate": 5}},
        RATE,
    ),
    ("spec.config.scaling", {"spec.config.scaling": {"targetRate": 5, "scaleFactor": 2}}, FIXED),
    _single("spec.config.retention", {}, "exactly one kind of retention is needed"),
    _single(
        "spec.config.retention", {"seconds": 5, "bytes": "1Mi"}, "exactly one kind of retention"
    ),
    _single("spec.config.retention.seconds", 0, "greater than or equal to 1"),
    _single("spec.config.retention.bytes", "1k", SIZE),
]

UNKNOWN: list[Row] = [
    _single(path, value, "unknown field")
    for path, value in {
        "spec.streams": ["a"],
        "spec.ttlSeconds": 5,
        "spec.config.encryption": True,
        "spec.storeRef.uid": "other",
    }.items()
]

CHANGED: list[tuple[str, dict[str, object], str]] = [
    ("spec.stream", {"spec.stream": "another"}, "the stream cannot be changed"),
    ("spec.stream", PREFIX, "the stream cannot be changed"),
    ("spec.scope", {"spec.scope": "another"}, "the scope cannot be changed"),
    ("spec.storeRef", {"spec.storeRef.name": "another"}, "the store cannot be changed"),
    ("spec.storeRef", {"spec.storeRef.namespace": "another"}, "the store cannot be changed"),
]
"""Changes that the API server refuses only on existing resources."""

GOOD: list[dict[str, object]] = [
    {},
    {"spec.storeRef.namespace": "other"},
    PREFIX,
    PREFIX | {"spec.claim": "ExistingAndNew", "spec.owners": OWNERS},
    {"spec.owners": [{**OWNERS[0], "namespace": "other"}], "spec.tracking": "Observe"},
    {"spec.owners": [{"apiVersion": "v1", "kind": "Pod", "name": "a.b:c"}]},
    {"spec.owners": OWNERS, "spec.releaseWhen": "OwnersFinished", "spec.gracePeriodSeconds": 0},
    {"spec.adopt": "IfUnowned", "spec.onRelease": "Retain", "spec.scopePolicy": "CreateIfAbsent"},
    {"spec.config": {"retention": {"bytes": "64Mi"}, "tags": ["team"]}},
    {
        "spec.config": {
            "scaling": {"type": "ByEventsPerSecond", "targetRate": 100, "scaleFactor": 2},
            "retention": {"seconds": 60},
        }
    },
    {"spec.maxAgeSeconds": 3600, "spec.deletionTimeoutSeconds": 10, "spec.suspend": True},
]


def ephemeral(values: dict[str, object]) -> dict[str, Any]:
    """Return the resource with these values."""
    found = EPHEMERAL
    for path, value in values.items():
        found = changed(found, path, value)
    return found
