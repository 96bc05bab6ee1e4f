"""Definitions of kinds that tests make for themselves."""

from __future__ import annotations

from typing import Any

from localcluster.release import TEST_DEFINITIONS

Object = dict[str, Any]


def left(definition: Object) -> Object:
    """Label a definition that the test leaves behind. It is deleted after all lanes have ended.

    While a definition is being deleted, Kubernetes' garbage collector stands still. This takes
    minutes if the collector's watches had not begun. Then the pods of deleted Jobs stay, and other
    tests wait in vain.
    """
    name, _, value = TEST_DEFINITIONS.partition("=")
    metadata = definition["metadata"]
    labels = {**metadata.get("labels", {}), name: value}
    return {**definition, "metadata": {**metadata, "labels": labels}}
