from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.api.kinds.ephemeralstream import Owner
from sluice.core.reconcile.ephemeral.world import OwnerSeen
from sluice.errors import ApiUnavailable
from sluice.kube.api.kinds import JOB, Kind
from sluice.kube.api.responses import Page, Refused
from sluice.kube.ephemeral import owner_watch
from sluice.kube.ephemeral.owner_kinds import OwnerKinds
from sluice.kube.ephemeral.owner_watch import ABSENT, Backoff, Cache
from sluice.kube.ephemeral.owners import Owners

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluice.kube.api.kinds import Object

SECONDS = 10
DONE = {"conditions": [{"type": "Complete", "status": "True"}]}
WORK = Owner(apiVersion="batch/v1", kind="Job", name="a")
GONE = Refused("too old", status=410, why="Expired")


def job(name: str, uid: str, version: int = 1, *, done: bool = False) -> Object:
    """Return a Job."""
    meta = {"name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"much": "more"}, "status": DONE if done else {}}


def event(kind: str, body: Object) -> Object:
    """Return an event of a watch."""
    return {"type": kind, "object": body}


def listed(*bodies: Object) -> dict[str, OwnerSeen]:
    """Return the kept parts of listed objects."""
    return {body["metadata"]["name"]: owner_watch.seen(JOB, body) for body in bodies}


def test_events_are_news_when_something_counts_of_them() -> None:
    """Appearing, finishing, a new uid and going count. A bookmark or another count does not."""
    cache = Cache(JOB)
    assert cache.replace({}) == set()
    assert cache.take(event("ADDED", job("a", "1"))) == "a"
    assert cache.take(event("MODIFIED", job("a", "1", 2))) is None
    assert cache.take(event("BOOKMARK", {"metadata": {"resourceVersion": "3"}})) is None
    assert cache.take(event("MODIFIED", job("a", "1", 4, done=True))) == "a"
    assert cache.get("a") == OwnerSeen(uid="1", finished=True)
    assert cache.take(event("ADDED", job("a", "2", 5))) == "a"
    assert cache.take(event("DELETED", job("a", "2", 6))) == "a"
    assert cache.take(event("DELETED", job("b", "9", 7))) is None
    assert cache.get("a") == ABSENT


def test_a_first_list_is_news_to_those_who_were_told_otherwise() -> None:
    """A resource is woken if the list differs from the API server's earlier answer to it."""
    cache = Cache(JOB)
    assert not cache.in_sync
    cache.tell("same", OwnerSeen(uid="1"))
    cache.tell("came", ABSENT)
    cache.tell("went", OwnerSeen(uid="3"))
    assert cache.replace(listed(job("same", "1"), job("came", "2"), job("other", "4"))) == {
        "came",
        "went",
    }
    assert cache.in_sync


def test_a_later_list_is_news_where_anything_changed() -> None:
    """Changes during the silence count, also of names that were absent before."""
    cache = Cache(JOB)
    cache.replace({})
    cache.lose()
    assert not cache.in_sync
    assert cache.replace(listed(job("a", "1"), job("b", "2"))) == {"a", "b"}
    cache.lose()
    cache.tell("b", ABSENT)
    assert cache.replace(listed(job("a", "9"))) == {"a"}
    cache.lose()
    cache.resume()
    assert cache.in_sync
    assert cache.get("a") == OwnerSeen(uid="9")


STATES = st.dictionaries(
    st.sampled_from("abc"), st.builds(OwnerSeen, uid=st.sampled_from("12"), finished=st.booleans())
)
HEARD = st.lists(st.tuples(st.booleans(), STATES), max_size=8)


@given(HEARD)
def test_whoever_asks_when_woken_up_knows_everything(heard: list[tuple[bool, STATES]]) -> None:
    """For any mix of lists and events, a resource that asks again when woken is up to date."""
    cache = Cache(JOB)
    mine = dict.fromkeys("abc", ABSENT)
    for name in mine:
        cache.tell(name, ABSENT)
    for by_list, state in [(True, {}), *heard]:
        if by_list:
            cache.lose()
            news = cache.replace(dict(state))
        else:
            news = set()
            for name in mine:
                body = job(name, state[name].uid or "") if name in state else job(name, "?")
                if name in state and state[name].finished:
                    body["status"] = DONE
                news.add(cache.take(event("MODIFIED" if name in state else "DELETED", body)))
        mine |= {name: cache.get(name) for name in mine if name in news}
        assert mine == {name: state.get(name, ABSENT) for name in mine}


class Script:
    """An API server with scripted answers, which hangs afterwards.

    Args:
        pages: the pages of lists, in order. An exception among them is raised.
        watches: the events of each watch, in order. An exception among them is raised.
    """

    def __init__(self, pages: list[Page | Exception], watches: list[list[Any]]) -> None:
        self._pages = pages
        self._watches = watches
        self.since: list[str] = []
        self.gets = 0
        self.hangs = False
        self.kinds = [{"name": "jobs", "kind": "Job", "namespaced": True}]
        self.reads = 0
        self.answer: Object | Exception | None = None

    async def resources(self, _: str) -> list[Object]:
        """Return the kinds."""
        self.reads += 1
        return self.kinds

    async def get(self, *_: object) -> Object | None:
        """Return an object."""
        self.gets += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def page(self, *_: object) -> Page:
        """Return a part of a list."""
        page = self._pages.pop(0)
        if isinstance(page, Exception):
            raise page
        return page

    @asynccontextmanager
    async def watch(
        self, _kind: Kind, _namespace: str, since: str, **_: float
    ) -> AsyncIterator[AsyncIterator[Object]]:
        """Yield the events of a watch."""
        self.since.append(since)
        yield self._events(self._watches.pop(0) if self._watches else None)

    async def _events(self, events: list[Any] | None) -> AsyncIterator[Object]:
        for one in events or []:
            if isinstance(one, Exception):
                raise one
            yield one
        if events is None:
            self.hangs = True
            await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let watches begin again at once."""
    monkeypatch.setattr(owner_watch, "RECONNECT", Backoff(0.001, 0.001))


async def story(script: Script, uid: str) -> list[str]:
    """Look until the owner is `uid` and the script has ended. Return the woken resources."""
    woken: list[str] = []
    owners = Owners(script, lambda *whom: woken.append("/".join(whom)))  # type: ignore[arg-type]
    try:
        async with asyncio.timeout(SECONDS):
            while (await owners.look(WORK, "team")).uid != uid or not script.hangs:  # noqa: ASYNC110 - a turn of the loop is what it takes
                await asyncio.sleep(0)
    finally:
        await owners.close()
    return woken


def test_a_version_that_is_too_old_begins_with_a_list_again() -> None:
    """After 410, in an event or at once, a new list is read page by page, and then watched."""
    script = Script(
        [Page([], "5", ""), Page([job("z", "0")], "8", "more"), Page([job("a", "1")], "9", "")],
        [[event("BOOKMARK", {"metadata": {"resourceVersion": "7"}}), GONE]],
    )
    assert asyncio.run(story(script, "1")) == ["batch/v1/Job/team/a", "batch/v1/Job/team/z"]
    assert script.since == ["5", "9"]


def test_a_watch_that_breaks_goes_on_where_it_was() -> None:
    """After a broken connection no list is read again, and the next watch continues."""
    script = Script(
        [Page([job("a", "1")], "5", "")],
        [
            [event("MODIFIED", job("a", "1", 6)), ApiUnavailable("broken")],
            [event("DELETED", job("a", "1", 7)), event("ADDED", job("a", "2", 8))],
        ],
    )
    woken = asyncio.run(story(script, "2"))
    assert woken == ["batch/v1/Job/team/a"] * 2
    assert script.since[:3] == ["5", "6", "8"]


def test_without_the_right_to_list_each_look_asks() -> None:
    """A refused watch waits for a while, and each look gets the objects itself."""
    script = Script([Refused("no", status=403, why="Forbidden")], [])
    script.answer = job("a", "1")

    async def look() -> None:
        owners = Owners(script, lambda *_: None)  # type: ignore[arg-type]
        for number in range(1, 4):
            found = await owners.look(WORK, "team")
            assert found == OwnerSeen(uid="1", watched=False)
            assert script.gets == number
        await owners.close()

    asyncio.run(look())


def test_an_api_server_that_does_not_answer_is_no_absence() -> None:
    """An unknown owner is an error and no answer."""
    script = Script([ApiUnavailable("away")] * 1000, [])
    script.answer = ApiUnavailable("away")

    async def look() -> None:
        owners = Owners(script, lambda *_: None)  # type: ignore[arg-type]
        with pytest.raises(ApiUnavailable):
            await owners.look(WORK, "team")
        with pytest.raises(ApiUnavailable):
            await owners.confirm(WORK, "team")
        await owners.close()

    asyncio.run(look())


def test_a_kind_that_is_not_served_any_more_is_no_absence() -> None:
    """A 404 about the kind says nothing of the object, and the kinds are read again."""
    script = Script([], [])
    script.answer = Refused("404 page not found", status=404, why="")

    async def confirm() -> None:
        owners = Owners(script, lambda *_: None)  # type: ignore[arg-type]
        for _ in range(2):
            found = await owners.confirm(WORK, "team")
            assert found.trouble is not None
            assert found.trouble.reason == "OwnerKindNotFound"
        assert script.reads == 2

    asyncio.run(confirm())


def test_missing_kinds_are_asked_for_again_later_and_later() -> None:
    """A missing kind costs a call after 1, 2, 4, ... seconds. A found kind costs none."""
    script, now = Script([], []), [0.0]
    kinds = OwnerKinds(script, lambda: now[0])  # type: ignore[arg-type]

    async def ask(kind: str) -> str:
        try:
            return (await kinds.find("batch/v1", kind)).plural
        except Exception as error:  # noqa: BLE001 - its name is the answer
            return type(error).__name__

    async def asks() -> None:
        reads = []
        for _ in range(70):
            await asyncio.gather(*(ask("Train") for _ in range(3)))
            reads.append(script.reads)
            now[0] += 0.5
        assert [reads[index] for index in (0, 1, 2, 5, 6, 13, 14, 29, 30)] == [
            1, 1, 2, 2, 3, 3, 4, 4, 5,
        ]  # fmt: skip
        script.kinds.append({"name": "trains", "kind": "Train", "namespaced": True})
        script.kinds.append({"name": "trains/scale", "kind": "Scale", "namespaced": True})
        script.kinds.append({"name": "moons", "kind": "Moon", "namespaced": False})
        now[0] += 60
        assert await ask("Train") == "trains"
        before = script.reads
        assert await ask("Moon") == "InvalidSpec"
        assert await ask("Job") == "jobs"
        assert script.reads == before
        assert await ask("Scale") == "OwnerKindNotFound"

    asyncio.run(asks())
