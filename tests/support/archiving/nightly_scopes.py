"""A scope that is archived every night: make its runs, lose parts of them, and restore one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.archive.manifest import Maker
from sluice.core.archive.retention import Retention
from sluice.core.scope.request import ArchiveTo, RestoreFrom, ScopeRequest, Selector
from sluice.core.scope.runs import ScopeRun, scope_run_name
from sluice.core.scope.scope import StreamState
from sluice.core.workloads.answers import ScopeEnded
from sluice.engine.scope.series import record_scope_run
from sluice.engine.tasks.limits import Limits
from sluice.pipelines.programs import run as program
from support.archiving.scope_roots import BACK, FOLDER, TO, Env
from support.engine.scope_drivers import source_name
from support.engine.scope_requests import drop
from support.engine.sources import events_of
from support.model import segment_name

if TYPE_CHECKING:
    from sluice.engine.scope.report import ScopeReport

NAMES = ["s000", "s001", "s002", "s003"]
COPIED = StreamState.COPIED.value


def nightly(series: str, name: str, *streams: str) -> ScopeRequest:
    """Return the request of a resource that archives these streams, or all, again and again."""
    return TO.model_copy(
        update={
            "series": series,
            "scope_id": series,
            "on_exists": "Append",
            "archive": ArchiveTo(maker=Maker(id=series, name=f"ScopeCopy team/{name}")),
            "include": tuple(Selector(type="Exact", value=one) for one in streams),
        }
    )


NIGHTLY = nightly("5e" * 16, "nightly")
OTHER = nightly("6f" * 16, "other", "s003")
ALL = Retention()


def night(
    env: Env, key: str, retention: Retention = ALL, *, copy: ScopeRequest = NIGHTLY
) -> tuple[ScopeReport, int]:
    """Make a run of the scope, record it and tidy. Return its report and its number."""
    request = copy.as_run(key)
    report = env.run(request)
    ended = env.resolved(request, ask=True)
    assert isinstance(ended, ScopeEnded)
    assert ended.number is None
    number = record_scope_run(request, ended, env.root, retention)
    recorded = env.resolved(request, ask=True)
    assert isinstance(recorded, ScopeEnded)
    assert recorded.number == number
    env.abandon(request)
    return report, number


def nightly_as_driven(env: Env, key: str, retention: Retention) -> ScopeReport:
    """Make a run, tidy the archives as its driver does, and then record it."""
    request = NIGHTLY.as_run(key)
    report = env.run(request)
    program._tidy_all(report, env.root, retention, Limits)
    keep(env, request, retention)
    return report


def keep(env: Env, request: ScopeRequest, retention: Retention) -> None:
    """Record a run that is over, and delete its log."""
    ended = env.resolved(request, ask=True)
    assert isinstance(ended, ScopeEnded)
    record_scope_run(request, ended, env.root, retention)
    env.abandon(request)


def lose(env: Env, name: str) -> dict[str, bytes]:
    """Delete an archive, and return its objects."""
    lost = {
        key: data for key, data in env.objects.held.items() if key.startswith(f"{FOLDER}/{name}/")
    }
    for key in lost:
        del env.objects.held[key]
    return lost


def write(env: Env, number: int = 0) -> None:
    """Write an event to a stream."""
    env.world.segments[segment_name(source_name(number), 0)].data += events_of([7])


def record(env: Env, number: int) -> ScopeRun:
    """Return the record of a run."""
    data = env.objects.held[f"{FOLDER}/{scope_run_name(number)}"]
    return ScopeRun.model_validate_json(data)


def restored(env: Env, **wanted: int) -> dict[str, list[bytes]]:
    """Restore a run into an empty scope, and return the content of its streams."""
    for name in [one for one in env.world.streams if one.scope == "out"]:
        drop(env.world, name)
    env.world.scopes.add("out")
    request = back(**wanted)
    env.run(request)
    env.abandon(request)
    return env.content("out")


def back(**wanted: int) -> ScopeRequest:
    """Return the request to restore a run."""
    return BACK.model_copy(update={"restore": RestoreFrom(**wanted)})
