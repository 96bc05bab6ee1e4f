"""Valid and invalid archives, stores of archives, and copies from archives.

Each invalid row has the field that the error names, the values by their paths, and the error.
"""

from __future__ import annotations

from typing import Any

from support.cases.resources import ARCHIVE, BUCKET, COPY, REMOVED, VOLUME, changed

Row = tuple[str, dict[str, object], str]

LABEL = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
ENUM = "Unsupported value"
FORBIDDEN = "these are folders of archives"
MATCH = "should match"
ENDPOINT = "the address of an S3 server is https://host or https://host:port"
UNKNOWN = "unknown field"
DRILLS = {"schedule": {"cron": "@weekly"}}
FAR_AWAY = {"storeRef": {"name": "local", "namespace": "other"}, "scope": "drills"}
FROM_ARCHIVE = {"archive": {"storeRef": {"name": "archives"}, "path": "in/orders"}}


def made(like: dict[str, Any], values: dict[str, object]) -> dict[str, Any]:
    """Return a resource with these fields set or removed."""
    for path, value in values.items():
        like = changed(like, path, value)
    return like


def _single(path: str, value: object, said: str) -> Row:
    return path, {path: value}, said


def _schedule(field: str, value: object, said: str) -> Row:
    return (
        f"spec.schedule.{field}",
        {"spec.schedule": {"cron": "0 3 * * *", field: value}},
        said,
    )


ARCHIVES: list[Row] = [
    _single("spec", REMOVED, "Required value"),
    _single("spec.source", REMOVED, "Required value"),
    _single("spec.source.stream", REMOVED, "Required value"),
    _single("spec.source.scope", "a/b", "digits, . and - only"),
    _single("spec.source.ranges", [], UNKNOWN),
    _single("spec.destination", REMOVED, "Required value"),
    _single("spec.destination.storeRef.name", "Archives", LABEL),
    _single("spec.destination.path", REMOVED, "Required value"),
    _single("spec.destination.path", "", "at least 1 chars"),
    _single("spec.destination.path", "/orders", MATCH),
    _single("spec.destination.path", "orders/", MATCH),
    _single("spec.destination.path", "a//b", MATCH),
    _single("spec.destination.path", "a b", MATCH),
    _single("spec.destination.path", "a" * 513, "Too long"),
    _single("spec.destination.path", "shop/heads", FORBIDDEN),
    _single("spec.destination.path", "work", FORBIDDEN),
    _single("spec.destination.path", "shop/.partial/orders", FORBIDDEN),
    _single("spec.destination.path", "../orders", FORBIDDEN),
    (
        "spec.verify",
        {"spec.verify": DRILLS, "spec.source.storeRef": {"name": "local", "namespace": "other"}},
        "name one with verify.target",
    ),
    (
        "spec.verify.target.storeRef.namespace",
        {"spec.verify": DRILLS | {"target": FAR_AWAY}},
        UNKNOWN,
    ),
    _single("spec.format", "Avro", ENUM),
    ("spec.maxEvents", {"spec.maxEvents": 5}, "maxEvents goes with format: EventObjects"),
    (
        "spec.maxEvents",
        {"spec.format": "EventObjects", "spec.maxEvents": 0},
        "greater than or equal to 1",
    ),
    _single("spec.schedule", "daily", "must be of type object"),
    _schedule("cron", "every day", MATCH),
    _schedule("cron", "60 * * * *", MATCH),
    _schedule("cron", "0 24 * * *", MATCH),
    _schedule("cron", "0 0 * *", MATCH),
    _schedule("cron", "0 0 * * * *", MATCH),
    _schedule("cron", "@often", MATCH),
    _schedule("timeZone", "Europe/ Berlin", MATCH),
    _schedule("startingDeadlineSeconds", 9, "greater than or equal to 10"),
    ("spec.retention.keepLast", {"spec.retention": {}}, "retention keeps something"),
    _single("spec.retention.keepLast", 0, "greater than or equal to 1"),
    _single("spec.retention.keepWithin", "30", MATCH),
    _single("spec.retention.keepWithin", "2w", MATCH),
    _single("spec.onDelete", "Archive", ENUM),
    _single("spec.onTruncation", "Skip", ENUM),
    _single("spec.limits.inFlightBytes", "64Mi", UNKNOWN),
    _single("spec.backoffLimit", 101, "less than or equal to 100"),
    _single("spec.activeDeadlineSeconds", 59, "greater than or equal to 60"),
]

GOOD_ARCHIVES: list[dict[str, object]] = [
    {},
    {"spec.destination.path": "shop/orders@2026=a+b_c.d-e"},
    {"spec.format": "Parquet"},
    {"spec.format": "EventObjects", "spec.maxEvents": 10},
    {"spec.schedule": {"cron": "*/5 3,4-7/2 * jan,FEB-MAR mon-5", "timeZone": "Europe/Berlin"}},
    {"spec.schedule": {"cron": "@daily", "startingDeadlineSeconds": 60}},
    {"spec.schedule": {"cron": "0 3 * * *", "timeZone": "America/Argentina/Buenos_Aires"}},
    {"spec.retention": {"keepLast": 3}},
    {"spec.verify": DRILLS},
    {
        "spec.verify": DRILLS | {"target": {"storeRef": {"name": "local"}, "scope": "drills"}},
        "spec.source.storeRef": {"name": "local", "namespace": "other"},
    },
    {"spec.retention": {"keepWithin": "12h"}},
    {"spec.retention": {"keepLast": 1, "keepWithin": "30d"}},
    {"spec.onDelete": "Delete", "spec.onTruncation": "Record", "spec.suspend": True},
    {"spec.limits.bytesPerSecond": "1Mi", "spec.runtime": {"executors": 2}},
]

CHANGED_ARCHIVES: list[Row] = [
    _single("spec.source", {**ARCHIVE["spec"]["source"], "stream": "b"}, "cannot be changed"),
    _single("spec.destination.path", "other", "cannot be changed"),
    _single("spec.format", "Parquet", "cannot be changed"),
]

BUCKETS: list[Row] = [
    _single("spec.s3.bucket", REMOVED, "Required value"),
    _single("spec.s3.bucket", "ab", "at least 3 chars"),
    _single("spec.s3.bucket", "My_Bucket", MATCH),
    _single("spec.s3.prefix", "/a", MATCH),
    _single("spec.s3.prefix", "a/../b", "a path has no parts . and .."),
    _single("spec.s3.endpoint", "s3:9000", ENDPOINT),
    _single("spec.s3.endpoint", "http://user:pass@s3", ENDPOINT),
    _single("spec.s3.endpoint", "https://s3/path", ENDPOINT),
    _single("spec.s3.region", "EU", MATCH),
    _single("spec.s3.credentialsSecretRef.name", "Keys", MATCH),
    _single("spec.s3.credentialsSecretRef.name", "a..b", MATCH),
    _single("spec.s3.credentialsSecretRef.name", "a" * 254, "253"),
    ("spec.s3.caBundleRef.name", {"spec.s3.caBundleRef": {"name": "trust."}}, MATCH),
    _single("spec.s3.caBundleRef", {}, "Required value"),
    ("spec.s3.caBundleRef.kind", {"spec.s3.caBundleRef": {"name": "a", "kind": "File"}}, ENUM),
    _single("spec.s3.secretAccessKey", "x", UNKNOWN),
    ("spec.access.scopes", {"spec.access": {"scopes": ["a"]}}, "archives are in no scope"),
    ("spec.pravega", {"spec.pravega": {"controllerURI": "tcp://a:1"}}, "exactly one backend"),
    ("spec.pravega", {"spec.s3": REMOVED}, "exactly one backend is needed"),
]

GOOD_BUCKETS: list[dict[str, object]] = [
    {},
    {"spec.s3.credentialsSecretRef": REMOVED},
    {"spec.s3.prefix": "team/archives", "spec.s3.region": "eu-central-1"},
    {"spec.s3.endpoint": "http://minio.storage.svc:9000"},
    {"spec.s3.endpoint": "https://[fd00::1]:9000/"},
    {"spec.s3.caBundleRef": {"name": "kube-root-ca.crt"}},
    {"spec.s3.credentialsSecretRef.name": "keys.of-archives"},
    {"spec.s3.caBundleRef": {"kind": "Secret", "name": "trust", "key": "bundle.pem"}},
    {"spec.access": {"operations": ["Read", "Create"]}},
]

VOLUMES: list[Row] = [
    _single("spec.volume.claimName", REMOVED, "Required value"),
    _single("spec.volume.claimName", "a/b", MATCH),
    _single("spec.volume.claimName", "a..b", MATCH),
    _single("spec.volume.path", "../x", "a path has no parts . and .."),
    _single("spec.volume.size", "1Gi", UNKNOWN),
]

GOOD_VOLUMES: list[dict[str, object]] = [
    {},
    {"spec.volume.path": "streams/archives"},
    {"spec.volume.claimName": "shelf.of-archives"},
]

RESTORES: list[Row] = [
    ("spec.source.storeRef", {"spec.source": {}}, "name it"),
    (
        "spec.source.stream",
        {"spec.source": {**FROM_ARCHIVE, "stream": "orders"}},
        "archive stands in place of",
    ),
    (
        "spec.source.ranges",
        {"spec.source": {**FROM_ARCHIVE, "ranges": [{"from": {"at": "Head"}}]}},
        "archive stands in place of",
    ),
    ("spec.source.archive.path", {"spec.source": {"archive": {"storeRef": {"name": "a"}}}}, "path"),
    (
        "spec.source.archive.run",
        {"spec.source": {"archive": {**FROM_ARCHIVE["archive"], "run": 0}}},
        "greater than or equal to 1",
    ),
    (
        "spec.source.archive.until",
        {"spec.source": {"archive": {**FROM_ARCHIVE["archive"], "until": "yesterday"}}},
        "should match",
    ),
    (
        "spec.source.archive.until",
        {
            "spec.source": {
                "archive": {
                    **FROM_ARCHIVE["archive"],
                    "run": 1,
                    "until": "2026-05-04T12:00:00Z",
                }
            }
        },
        "give one of them",
    ),
    (
        "spec.sourceOnComplete",
        {"spec.source": FROM_ARCHIVE, "spec.sourceOnComplete": "Delete"},
        "no archive",
    ),
]

GOOD_RESTORES: list[dict[str, object]] = [
    {"spec.source": FROM_ARCHIVE},
    {"spec.source": {"archive": {**FROM_ARCHIVE["archive"], "run": 3}}},
    {"spec.source": {"archive": {**FROM_ARCHIVE["archive"], "until": "2026-05-04T12:00:00+02:00"}}},
    {"spec.source": FROM_ARCHIVE, "spec.onTruncation": "Record"},
    {"spec.source": FROM_ARCHIVE, "spec.target.onExists": "Append"},
    {"spec.source": REMOVED, "spec.sources": [FROM_ARCHIVE, COPY["spec"]["source"]]},
]

Spoiled = tuple[dict[str, Any], str, dict[str, object], str]

WRONG: list[Spoiled] = [
    (like, *row)
    for like, rows in (
        (ARCHIVE, ARCHIVES),
        (BUCKET, BUCKETS),
        (VOLUME, VOLUMES),
        (COPY, RESTORES),
    )
    for row in rows
]

GOOD: list[dict[str, Any]] = [
    made(like, values)
    for like, many in (
        (ARCHIVE, GOOD_ARCHIVES),
        (BUCKET, GOOD_BUCKETS),
        (VOLUME, GOOD_VOLUMES),
        (COPY, GOOD_RESTORES),
    )
    for values in many
]
