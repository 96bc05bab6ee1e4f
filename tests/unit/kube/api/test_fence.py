"""The calls of a process after another one may have taken over."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.errors import ApiUnavailable
from sluice.kube.api.client import Api
from sluice.kube.api.fence import Fence
from sluice.kube.api.kinds import EVENT, JOB, SECRET
from sluice.kube.loop.memory import Blocking, BoundedThreads
from sluice.stores.allowance import Allowance

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


class Sent:
    """A connection that notes the methods of the calls that are sent."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    async def param_serialize(self, method: str, *_: object, **__: object) -> tuple[str]:
        """Return the method alone."""
        return (method,)

    async def call_api(self, method: str, **_: object) -> Any:
        """Answer with an empty object."""
        self.methods.append(method)

        async def read() -> bytes:
            return b"{}"

        return SimpleNamespace(status=200, read=read, response=SimpleNamespace(headers={}))


def bench() -> tuple[Api, Sent, Fence]:
    """Return a client, its sent calls, and its fence, which ends in second 10."""
    sent, now = Sent(), [0.0]
    fence = Fence(lambda: now[0])
    fence.until = 10.0
    vars(fence)["now"] = now
    return Api(cast("Any", sent), fence=fence), sent, fence


CHANGES: dict[str, Callable[[Api], Awaitable[object]]] = {
    "create": lambda api: api.create(EVENT, "team", {}),
    "apply": lambda api: api.apply(SECRET, "team", {"metadata": {"name": "login"}}),
    "patch": lambda api: api.patch(SECRET, "team", "login", {}),
    "delete": lambda api: api.delete(JOB, "team", "job"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_behind_the_fence_nothing_is_changed(change: Callable[[Api], Awaitable[object]]) -> None:
    """A change is refused from the end of the time on. Reading goes on."""
    api, sent, fence = bench()
    asyncio.run(cast("Any", change(api)))
    assert len(sent.methods) == 1
    vars(fence)["now"][0] = 10.0
    with pytest.raises(ApiUnavailable, match="does not hold"):
        asyncio.run(cast("Any", change(api)))
    assert len(sent.methods) == 1
    asyncio.run(api.get(SECRET, "team", "login"))
    assert sent.methods[1:] == ["GET"]


class Server:
    """A server that notes the requests that arrive, and answers each with an empty object."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        while data := await reader.read(1 << 16):
            self.requests.append(data)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()


@pytest.mark.parametrize("looks", [1, 2])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_process_that_sleeps_between_look_and_write_changes_nothing(
    change: Callable[[Api], Awaitable[object]],
    looks: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No byte of the change is sent, however many looks at the fence went well before."""
    seen = itertools.count()
    fence = Fence(lambda: 0.0 if next(seen) < looks else 10.0)
    fence.until = 10.0
    server = Server()

    async def run() -> None:
        async with await asyncio.start_server(server, "127.0.0.1", 0) as serving:
            host, port = serving.sockets[0].getsockname()
            file = tmp_path / "kubeconfig"
            file.write_text(json.dumps(kubeconfig(f"http://{host}:{port}")))
            # The client reads KUBECONFIG once, when it is imported.
            monkeypatch.setattr(
                "kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file)
            )
            async with await Api.connect(fence=fence) as api:
                with pytest.raises(ApiUnavailable, match="does not hold"):
                    await change(api)
                assert not server.requests
                await api.get(SECRET, "team", "login")
                assert len(server.requests) == 1
                fence.until = 20.0
                await change(api)
                assert len(server.requests) > 1

    asyncio.run(run())


def kubeconfig(server: str) -> dict[str, object]:
    """Return a kubeconfig for a server that asks for no login."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": server}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "nobody"}}],
        "current-context": "here",
    }


def test_behind_the_fence_no_call_to_a_store_begins() -> None:
    """A call that has begun goes on to its end, which is safe beside another operator."""
    _, _, fence = bench()
    begun, ended = threading.Event(), threading.Event()
    calls: list[str] = []

    def call() -> str:
        begun.set()
        assert ended.wait(30)
        return "done"

    async def run(threads: BoundedThreads) -> str:
        first = asyncio.ensure_future(Blocking(threads)(call))
        await asyncio.to_thread(begun.wait, 30)
        vars(fence)["now"][0] = 10.0
        with pytest.raises(ApiUnavailable, match="does not hold"):
            await Blocking(threads)(lambda: calls.append("second"))
        ended.set()
        return await first

    with BoundedThreads(2, 60, Allowance(), fence) as threads:
        assert asyncio.run(run(threads)) == "done"
    assert not calls


def test_a_process_that_shares_its_work_with_no_other_has_no_end() -> None:
    """Examples are a command, a driver, and an operator without a Lease."""
    fence = Fence()
    assert fence.is_open
    fence.check()
