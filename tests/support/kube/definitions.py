"""Definitions of kinds that tests make for themselves."""

from __future__ import annotations

from typing import Any

from localcluster.release import TEST_DEFINITIONS

Object = dict[str, Any]


def left(definition: Object) -> Object:
    """Label a definition that the test leaves. It is deleted when all lanes have ended.

    While a definition is being deleted, Kubernetes' garbage collector stands still, for minutes if
    its watches had not begun. Then nothing deletes the pods of deleted Jobs, and other tests wait
    in vain.
    """
    name, _, value = TEST_DEFINITIONS.partition("=")
    metadata = definition["metadata"]
    labels = {**metadata.get("labels", {}), name: value}
    return {**definition, "metadata": {**metadata, "labels": labels}}
