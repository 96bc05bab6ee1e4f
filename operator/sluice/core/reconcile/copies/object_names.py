"""Name the objects of a copy that its status names too: plan, map of positions, Jobs."""

from __future__ import annotations

from sluice.core.values import text


def plan_name(name: str, uid: str) -> str:
    """Return the name of a copy's plan ConfigMap."""
    return f"{name[:40].rstrip('-.')}-plan-{text.short_hash(uid)}"


def positions_name(name: str, uid: str) -> str:
    """Return the name of the ConfigMap with a copy's position map."""
    return f"{name[:40].rstrip('-.')}-positions-{text.short_hash(uid)}"


def job_name(uid: str, attempt: int) -> str:
    """Return the name of an attempt's Job. Two operators give the same name.

    Names sort by attempt. Older versions wrote the number without zeros, so a Job is found by its
    owner and its label, never by its name.
    """
    return f"{job_prefix(uid)}{attempt:04}"


def job_prefix(uid: str) -> str:
    """Return the beginning of the names of a copy's Jobs and pods, in any version."""
    return f"sluice-{text.short_hash(uid)}-"
