"""Names, labels and annotations of what the operator makes for a copy."""

from __future__ import annotations

from typing import Final

from sluice.api.common import GROUP
from sluice.core import text

UID_LABEL: Final = f"{GROUP}/copy-uid"
ATTEMPT_LABEL: Final = f"{GROUP}/attempt"
CONTROLS_ANNOTATION: Final = f"{GROUP}/controls-of-generation"
RUNTIME_ANNOTATION: Final = f"{GROUP}/runtime-hash"
MANAGED: Final = "app.kubernetes.io/managed-by=sluice-operator"


def child_labels(uid: str, component: str) -> dict[str, str]:
    """Labels of whatever belongs to a copy."""
    return {
        "app.kubernetes.io/name": "sluice",
        "app.kubernetes.io/managed-by": "sluice-operator",
        "app.kubernetes.io/component": component,
        UID_LABEL: uid,
    }


def run_name(job: str) -> str:
    """The name of the ConfigMap that an attempt's driver runs from, by its Job's."""
    return f"{job}-run"


def controls_name(name: str, uid: str) -> str:
    """The name of a copy's controls ConfigMap."""
    return f"{name[:40].rstrip('-.')}-controls-{text.short_hash(uid)}"
