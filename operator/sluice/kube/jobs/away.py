"""Jobs that work for a copy in the namespace of a StreamStore.

No owner reference leads to a copy of another namespace, so the operator deletes them: with the
copy's finalizer, and in a sweep. All that their drivers mount has a Job as its owner.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.errors import (
    CopyAborted,
    DriverEvicted,
    DriverLost,
    DriverOutOfMemory,
    ImagePullFailed,
    PodRefused,
    QuotaExceeded,
    SecretNotFound,
    Unschedulable,
)
from sluice.kube.api.kinds import JOB
from sluice.kube.api.names import UID_LABEL
from sluice.kube.api.responses import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sluice.core.values.trouble import Trouble
    from sluice.core.workloads.plan import Plan
    from sluice.kube.api.client import Api
    from sluice.kube.api.names import Child

REFUSALS: Final = frozenset({400, 403, 422})
"""Status codes by which the API server refuses an object."""

_REMEDY: Final = (
    "Ask the owners of that namespace: its quota, the Job, its pod and their events tell them why."
)

_OF_CLUSTER: Final = frozenset(
    error.__name__
    for error in (
        DriverEvicted,
        DriverLost,
        DriverOutOfMemory,
        ImagePullFailed,
        PodRefused,
        QuotaExceeded,
        SecretNotFound,
        Unschedulable,
    )
)
"""Reasons whose messages quote Kubernetes: quotas, nodes, names of pods and Secrets."""


def hushed(trouble: Trouble | None, job: str, namespace: str) -> Trouble | None:
    """Return a trouble of a driver without the words of its namespace, which is not the copy's.

    Args:
        trouble: what is wrong.
        job: the name of the Job.
        namespace: its namespace.
    """
    if trouble is None or trouble.reason not in _OF_CLUSTER:
        return trouble
    return trouble.model_copy(update={"message": _words(job, namespace), "remedy": _REMEDY})


@contextmanager
def quietly(child: Child, job: str) -> Iterator[None]:
    """Raise the refusals of an API server without its words, if they are about another namespace.

    Args:
        child: the copy, as its objects name it.
        job: the name of the Job.
    """
    try:
        yield
    except (Refused, QuotaExceeded, PodRefused) as error:
        if child.host is None:
            raise
        words = _words(job, child.host)
        if isinstance(error, Refused) and error.status not in REFUSALS:
            raise Refused(words, status=error.status, why=error.why) from error
        full = isinstance(error, QuotaExceeded) or "exceeded quota" in error.message
        kind = QuotaExceeded if full else PodRefused
        raise kind(words, remedy=_REMEDY) from error


def _words(job: str, namespace: str) -> str:
    return (
        f"the driver of the Job {job} in namespace {namespace!r} does not start, or has ended "
        "without a word"
    )


def check_addresses(plan: Plan, stores: Iterable[StoreSeen | Trouble | None]) -> None:
    """Check that a driver in a StreamStore's namespace opens what StreamStores name, only.

    Its pod mounts the Secrets that the plan names. A plan gets its addresses from StreamStores when
    it is made, so this only fails if they have changed since.

    Args:
        plan: the plan.
        stores: the StreamStores of the copy, all of that namespace.

    Raises:
        CopyAborted: the plan has another address.
    """
    known = [one.address for one in stores if isinstance(one, StoreSeen)]
    for address in (*plan.sources, plan.target):
        if address.model_copy(update={"archive": None}) not in known:
            raise CopyAborted("the plan is of other stores than the StreamStores name now")


async def clear(api: Api, child: Child) -> int:
    """Delete all that works for a copy in the namespace of a StreamStore. It may be gone already.

    These are its Jobs. Kubernetes deletes what they own: their pods, and what these mount.

    Args:
        api: the API server.
        child: the copy, with that namespace as its host.

    Returns:
        How many Jobs were deleted.

    Raises:
        ApiUnavailable: the API server refuses, or could not be asked.
    """
    deleted = 0
    async for page in api.pages(JOB, child.place, labels=f"{UID_LABEL}={child.uid}"):
        for meta in (job["metadata"] for job in page if child.has(job)):
            deleted += await api.delete(JOB, child.place, meta["name"], uid=meta["uid"])
    return deleted
