"""Hooks of a copy, for tests of `reconcile`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sluice.core.reconcile.copies.hooks.standing import Point, job_of
from sluice.core.reconcile.copies.world import HookSeen
from sluice.core.reconcile.shared.jobs import JobPhase
from support.reconcile.copies import NOW, UID

HOOKS = {
    "before": {"cronJobRef": {"name": "quiesce"}},
    "after": {"cronJobRef": {"name": "switch"}, "onFailure": "Continue"},
}


def hooks(**changes: Any) -> dict[str, Any]:
    """Return a copy's hooks as YAML has them, with some fields of the first one set."""
    return {**HOOKS, "before": {**HOOKS["before"], **changes}}


def hook_job(
    point: Point, phase: JobPhase = JobPhase.RUNNING, number: int = 1, **changes: Any
) -> dict[str, HookSeen]:
    """Return the Job of a hook, as a world has it; made, and perhaps ended, at NOW."""
    ended = NOW if phase in {JobPhase.SUCCEEDED, JobPhase.FAILED} else None
    seen = HookSeen(name=job_of(UID, point, number), phase=phase, made=NOW, ended=ended)
    return {point: replace(seen, **changes)}
