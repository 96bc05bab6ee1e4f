"""Every reason, event and metric, with the sentence that says what it means and what to do.

Conditions and events share their reasons. Those of failures are the names of the errors
(`sluice.errors`), whose texts stand there; the others are here. `docs/conditions.md` is generated
from both.
"""

from sluice.core.catalogue.failures import (
    ABSTRACT,
    OF_COMMANDS,
    PAGE,
    FailureReason,
    anchor,
    failures,
    is_warning,
)
from sluice.core.catalogue.metrics import METRICS, Metric
from sluice.core.catalogue.reasons import NORMAL, OUTCOMES, Place, Reason

__all__ = [
    "ABSTRACT",
    "METRICS",
    "NORMAL",
    "OF_COMMANDS",
    "OUTCOMES",
    "PAGE",
    "FailureReason",
    "Metric",
    "Place",
    "Reason",
    "anchor",
    "failures",
    "is_warning",
]
