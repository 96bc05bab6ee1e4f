"""Generate the page of conditions, reasons, events and metrics from the catalogue.

python hack/gencatalogue.py           write docs/conditions.md
python hack/gencatalogue.py --check   fail when it differs from what would be written
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.api.registry import KINDS
from sluice.core.catalogue import METRICS, NORMAL, OUTCOMES, PAGE, Place, anchor, failures
from sluice.core.reconcile.copies.decide import MISSING, START_PATIENCE, WAIT_SECONDS
from sluice.core.reconcile.ephemeral import deletion, failure
from sluice.core.reconcile.shared.verdict import ATTEMPTS, LASTING, RECHECK, Verdict, judge
from sluice.core.reconcile.store import AWAY, PROBE_SECONDS
from sluice.core.values.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.core.catalogue import FailureReason, Reason
    from sluice.core.reconcile.shared.verdict import Backoff
    from sluice.errors import Category

ROOT = Path(__file__).resolve().parent.parent
NOTE = "Made by hack/gencatalogue.py from operator/sluice/core/catalogue: change that."

PLACES = {
    Place.READY: "conditions, event",
    Place.VERIFIED: "`Verified`",
    Place.DRIFTED: "`Drifted`",
    Place.EVENT: "event",
    Place.HISTORY: "`status.history`",
}
FAILURES = ("reason", "kind", "category", "then", "meaning", "what to do")
WAITS, RETRIES, TRIES, STALLS = "waits", "retries", "stalls, tries again", "stalls"


def generate() -> str:
    """The page."""
    return f"""\
<!-- {NOTE} -->
# Conditions, reasons, events, metrics

What the operator says, and what to do about it. `kubectl describe` shows conditions and events;
[the reference](reference.md) has all other fields of a status, [GitOps](gitops.md) what Flux and
Argo CD make of each state.

## Conditions

A condition that does not hold is absent, but for `Ready` and `Succeeded`. `Ready` is `Unknown`
while work goes on, waits or is suspended, and `False` only together with `Stalled`. While
`status.observedGeneration` differs from `metadata.generation`, the operator has not looked at the
latest spec yet.

{conditions()}
## Reasons

Each state has one reason, the same in all conditions of a resource but `Verified` and `Drifted`.

{table(("reason", "kind", "said in", "meaning", "what to do"), map(reason_row, NORMAL))}
An attempt in `status.history` has an outcome:

{table(("outcome", "meaning"), OUTCOMES)}
## Failures

Said in the conditions, in an event, and by a copy in `status.lastFailure` with the category, which
tells whose move it is. The message has the names concerned; what to do may stand there in other
words, where more is known. A ScopeCopy says in `status.failedStreams` why single streams cannot be
copied; the others go on.

{table(FAILURES, map(failure_row, failures()))}
### What follows from a failure

A copy does one of four things:

{then()}
{backoffs()}
It stalls for good after more than `spec.backoffLimit` failed attempts in a row, whatever they fail
by; once more bytes are staged than before, it counts from the beginning. An attempt that fails by
{lasting()} is the last at once:
another one would copy everything again and come to the same end. What keeps an attempt from
beginning costs nothing, and is looked at again for ever. A changed spec or a new value of the
annotation `sluice.dev/requestedAt` makes it try at once, and count from the beginning. When it
stalls by a failure of the categories Spec and Integrity, what was staged is dropped, but not for
{missing()}.
In all other cases it stays, and the next attempt goes on there.

A copy, or an archive, that names a StreamStore of the wrong kind (`InvalidSpec`) is `Stalled`
before any attempt, and goes on by itself once the StreamStore is another one.

A driver's pod that does not start says why in the conditions at once, and counts as a failed
attempt after {START_PATIENCE.total_seconds() / 60:.0f} minutes, also where nobody tells why.

A StreamStore is `Unknown` and looks again by itself while its Secret or claim is not there, or
the store does not answer; what somebody has to change there is `Stalled`.

An EphemeralStream waits for a store, a scope or an owner, looking every
{failure.WAIT_SECONDS:.0f} s anyway. What else may help by itself it tries again after
{failure.RETRY_SECONDS:.0f} s, whatever the category. What somebody has to change is `Stalled`,
and looked at again after {failure.STALLED_SECONDS:.0f} s, a `Conflict` after
{failure.WAIT_SECONDS:.0f} s. While it is being deleted it is never `Stalled`: its streams are
tried to be let go after {deletion.RETRY_SECONDS[0]:.0f} s, then more and more seldom, in the end
every {deletion.RETRY_SECONDS[1]:.0f} s, for ever or until `spec.deletionTimeoutSeconds`; for
{deletion.GONE_PATIENCE / 60:.0f} minutes where its StreamStore or Secret is gone.

A StreamStore is asked every {PROBE_SECONDS:.0f} s while it is ready. While it is not, whatever the
failure, it is asked after {AWAY.first:.0f} s, then after twice as long each time, at most
{AWAY.most:.0f} s; and at once when it, or a copy that names it, is made or changed. It says
`Reconciling` where that may help by itself, and `Stalled` where somebody has to change something.

## Events

An event is written when the reason of `Ready` changes, with the same reason and message; saying the
same again counts it up. Failures are of type `Warning`, as are {warnings()}.
No condition says `Orphaned`, since the resource is gone then.

## Metrics

Served by the operator under `/metrics`.

{table(("metric", "type", "labels", "meaning"), metric_rows())}"""


def warnings() -> str:
    """The states that events say as warnings."""
    *most, last = (f"`{one.name}`" for one in NORMAL if one.warning)
    return f"{', '.join(most)} and {last}"


def conditions() -> str:
    """The conditions of each kind."""
    rows = [
        (kind.name, f"`{name}`", says) for kind in KINDS for name, says in kind.conditions.items()
    ]
    return table(("kind", "type", "while it is True"), rows)


def reason_row(reason: Reason) -> tuple[str, ...]:
    """A reason that is no failure."""
    return (
        name_cell(reason.name),
        kinds(reason.kinds),
        PLACES[reason.place],
        reason.means,
        reason.remedy,
    )


def failure_row(failure: FailureReason) -> tuple[str, ...]:
    """A reason that is a failure."""
    return (
        name_cell(failure.name),
        kinds(failure.kinds),
        failure.category,
        what_follows(failure),
        failure.means,
        failure.remedy,
    )


def what_follows(failure: FailureReason) -> str:
    """What a copy does after a failure."""
    if failure.waits:
        return WAITS
    verdict = judged(failure.category, failure.name, retryable=failure.retryable)
    if not verdict.final:
        return RETRIES
    return STALLS if verdict.wait is None else TRIES


def judged(category: Category, reason: str, *, retryable: bool) -> Verdict:
    """The verdict over the first attempt that fails so."""
    trouble = Trouble(reason=reason, category=category, message="", remedy="", retryable=retryable)
    return judge(trouble, failures=1, limit=1)


def then() -> str:
    """What each way to go on means."""
    rows = [
        (
            WAITS,
            f"in progress; goes on when it has passed, looks every {WAIT_SECONDS:.0f} s anyway",
        ),
        (RETRIES, "in progress; another attempt, later after each failure, then stalls"),
        (TRIES, f"`Stalled`; tries again {span(RECHECK)}, and goes on when it has passed"),
        (STALLS, "`Stalled`; nothing more happens until somebody changes or asks for something"),
    ]
    return table(("then", "the copy"), rows)


def backoffs() -> str:
    """How long retries take, by category."""
    rows = [(category.value, span(backoff)) for category, backoff in ATTEMPTS.items()]
    return table(("retries of category", "wait"), rows)


def missing() -> str:
    """The failures that leave what is staged."""
    *most, last = (f"`{one.name}`" for one in failures() if one.name in MISSING)
    return f"{', '.join(most)} and {last}"


def lasting() -> str:
    """The failures after which no other attempt is made."""
    *most, last = (f"`{name}`" for name in sorted(LASTING))
    return f"{', '.join(most)} or {last}"


def span(backoff: Backoff) -> str:
    """The waits between tries."""
    return f"after {backoff.first:g} s, then twice as long each time, at most {backoff.most:g} s"


def metric_rows() -> Iterable[tuple[str, ...]]:
    """The metrics."""
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"`{metric.name}`", metric.kind, labels, metric.means


def name_cell(name: str) -> str:
    """A reason that can be linked to."""
    return f'<a id="{anchor(name).partition("#")[2]}"></a>`{name}`'


def kinds(names: Iterable[str]) -> str:
    """The kinds that say it."""
    return ", ".join(names)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main() -> int:
    """Write or check the page; the exit status is 1 when a check finds drift."""
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
