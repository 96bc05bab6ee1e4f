"""Send final states to the administrator's sink, as CloudEvents 1.0 in structured HTTP.

A notice is queued after its status was written, and lives in memory only. So the sink may miss
notices: of an operator that is killed, of a sink that stays away, of a full queue. It gets none
before the status says so, and two with one id only if an answer of the sink was lost.

Some notices are sent at once, so that an answer that takes long delays few. Those of one resource
follow one another: a receiver sees its ends in their order.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import structlog

from sluice.api.fields.common import GROUP
from sluice.core.reconcile.shared.notices import notice_of
from sluice.kube.api.kinds import OWN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from sluice.api.status.common import ResourceStatus
    from sluice.core.reconcile.shared.notices import Notice
    from sluice.kube.api.kinds import Object
    from sluice.kube.loop.settings import NoticeSettings
    from sluice.metrics import Metrics

_log = structlog.get_logger()

MOST_OF_ONE: Final = 250
"""Notices of one namespace that may wait. So it takes no other's place."""

AT_ONCE: Final = 4
"""Notices that are sent at once: a sink may answer slowly, but is not to be flooded."""

MOST_WAITING: Final = 1000
"""Notices that wait at most. They take about 1 kB each."""

SECONDS: Final = 10.0
"""Seconds that a sink has for an answer."""

PAUSES: Final = (1.0, 5.0)
"""Seconds before each further try."""

LAST_SECONDS: Final = 5.0
"""Seconds that an operator that stops gives the notices that still wait."""

_MOST_HEADER: Final = 8192
_BUSY: Final = frozenset({408, 425, 429})
"""Answers below 500 after which another try may help."""


class NoticeResult(StrEnum):
    """What became of a notice, in the metric sluice_notices_total."""

    SENT = "Sent"
    REFUSED = "Refused"
    FAILED = "Failed"
    DROPPED = "Dropped"


class Sink:
    """The sender of notices.

    Args:
        settings: the sink's URL, and its header.
        cluster: the cluster's identity, in the `source` of each event.
        metrics: counts what became of notices.
    """

    def __init__(self, settings: NoticeSettings, *, cluster: str, metrics: Metrics) -> None:
        self._settings = settings
        self._source = f"/{GROUP}/clusters/{cluster}"
        self._metrics = metrics
        self._waiting: dict[str, deque[Object]] = {}
        """The notices that wait, by the UID of their resource, also of one that is being told."""
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        """The UIDs of resources whose next notice may be sent."""
        self._of = Counter[str]()
        """How many notices of each namespace wait."""

    def tell(self, body: Object, before: ResourceStatus, after: ResourceStatus) -> None:
        """Queue a notice if a newly written status reports an end. Never wait.

        Args:
            body: the object, with the resource version of the new status.
            before: the status that was replaced.
            after: the status.
        """
        notice = notice_of(before, after) if self._settings.sink else None
        if notice is None:
            return
        namespace = body["metadata"]["namespace"]
        if self._of[namespace] >= MOST_OF_ONE or self._of.total() >= MOST_WAITING:
            self._count(NoticeResult.DROPPED, why="too many notices wait for the sink")
            return
        self._of[namespace] += 1
        uid, event = body["metadata"]["uid"], cloud_event(body, notice, source=self._source)
        if uid in self._waiting:
            self._waiting[uid].append(event)
        else:
            self._waiting[uid] = deque([event])
            self._ready.put_nowait(uid)

    @asynccontextmanager
    async def delivering(self) -> AsyncIterator[None]:
        """Deliver notices until the context ends. Then try the rest for a few seconds."""
        if not self._settings.sink:
            yield
            return
        # The proxies of the environment, and answers' cookies, are none of the administrator's.
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=SECONDS), cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            work = [asyncio.ensure_future(self._work(session)) for _ in range(AT_ONCE)]
            try:
                yield
            finally:
                work.append(asyncio.ensure_future(self._ready.join()))
                await asyncio.wait(work, timeout=LAST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                for one in work:
                    one.cancel()
                await asyncio.gather(*work, return_exceptions=True)
                for event in chain.from_iterable(self._waiting.values()):
                    self._stopped(self._taken(event))
                self._waiting.clear()

    async def _work(self, session: aiohttp.ClientSession) -> None:
        """Send the notices of resources, one of a resource at a time."""
        while True:
            uid = await self._ready.get()
            waiting = self._waiting[uid]
            await self._send(session, self._taken(waiting.popleft()))
            if waiting:
                self._ready.put_nowait(uid)
            else:
                del self._waiting[uid]
            self._ready.task_done()

    async def _send(self, session: aiohttp.ClientSession, event: Object) -> None:
        """Send an event, with some tries, and count what became of it."""
        result, why = NoticeResult.FAILED, ""
        try:
            for pause in self._pauses():
                await asyncio.sleep(pause)
                result, why = await self._post(session, event)
                if result is not NoticeResult.FAILED:
                    break
        except asyncio.CancelledError:
            self._stopped(event)
            raise
        except Exception as error:  # noqa: BLE001 - a notice must not end all others
            why = type(error).__name__
        self._count(result, why=why, event=event["id"])

    def _taken(self, event: Object) -> Object:
        """Count an event as waiting no more, and return it."""
        namespace = event["data"]["namespace"]
        self._of[namespace] -= 1
        if not self._of[namespace]:
            del self._of[namespace]
        return event

    def _pauses(self) -> Iterator[float]:
        """Yield the seconds before each try. While many notices wait, each has one try only."""
        yield 0.0
        for pause in PAUSES:
            if self._of.total() > MOST_WAITING // 2:
                return
            yield pause

    async def _post(
        self, session: aiohttp.ClientSession, event: Object
    ) -> tuple[NoticeResult, str]:
        """Send an event once; return the result, and why it was not taken.

        The sink's answer is not read, and nothing that it says is followed. Neither URL nor header
        is logged: both may hold a credential.
        """
        try:
            async with session.post(
                self._settings.sink,
                data=json.dumps(event).encode(),
                headers=self._header() | {"Content-Type": "application/cloudevents+json"},
                allow_redirects=False,
            ) as answer:
                status = answer.status
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            return NoticeResult.FAILED, type(error).__name__
        if status < 300:  # noqa: PLR2004 - any success
            return NoticeResult.SENT, ""
        again = status >= 500 or status in _BUSY  # noqa: PLR2004 - its own errors
        return NoticeResult.FAILED if again else NoticeResult.REFUSED, f"HTTP status {status}"

    def _header(self) -> dict[str, str]:
        """Read the header from its file.

        Raises:
            OSError, ValueError: the file cannot be read, or is no header.
        """
        header = self._settings.header
        if not header.file:
            return {}
        with Path(header.file).open(encoding="ascii") as file:
            value = file.read(_MOST_HEADER).strip()
        if not value.isprintable():
            raise ValueError("the file of the header has more than a line")
        return {header.name: value}

    def _stopped(self, event: Object) -> None:
        self._count(NoticeResult.DROPPED, why="the operator stops", event=event["id"])

    def _count(self, result: NoticeResult, *, why: str, event: str | None = None) -> None:
        self._metrics.count("sluice_notices_total", result=result.value)
        if result is not NoticeResult.SENT:
            _log.warning("a notice was not delivered", result=result.value, why=why, id=event)


def cloud_event(body: Object, notice: Notice, *, source: str) -> dict[str, Any]:
    """Build the CloudEvent of a notice.

    Its id follows from the resource and the version of its status. So a receiver recognises an
    event that comes twice.
    """
    meta, kind = body["metadata"], OWN[body["kind"]]
    return {
        "specversion": "1.0",
        "id": f"{meta['uid']}-{meta['resourceVersion']}",
        "source": source,
        "type": f"{'.'.join(reversed(GROUP.split('.')))}.{kind.name.lower()}."
        f"{notice.outcome.lower()}",
        "subject": f"namespaces/{meta['namespace']}/{kind.plural}/{meta['name']}",
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "datacontenttype": "application/json",
        "reason": notice.reason,
        "data": {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
            "generation": meta.get("generation", 0),
            "outcome": notice.outcome,
            "reason": notice.reason,
            "message": notice.message,
            **notice.facts,
        },
    }
