"""Resources as a user writes them, and functions that change fields of them."""

from __future__ import annotations

import copy
from typing import Any

import yaml

STORE: dict[str, Any] = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "StreamStore",
    "metadata": {"name": "local"},
    "spec": {"pravega": {"controllerURI": "tcp://127.0.0.1:9090"}},
}
COPY: dict[str, Any] = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "StreamCopy",
    "metadata": {"name": "orders"},
    "spec": {
        "source": {"storeRef": {"name": "local"}, "scope": "in", "stream": "orders"},
        "target": {"storeRef": {"name": "local"}, "scope": "out", "stream": "orders"},
    },
}
SCOPE: dict[str, Any] = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "ScopeCopy",
    "metadata": {"name": "shop"},
    "spec": {
        "source": {"storeRef": {"name": "local"}, "scope": "in"},
        "target": {"storeRef": {"name": "local"}, "scope": "out"},
    },
}
ARCHIVE: dict[str, Any] = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "StreamArchive",
    "metadata": {"name": "orders"},
    "spec": {
        "source": {"storeRef": {"name": "local"}, "scope": "in", "stream": "orders"},
        "destination": {"storeRef": {"name": "archives"}, "path": "in/orders"},
    },
}
BUCKET: dict[str, Any] = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "StreamStore",
    "metadata": {"name": "archives"},
    "spec": {"s3": {"bucket": "archives", "credentialsSecretRef": {"name": "keys"}}},
}
VOLUME: dict[str, Any] = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "StreamStore",
    "metadata": {"name": "shelf"},
    "spec": {"volume": {"claimName": "archives"}},
}
QUERY: dict[str, Any] = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "StreamQuery",
    "metadata": {"name": "counts"},
    "spec": {
        "sources": [
            {
                "name": "clicks",
                "stream": {"storeRef": {"name": "local"}, "scope": "in", "stream": "clicks"},
                "format": "Text",
            }
        ],
        "query": {"sql": "SELECT event FROM clicks"},
        "sinks": [
            {"stream": {"storeRef": {"name": "local"}, "scope": "in", "stream": "counts"}},
        ],
        "checkpoint": {"claimName": "checkpoints"},
    },
}
EPHEMERAL: dict[str, Any] = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "EphemeralStream",
    "metadata": {"name": "helper"},
    "spec": {"storeRef": {"name": "local"}, "scope": "in", "stream": "helper"},
}


class _Removed:
    """The value of a field that `changed` removes."""

    def __repr__(self) -> str:
        """Be the same word in each process, because names of tests contain it."""
        return "removed"


REMOVED = _Removed()


def text(*documents: object) -> str:
    """Return documents as YAML."""
    return yaml.safe_dump_all(documents)


def changed(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Return the document with one field set or removed."""
    result = copy.deepcopy(document)
    *parents, last = path.split(".")
    place = result
    for parent in parents:
        place = place.setdefault(parent, {})
    if value is REMOVED:
        del place[last]
    else:
        place[last] = value
    return result


def label(value: object) -> str:
    """Return a value of a table of tests as a part of the test's name."""
    return str(value)[:40]
