"""List how attempts end."""

from __future__ import annotations

from typing import Final

OUTCOMES: Final = (
    (
        "Succeeded",
        "The target, or every target of a scope, was complete afterwards; or the run was recorded.",
    ),
    ("Failed", "The reason is a failure, or says that some streams of a scope are not copied."),
    ("Suspended", "spec.suspend was set while the attempt ran."),
    (
        "Stopped",
        "The StreamStore's access was withdrawn while the attempt ran. Staged bytes are kept.",
    ),
    (
        "Replaced",
        "spec.runtime was changed before the attempt's driver ran, or while it followed a source.",
    ),
)
"""How attempts end, in status.history and in the metric sluice_attempts_total."""
