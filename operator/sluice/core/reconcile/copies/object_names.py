"""Name the objects of a copy that its status names too: plan, map of positions, Jobs."""

from __future__ import annotations

from sluice.core.values import text


def plan_name(name: str, uid: str) -> str:
    """Return the name of a copy's plan ConfigMap."""
    return f"{name[:40].rstrip('-.')}-plan-{text.short_hash(uid)}"


def positions_name(name: str, uid: str) -> str:
    """Return the name of the ConfigMap with a copy's position map."""
    return f"{name[:40].rstrip('-.')}-positions-{text.short_hash(uid)}"
