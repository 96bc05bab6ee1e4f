"""Generate the page of conditions, reasons, events, metrics and spans from the catalogue.

python hack/gencatalogue.py           write docs/conditions.md
python hack/gencatalogue.py --check   fail if the file is out of date
"""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.api.kinds.streamquery import StreamQuery
from sluice.api.registry import KINDS
from sluice.core.catalogue import (
    METRICS,
    NORMAL,
    OUTCOMES,
    PAGE,
    SPANS,
    ReasonPlace,
    anchor,
    failures,
)
from sluice.core.reconcile.copies.actions import WAIT_SECONDS
from sluice.core.reconcile.copies.decide import START_PATIENCE
from sluice.core.reconcile.copies.failing import HELD, MISSING
from sluice.core.reconcile.ephemeral import deletion, failure
from sluice.core.reconcile.queries.status import DECIDED, PASSING
from sluice.core.reconcile.shared.verdict import ATTEMPTS, LASTING, RECHECK, Verdict, judge
from sluice.core.reconcile.store import APPLIED_LATER, AWAY, PROBE_SECONDS, REFUSING
from sluice.core.values.trouble import Trouble
from sluice.errors import Category

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.core.catalogue import FailureReason, Reason
from sluice.core.reconcile.shared.verdict import Backoff

ROOT = Path(__file__).resolve().parent.parent
NOTE = "Made by hack/gencatalogue.py from operator/sluice/core/catalogue: change that."

PLACES = {
    ReasonPlace.READY: "conditions, event",
    ReasonPlace.VERIFIED: "`Verified`",
    ReasonPlace.RESTORE_VERIFIED: "`RestoreVerified`, event",
    ReasonPlace.DRIFTED: "`Drifted`",
    ReasonPlace.HOOKS: "`HooksSucceeded`, conditions, event",
    ReasonPlace.EVENT: "event",
    ReasonPlace.HISTORY: "`status.history`",
}
FAILURES = ("reason", "kind", "category", "then", "meaning", "what to do")
WAITS, RETRIES, TRIES, STALLS = "waits", "retries", "stalls, tries again", "stalls"


def span(backoff: Backoff) -> str:
    """Return a text for the waits between tries."""
    return f"after {backoff.first:g} s, then twice as long each time, at most {backoff.most:g} s"


REACTIONS = {
    WAITS: f"in progress; looks every {WAIT_SECONDS:.0f} s, and goes on once the cause is gone",
    RETRIES: "in progress; another attempt, later after each failure, then stalls",
    TRIES: f"`Stalled`; tries again {span(RECHECK)}, and goes on once the cause is gone",
    STALLS: "`Stalled`; stays so until the spec is changed or another try is requested",
}


def generate() -> str:
    """Return the page."""
    return f"""\
<!-- {NOTE} -->
# Conditions, reasons, events, metrics, spans

What the operator reports, and what to do about it. `kubectl describe` shows conditions and events.
[The reference](reference.md) has all other fields of a status. [GitOps](gitops.md) says how Flux
and Argo CD show each state.

## A to Z

Look up the reason that `kubectl get` shows. [Failures](#failures) say who has to act, and when the
next attempt begins.

{index()}
## Conditions

Conditions other than `Ready`, `Succeeded` and `HooksSucceeded` are absent while they do not hold.
`Ready` is `Unknown` while work is in progress, waits or is suspended. It is `False` only together
with `Stalled`. While `status.observedGeneration` differs from `metadata.generation`, the operator
has not looked at the latest spec yet.

{conditions()}
## Reasons

Each state has one reason. All conditions of a resource have the same reason, except `Verified`,
`RestoreVerified`, `Drifted` and `HooksSucceeded`. The message of `Ready` tells the state in full,
and what to do. Most others have short messages.

{table(("reason", "kind", "appears in", "meaning", "what to do"), map(reason_row, NORMAL))}
An attempt in `status.history` has an outcome:

{table(("outcome", "meaning"), OUTCOMES)}
## Failures

A failure appears in the conditions and in an event. A copy has it in `status.lastFailure` too, with
the category, which tells who has to act. The message names the objects concerned. Its remedy may
be more specific than the one below. A ScopeCopy lists in `status.failedStreams` the streams that
cannot be copied, each with its reason. The other streams go on.

{table(FAILURES, map(failure_row, failures()))}
### What follows from a failure

A copy does one of four things. Column "then" names it:

{then()}
{backoffs()}
A copy stalls for good after more than `spec.backoffLimit` failed attempts in a row, of any reason.
Once more bytes are staged than before, counting restarts. After
{lasting()} there is no other attempt:
it would copy everything again and fail in the same way. A failure that keeps an attempt from
beginning does not count, and the operator looks again for ever. A changed spec or a new value of
the annotation `sluice.dev/requestedAt` starts an attempt at once, and restarts counting.

When a copy stalls by a failure of the categories Spec and Integrity, its staged bytes are deleted,
except after {missing()}.
In all other cases staged bytes stay, and the next attempt goes on there.

A copy, or an archive, that names a StreamStore of the wrong kind (`InvalidSpec`) is `Stalled`
before any attempt. It goes on by itself once the StreamStore is replaced.

If a driver's pod does not start, the conditions have the reason at once. After
{START_PATIENCE.total_seconds() / 60:.0f} minutes the attempt counts as failed, even if the reason
is unknown.

An EphemeralStream waits for a store, a scope or an owner, and looks every
{failure.WAIT_SECONDS:.0f} s in any case. It retries other failures that may pass by themselves
after {failure.RETRY_SECONDS:.0f} s, whatever the category. When the spec, an owner or the store
has to be changed, it is `Stalled`. It looks again after {failure.STALLED_SECONDS:.0f} s, and after
a `Conflict` after {failure.WAIT_SECONDS:.0f} s.

An EphemeralStream that is being deleted is never `Stalled`. It tries to release its streams after
{deletion.RETRY_SECONDS[0]:.0f} s, then less and less often, in the end every
{deletion.RETRY_SECONDS[1]:.0f} s. It stops only at `spec.deletionTimeoutSeconds`, or after
{deletion.GONE_PATIENCE / 60:.0f} minutes if its StreamStore or Secret is gone.

A StreamStore that is ready is asked every {PROBE_SECONDS:.0f} s. A store that does not answer is
asked after {AWAY.first:.0f} s, then every {AWAY.most:.0f} s, and less often if many stores of a
namespace are away, down to every {REFUSING.most:.0f} s. If a person has to mend something, the
operator asks again {span(REFUSING)}.
It asks at once when the StreamStore, or a copy that names it, is made or changed.
While its Secret or claim is missing, or the store does not answer, it is `Unknown` and
`Reconciling`. When its spec, its Secret or the store has to be changed, it is `Stalled`.

## Events

The operator writes an event when the reason of `Ready` changes, with the same reason and message.
Repeating an event increases its count. Events of failures have the type `Warning`, and so have
{warnings()}.
No condition has the reason `Orphaned`, since the resource is gone then.

## Metrics

The operator serves these metrics under `/metrics`.

{table(("metric", "type", "labels", "meaning"), metric_rows())}
## Spans

With [tracing](operations.md#traces), processes send these spans. One that failed has the attribute
`error.type`, with a reason of this page or the type of an error, and never a message. The names of
the other attributes begin with `sluice.`.

{table(("span", "of", "parent", "attributes", "meaning"), span_rows())}"""


def warnings() -> str:
    """Return the states whose events are warnings."""
    *most, last = (f"`{one.name}`" for one in NORMAL if one.warning)
    return f"{', '.join(most)} and {last}"


def index() -> str:
    """Return the table of all reasons by their first letter, with links to their rows."""
    names = sorted([*(one.name for one in NORMAL), *(one.name for one in failures())])
    rows = [
        (letter, ", ".join(f"[`{name}`](#{anchor(name).partition('#')[2]})" for name in group))
        for letter, group in groupby(names, key=itemgetter(0))
    ]
    return table(("", "reasons"), rows)


def conditions() -> str:
    """Return the table of the conditions of each kind."""
    rows = [
        (kind.name, f"`{name}`", says) for kind in KINDS for name, says in kind.conditions.items()
    ]
    return table(("kind", "type", "while it is True"), rows)


def reason_row(reason: Reason) -> tuple[str, ...]:
    """Return the row of a reason that is not a failure."""
    return (
        name_cell(reason.name),
        kinds(reason.kinds),
        PLACES[reason.place],
        reason.means,
        reason.remedy,
    )


def failure_row(failure: FailureReason) -> tuple[str, ...]:
    """Return the row of a reason that is a failure."""
    return (
        name_cell(failure.name),
        kinds(failure.kinds),
        failure.category,
        what_follows(failure),
        failure.means,
        failure.remedy,
    )


def is_of_queries(failure: FailureReason) -> bool:
    """Tell whether only queries report a failure."""
    return failure.kinds == (StreamQuery.__name__,)


def what_follows(failure: FailureReason) -> str:
    """Return the name of a copy's reaction to a failure; a query's if only queries report it."""
    if failure.waits:
        return WAITS
    if is_of_queries(failure) and failure.name in DECIDED | PASSING:
        return STALLS if failure.name in DECIDED else RETRIES
    if failure.name in APPLIED_LATER:
        return f"{TRIES} (StreamStore: {WAITS})"
    verdict = judged(failure.category, failure.name, retryable=failure.retryable)
    if not verdict.final:
        return RETRIES
    return STALLS if verdict.wait is None else TRIES


def reaction(failure: FailureReason) -> str:
    """Return a sentence about a copy's reaction to a failure, with the waits."""
    then = what_follows(failure)
    text = REACTIONS[then.partition(" (")[0]]
    waits = f" Attempts begin {span(ATTEMPTS[failure.category])}." if then == RETRIES else ""
    return f"{text}.{waits}"


def keeps(failure: FailureReason) -> bool:
    """Tell whether the staged bytes of a copy stay after a failure."""
    ends = failure.category in {Category.SPEC, Category.INTEGRITY} and not failure.waits
    return not ends or failure.name in MISSING | HELD


def judged(category: Category, reason: str, *, retryable: bool) -> Verdict:
    """Return the verdict on the first attempt that fails with this reason."""
    trouble = Trouble(reason=reason, category=category, message="", remedy="", retryable=retryable)
    return judge(trouble, failures=1, limit=1)


def then() -> str:
    """Return the table of a copy's reactions."""
    return table(("then", "the copy"), REACTIONS.items())


def backoffs() -> str:
    """Return the table of waits before retries, by category."""
    rows = [(category.value, span(backoff)) for category, backoff in ATTEMPTS.items()]
    return table(("retries of category", "wait"), rows)


def missing() -> str:
    """Return the failures after which staged bytes stay."""
    *most, last = (f"`{one.name}`" for one in failures() if one.name in MISSING | HELD)
    return f"{', '.join(most)} and {last}"


def lasting() -> str:
    """Return the failures after which there is no other attempt."""
    *most, last = (f"`{name}`" for name in sorted(LASTING))
    return f"{', '.join(most)} or {last}"


def metric_rows() -> Iterable[tuple[str, ...]]:
    """Yield the rows of the metrics."""
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"`{metric.name}`", metric.kind, labels, metric.means


def span_rows() -> Iterable[tuple[str, ...]]:
    """Yield the rows of the spans."""
    for span in SPANS:
        name = span.name if " " in span.name else f"`{span.name}`"
        attributes = ", ".join(f"`{one}`" for one in span.attributes)
        yield name, span.process, span.parent, attributes, span.means


def name_cell(name: str) -> str:
    """Return a cell with a reason and the anchor for links to it."""
    return f'<a id="{anchor(name).partition("#")[2]}"></a>`{name}`'


def kinds(names: Iterable[str]) -> str:
    """Return the kinds as a text."""
    return ", ".join(names)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main() -> int:
    """Write or check the page. Return 1 if a check finds drift, else 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail on drift")
    check: bool = parser.parse_args().check
    path, text = ROOT / PAGE, generate()
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    if check:
        print(
            f"{PAGE} differs from the catalogue: run python hack/gencatalogue.py", file=sys.stderr
        )
        return 1
    path.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
