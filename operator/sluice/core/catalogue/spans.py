"""List the spans that processes send if they are traced, see `sluice.tracing`."""

from __future__ import annotations

from typing import Final, NamedTuple


class SpanKind(NamedTuple):
    """A kind of span: its name, the process that makes it, its parent, attributes and meaning.

    Names in attributes lack their prefix `sluice.`.
    """

    name: str
    process: str
    parent: str
    attributes: tuple[str, ...]
    means: str


_OPERATOR: Final = "operator"
_BOTH: Final = "driver, command"

ACTION: Final = "an action's name"
STEP: Final = "a step's name"
"""The names of spans that have the name of what is done, as the log has it."""

SPANS: Final = (
    SpanKind(
        "reconcile",
        _OPERATOR,
        "the first `reconcile` of the attempt",
        ("kind", "namespace", "resource", "uid", "attempt", "reason"),
        "A look at a resource that led to actions, and these. Other looks have no span.",
    ),
    SpanKind("look", _OPERATOR, "`reconcile`", (), "What the operator asked before it decided."),
    SpanKind(
        ACTION,
        _OPERATOR,
        "`reconcile`",
        (),
        "An action, such as `WritePlan`, or `StartJob`, which makes an attempt's Job.",
    ),
    SpanKind("driver", "driver", "`StartJob`", ("resource", "attempt"), "The run of a driver."),
    SpanKind(
        "run",
        "command",
        "the context in `TRACEPARENT`, if there is one",
        ("resource",),
        "The work for one resource of a file, or a restore.",
    ),
    SpanKind(
        "plan", _BOTH, "`driver`, `run`", (), "Planning: in drivers only for archives in volumes."
    ),
    SpanKind(
        STEP,
        _BOTH,
        "`driver`, `run`",
        ("stream", "steps"),
        "Steps of one kind that follow one another, of a single stream: `Transfer` stages all "
        "slices, `Verify` compares them, `Publish` makes them readable, `Follow` follows a source.",
    ),
    SpanKind(
        "stream",
        _BOTH,
        "`driver`, `run`",
        ("stream", "steps"),
        "All steps of one of a scope's streams.",
    ),
)
