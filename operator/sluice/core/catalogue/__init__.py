"""List every reason, event, metric and span, with its meaning and its remedy.

Conditions and events share their reasons. The reasons of failures are the names of the errors, with
texts in `sluice.errors`. The other reasons are here. `docs/conditions.md` is generated from both.
"""

from sluice.core.catalogue.failures import (
    ABSTRACT,
    ENDS,
    OF_COMMANDS,
    PAGE,
    FailureReason,
    anchor,
    failures,
    is_warning,
    meaning,
)
from sluice.core.catalogue.metrics import METRICS, Metric
from sluice.core.catalogue.outcomes import OUTCOMES
from sluice.core.catalogue.reason import Reason, ReasonPlace
from sluice.core.catalogue.reasons import NORMAL
from sluice.core.catalogue.spans import SPANS, SpanKind

__all__ = [
    "ABSTRACT",
    "ENDS",
    "METRICS",
    "NORMAL",
    "OF_COMMANDS",
    "OUTCOMES",
    "PAGE",
    "SPANS",
    "FailureReason",
    "Metric",
    "Reason",
    "ReasonPlace",
    "SpanKind",
    "anchor",
    "failures",
    "is_warning",
    "meaning",
]
