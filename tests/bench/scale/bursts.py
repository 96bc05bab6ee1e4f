"""An operator under bursts: many submitted resources, mistakes, and a store that is away."""

from __future__ import annotations

import json
import time
from statistics import median
from typing import TYPE_CHECKING, Final

from bench.cluster import lives
from bench.model import BenchError, Goal, Measurement
from bench.scale import filling
from bench.scale.site import Operator, by_labels, namespace, total
from sluice.kube.api.kinds import EPHEMERAL_STREAM, STREAM_COPY, STREAM_STORE

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale.site import Site
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object

    Say = Callable[[str], None]

SUBMITS_KEY: Final = "submits_per_min"
CALLS_KEY: Final = "submit_api_calls"
NAMESPACE_KEY: Final = "namespace_2000_gone_s"
INVALID_KEYS: Final = ("invalid_5000_calls_per_min", "invalid_5000_cpu_cores")
AWAY_KEYS: Final = ("away_5000_calls_per_min", "away_5000_cpu_cores")
KEYS: Final = (SUBMITS_KEY, CALLS_KEY, NAMESPACE_KEY, *INVALID_KEYS, *AWAY_KEYS)

SUBMITS: Final = 100
OVER: Final = 1_400
STREAMS: Final = 500
MISTAKEN: Final = 5_000
RUNS: Final = 3

SECONDS: Final = 120.0
"""Seconds of the measurement, once all resources have their conditions."""

_AWAY: Final = "tcp://127.0.0.1:9"
_QUOTA: Final = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "no-pods"},
    "spec": {"hard": {"pods": "0"}},
}


def measure_submits(site: Site, say: Say, *, scale: float) -> list[Measurement]:
    """Apply copies at once under a quota that allows no pods, and count Jobs and calls.

    Then delete such a namespace, with other resources in it, while its copies are at work.
    """
    count = max(4, round(SUBMITS * scale))
    rates: list[float] = []
    took: list[float] = []
    calls: dict[str, float] = {}
    for _ in range(RUNS):
        with namespace(site) as name, Operator(site, [name]) as operator:
            seconds, cpu, grown = _submit(site, operator, name, count)
            rates.append(count / seconds * 60)
            took.append(cpu / count)
            calls = {call: number / count for call, number in grown.items()}
            say(
                f"{count} Jobs in {seconds:.1f} s, each with {sum(calls.values()):.1f} calls and "
                f"{took[-1] * 1000:.0f} ms of a processor"
            )
    each = {"processor seconds of the operator for each": median(took)}
    return [
        Measurement(SUBMITS_KEY, tuple(rates), Goal(">=", 300), unit="", counts=each),
        Measurement(CALLS_KEY, (sum(calls.values()),), unit="", counts=calls),
    ]


def _submit(
    site: Site, operator: Operator, name: str, count: int
) -> tuple[float, float, dict[str, float]]:
    """Apply copies.

    Returns:
        The seconds until all Jobs are there, the operator's processor seconds, and its calls.
    """
    site.cluster.kubectl(f"--namespace={name}", "apply", "--filename=-", stdin=json.dumps(_QUOTA))
    site.java.create(name, "source")
    site.java.write(name, "source", events=100, keys=4)

    async def prepare(api: Api) -> None:
        await filling.make(api, name, STREAM_STORE, [filling.store(site.store.controller_uri)])

    async def submit(api: Api) -> None:
        bodies = [filling.copy(name, f"copy-{n}") for n in range(count)]
        await filling.make(api, name, STREAM_COPY, bodies)

    site.run(prepare)
    operator.until("the operator is ready", lambda: operator.is_ready)
    operator.until("the store is ready", lambda: _ready_stores(operator) == 1)
    before, cpu, begun = operator.metrics(), operator.cpu, time.monotonic()
    site.run(submit)
    operator.until("all Jobs are there", lambda: _jobs(operator, before) == count)
    seconds, cpu = time.monotonic() - begun, operator.cpu - cpu
    grown = lives.growth(before, operator.metrics())
    there = len(site.list(f"/apis/batch/v1/namespaces/{name}/jobs"))
    if there != count:
        raise BenchError(f"there are {there} Jobs for {count} copies")
    return seconds, cpu, by_labels(grown, "sluice_api_calls_total")


def measure_namespace(site: Site, say: Say, *, scale: float) -> list[Measurement]:
    """Delete a namespace of 2,000 resources while 100 of its copies are at work.

    Raises:
        BenchError: the namespace does not go, or a stream of it is left in the store.
    """
    over, streams, count = (max(4, round(one * scale)) for one in (OVER, STREAMS, SUBMITS))
    with namespace(site) as name, Operator(site, [name]) as operator:
        _submit(site, operator, name, count)

        async def make(api: Api) -> None:
            await filling.make_done(
                api, name, [filling.copy(name, f"done-{n}") for n in range(over)]
            )
            bodies = [filling.stream(name, f"stream-{n}") for n in range(streams)]
            await filling.make(api, name, EPHEMERAL_STREAM, bodies)

        site.run(make)
        operator.until("the streams are there", lambda: _ready_streams(operator) == streams)
        say(f"{over} copies are over, {streams} streams are held, {count} copies are at work")
        begun = time.monotonic()
        words = ("delete", "namespace", name, "--wait=true", "--timeout=1800s")
        site.cluster.kubectl(*words, timeout=1810)
        seconds = time.monotonic() - begun
        left = [one for one in site.java.streams(name) or () if one != "source"]
        if left:
            raise BenchError(f"streams are left: {left[:5]}")
        if not operator.is_alive:
            raise BenchError("/livez fails")
        say(f"the namespace is gone after {seconds:.0f} s, and nothing of it is in the store")
    return [Measurement(NAMESPACE_KEY, (seconds,))]


def measure_invalid(site: Site, say: Say, *, scale: float) -> list[Measurement]:
    """Make resources that the API server admits and no operator can carry out."""
    count = max(4, round(MISTAKEN * scale))
    bodies = [filling.copy("none", f"copy-{n}", **_profile(n)) for n in range(count)]
    return _measure_waiting(site, say, INVALID_KEYS, site.store.controller_uri, bodies)


def measure_away(site: Site, say: Say, *, scale: float) -> list[Measurement]:
    """Make resources whose StreamStore does not answer."""
    count = max(4, round(MISTAKEN * scale))
    bodies = [filling.copy("none", f"copy-{n}") for n in range(count // 2)]
    bodies += [filling.stream("none", f"stream-{n}") for n in range(count // 2)]
    return _measure_waiting(site, say, AWAY_KEYS, _AWAY, bodies)


def _profile(number: int) -> Object:
    """Return a spec with a mistake: a profile that does not exist."""
    return {"runtime": {"profile": f"none-{number}"}}


def _measure_waiting(
    site: Site, say: Say, keys: tuple[str, str], uri: str, bodies: list[Object]
) -> list[Measurement]:
    """Measure an operator whose resources all wait until a user mends them."""
    with namespace(site) as name, Operator(site, [name]) as operator:

        async def make(api: Api) -> None:
            await filling.make(api, name, STREAM_STORE, [filling.store(uri)])
            copies = [one for one in bodies if one["kind"] == STREAM_COPY.name]
            await filling.make(api, name, STREAM_COPY, copies)
            others = [one for one in bodies if one["kind"] != STREAM_COPY.name]
            await filling.make(api, name, EPHEMERAL_STREAM, others)

        site.run(make)
        operator.until("all were looked at", lambda: _told(operator) >= len(bodies))
        operator.until("the queue is empty", lambda: operator.waiting() == 0)
        say(f"{len(bodies)} say what is wrong after {operator.seconds:.0f} s")
        time.sleep(SECONDS / 4)
        before, cpu, begun = operator.metrics(), operator.cpu, time.monotonic()
        time.sleep(SECONDS)
        took = time.monotonic() - begun
        cores = (operator.cpu - cpu) / took
        grown = lives.growth(before, operator.metrics())
        calls = {
            call: number * 60 / took
            for call, number in by_labels(grown, "sluice_api_calls_total").items()
        }
        looks = total(grown, "sluice_reconcile_total") * 60 / took
        say(f"{sum(calls.values()):.0f} calls and {looks:.0f} looks a minute, {cores:.3f} cores")
        if not operator.is_alive:
            raise BenchError("/livez fails")
    return [
        Measurement(
            keys[0], (sum(calls.values()),), unit="", counts=calls | {"looks a minute": looks}
        ),
        Measurement(keys[1], (cores,), unit=""),
    ]


def _jobs(operator: Operator, before: lives.Samples) -> float:
    """Return the number of Jobs that the operator has made since then."""
    grown = lives.growth(before, operator.metrics())
    return total(grown, "sluice_api_calls_total", verb="create", resource="jobs")


def _told(operator: Operator) -> float:
    """Return the number of written statuses."""
    samples = operator.metrics()
    kinds = ("streamcopies/status", "ephemeralstreams/status")
    return sum(total(samples, "sluice_api_calls_total", resource=one) for one in kinds)


def _ready_stores(operator: Operator) -> float:
    return total(operator.metrics(), "sluice_stores", ready="true")


def _ready_streams(operator: Operator) -> float:
    return total(operator.metrics(), "sluice_ephemeral_streams", state="Ready")
