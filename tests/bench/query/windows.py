"""The query that benchmarks run: events of a stream, counted by second and key."""

from __future__ import annotations

from typing import Any, Final

import yaml

SCOPE: Final = "bench-windows"
KEY_COUNT: Final = 20
_SQL: Final = """\
SELECT window.start AS start, k, count(*) AS n
FROM clicks GROUP BY window(ts, '1 second'), k
"""


def manifest(uri: str, stream: str, **spec: Any) -> str:
    """Return a StreamStore and a StreamQuery, as YAML. The query has the stream's name.

    Args:
        uri: the store's address.
        stream: the source in `SCOPE`; the sink is `STREAM-counts`.
        spec: further fields of the query's spec.
    """
    at = {"storeRef": {"name": "main"}, "scope": SCOPE}
    source = {
        "name": "clicks",
        "stream": at | {"stream": stream},
        "format": "Json",
        "schema": "k STRING, ts TIMESTAMP",
        "eventTime": {"column": "ts", "latenessSeconds": 0},
    }
    usual = {
        "sources": [source],
        "query": {"sql": _SQL},
        "result": {"keys": ["k"]},
        "sinks": [{"stream": at | {"stream": f"{stream}-counts", "segments": 2}}],
    }
    bodies = [
        ("StreamStore", "main", {"pravega": {"controllerURI": uri}}),
        ("StreamQuery", stream, usual | spec),
    ]
    return yaml.safe_dump_all(
        {
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": written,
        }
        for kind, name, written in bodies
    )
