"""The cost of an operator at rest: half of its resources are finished copies, half are streams."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.cluster import lives
from bench.model import BenchError, Goal, Measurement
from bench.scale import filling
from bench.scale.site import Operator, by_labels, namespace, total
from sluice.kube.api.kinds import EPHEMERAL_STREAM, STREAM_STORE
from sluice.kube.api.objects import REQUESTED_AT

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale.site import Site
    from sluice.kube.api.client import Api

    Say = Callable[[str], None]

COUNTS: Final = (1_000, 5_000, 10_000)
PARTS: Final = ("synced_s", "cpu_cores", "calls_per_min", "memory_MB", "look_p99_s")

SECONDS: Final = 120.0
"""Seconds of the measurement at rest: two rounds of the resync."""

CHANGES: Final = 200
"""Changes of single resources. Each waits for the answer to the last one, and for a pause."""

_STRIDE: Final = 7_919
"""A prime number, which spreads the changes over the resources."""

_PAUSE: Final = 0.1
_SETTLING: Final = 15.0
"""Seconds after the start until the watches are compared with the lists."""

_LEAVING: Final = 500
"""Streams that are deleted among the others."""


def key(count: int, part: str) -> str:
    """Return the key of a measurement."""
    return f"idle_{count}_{part}"


KEYS: Final = tuple(key(count, part) for count in COUNTS for part in PARTS)
LEAVING_KEY: Final = "idle_delete_500_s"


class Rest(NamedTuple):
    """The resources that an operator used at rest."""

    synced: float
    started: float
    cpu: float
    calls: dict[str, float]
    store: dict[str, float]
    memory: float
    peak: float
    answers: list[float]


def measure_idle(site: Site, say: Say, *, scale: float) -> list[Measurement]:
    """Start an operator beside more and more resources, and let it rest.

    Args:
        site: where to measure.
        say: callback for progress messages.
        scale: shrinks the numbers of resources.
    """
    found: list[Measurement] = []
    with namespace(site) as name:
        made = 0
        for whole in COUNTS:
            count = max(20, round(whole * scale) // 2 * 2)
            _fill(site, name, range(made // 2, count // 2), say)
            made = count
            with Operator(site, [name]) as operator:
                rest = _rest(site, operator, name, count, say)
                if whole == COUNTS[-1]:
                    leaving = min(_LEAVING, count // 4)
                    gone = _delete_some(site, operator, name, leaving)
                    say(f"{leaving} of them deleted in {gone:.0f} s")
                    found.append(Measurement(LEAVING_KEY, (gone,), Goal("<", 60)))
            found += _measurements(whole, count, rest)
    return found


def _measurements(whole: int, count: int, rest: Rest) -> list[Measurement]:
    looks = whole / 30  # per minute, since each resource is looked at once in thirty rounds
    p99 = sorted(rest.answers)[int(len(rest.answers) * 0.99)]
    calls = {f"{name} a minute": number for name, number in rest.calls.items()}
    calls |= {f"store: {name} a minute": number for name, number in rest.store.items()}
    return [
        Measurement(
            key(whole, "synced_s"),
            (rest.synced,),
            Goal("<", 60),
            counts={"processor seconds": rest.started},
        ),
        Measurement(key(whole, "cpu_cores"), (rest.cpu,), Goal("<", 0.1), unit=""),
        Measurement(
            key(whole, "calls_per_min"),
            (sum(rest.calls.values()),),
            Goal("<", round(300 + looks)),
            unit="",
            counts=calls,
        ),
        Measurement(
            key(whole, "memory_MB"),
            (rest.memory / 1e6,),
            Goal("<", 300),
            unit="MB",
            counts={"at most, MB": rest.peak / 1e6, "kB a resource": rest.memory / 1e3 / count},
        ),
        Measurement(key(whole, "look_p99_s"), (p99,), Goal("<", 1)),
    ]


def _fill(site: Site, name: str, numbers: range, say: Say) -> None:
    """Make copies that are done, and streams that the operator makes in the store."""
    begun = time.monotonic()

    async def make(api: Api) -> None:
        uri = site.store.controller_uri
        await filling.make(api, name, STREAM_STORE, [filling.store(uri)])
        await filling.make_done(api, name, [filling.copy(name, f"copy-{n}") for n in numbers])
        streams = [filling.stream(name, f"stream-{n}") for n in numbers]
        await filling.make(api, name, EPHEMERAL_STREAM, streams)

    site.run(make)
    applied = time.monotonic() - begun
    with Operator(site, [name]) as operator:
        operator.until("all streams are there", lambda: _streams(operator) == numbers.stop)
    say(
        f"{2 * len(numbers)} more resources made in {applied:.0f} s, and their streams in "
        f"{time.monotonic() - begun - applied:.0f} s"
    )


def _rest(site: Site, operator: Operator, name: str, count: int, say: Say) -> Rest:
    """Start an operator, let it rest, then change single resources."""

    def is_synced() -> bool:
        samples = operator.metrics()
        known = total(samples, "sluice_copies", kind="StreamCopy", state="Succeeded")
        known += total(samples, "sluice_ephemeral_streams", state="Ready")
        idle = total(samples, "sluice_queue_depth") == 0
        return known == count and idle and operator.is_ready

    synced = operator.until("all were looked at", is_synced)
    started = operator.cpu
    say(f"{count}: synced after {synced:.1f} s with {started:.1f} CPU s")
    time.sleep(_SETTLING)
    before, cpu, begun = operator.metrics(), operator.cpu, time.monotonic()
    time.sleep(SECONDS)
    took = time.monotonic() - begun
    cpu, after = (operator.cpu - cpu) / took, operator.metrics()
    memory, peak = operator.memory, operator.peak
    grown = {one: value * 60 / took for one, value in lives.growth(before, after).items()}
    calls = by_labels(grown, "sluice_api_calls_total")
    say(
        f"{count}: {cpu:.3f} cores, {sum(calls.values()):.0f} calls a minute, "
        f"{memory / 1e6:.0f} MB, {peak / 1e6:.0f} MB at most"
    )
    answers = asyncio.run(_answers(site, name, int(_streams(operator))))
    say(f"{count}: {sorted(answers)[len(answers) // 2]:.3f} s to an answer in the median")
    if not operator.is_alive:
        raise BenchError("/livez fails")
    store = by_labels(grown, "sluice_store_call_seconds_count")
    return Rest(synced, started, cpu, calls, store, memory, peak, answers)


async def _answers(site: Site, name: str, streams: int) -> list[float]:
    """Ask for looks at single streams. Return the seconds until each status answers.

    A look ends before its status is written, so the look itself took a little less.
    """
    found: list[float] = []
    names = [f"stream-{n * _STRIDE % streams}" for n in range(CHANGES)]

    async def ask(api: Api) -> None:
        for number, one in zip(itertools.count(), names, strict=False):
            page = await api.page(EPHEMERAL_STREAM, name, fields=f"metadata.name={one}")
            asked = f"{number}-{time.monotonic_ns()}"
            change: dict[str, Any] = {"metadata": {"annotations": {REQUESTED_AT: asked}}}
            async with api.watch(
                EPHEMERAL_STREAM, name, page.version, seconds=60, silence=60
            ) as events:
                begun = time.monotonic()
                await api.patch(EPHEMERAL_STREAM, name, one, change)
                async for event in events:
                    body = event["object"]
                    status = body.get("status") or {}
                    if body["metadata"].get("name") == one and (
                        status.get("lastHandledRequestedAt") == asked
                    ):
                        break
                found.append(time.monotonic() - begun)
            await asyncio.sleep(_PAUSE)

    async with site.connected() as api:
        await ask(api)
    return found


def _delete_some(site: Site, operator: Operator, name: str, count: int) -> float:
    """Delete some of the streams. Return the seconds until they and their streams are gone."""
    names = [f"stream-{n}" for n in range(count)]
    before, begun = _all_streams(operator), time.monotonic()

    async def delete(api: Api) -> None:
        async def one(stream: str) -> None:
            await api.delete(EPHEMERAL_STREAM, name, stream)

        await filling.each(one, names)

    site.run(delete)
    operator.until("they are gone", lambda: _all_streams(operator) <= before - count)
    took = time.monotonic() - begun
    left = {*names} & {*(site.java.streams(name) or ())}
    if left:
        raise BenchError(f"streams are left: {sorted(left)[:5]}")
    return took


def _streams(operator: Operator) -> float:
    """Return the number of EphemeralStreams that have their streams."""
    return total(operator.metrics(), "sluice_ephemeral_streams", state="Ready")


def _all_streams(operator: Operator) -> float:
    """Return the number of EphemeralStreams."""
    return total(operator.metrics(), "sluice_ephemeral_streams")
