"""A gate before a store's controller: it passes calls on, holds some up, or is shut.

A program by itself, for a pod: `python -c ... HOST:PORT`, with the controller's address. It listens
on its own port 9090. Its input has orders, one a line, and it answers each by a line of JSON:

    open         every call passes
    shut         nothing listens: new connections are refused, open ones are cut
    swallow      calls are accepted, and never answered
    hold METHOD  calls of this method are accepted, and passed on when the gate is opened
    calls WORD   methods that were passed on and that are held up, of calls that contain WORD

It knows nothing of Sluice. It knows of a call only the parts that every gRPC call has.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from typing import Any

import grpc
import grpc.aio

PORT = 9090


class Gate(grpc.GenericRpcHandler):
    """The way of a call.

    Args:
        controller: the address to which calls are passed on, as HOST:PORT.
    """

    def __init__(self, controller: str) -> None:
        self._channel = grpc.aio.insecure_channel(controller)
        self._server: grpc.aio.Server | None = None
        self._swallows = False
        self._holds = ""
        self._opened = asyncio.Event()
        self._passed: list[tuple[str, bytes]] = []
        self._held: list[tuple[str, bytes]] = []

    def service(self, handler_call_details: Any) -> Any:
        """Return a handler for any call, which treats it as bytes."""
        name = handler_call_details.method
        return grpc.unary_unary_rpc_method_handler(partial(self._pass_on, name))

    async def _pass_on(self, method: str, request: bytes, context: Any) -> bytes:
        short = method.rpartition("/")[2]
        while self._swallows or short == self._holds:
            self._held.append((short, request))
            opened = self._opened
            try:
                await opened.wait()  # a call whose client gives up meanwhile is not passed on
            finally:
                self._held.remove((short, request))
        self._passed.append((short, request))
        login = [pair for pair in context.invocation_metadata() if pair[0] == "authorization"]
        call = self._channel.unary_unary(method)
        try:
            answer = await call(request, metadata=login, timeout=context.time_remaining())
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "")
            raise
        return bytes(answer)

    async def order(self, word: str, about: str) -> object:
        """Carry out the order of one line, and return the answer."""
        if word == "calls":
            return {
                "passed": [name for name, request in self._passed if about.encode() in request],
                "held": [name for name, request in self._held if about.encode() in request],
            }
        if word not in {"open", "shut", "swallow", "hold"}:
            return {"error": f"no such order: {word}"}
        self._swallows, self._holds = word == "swallow", about
        if word == "shut":
            await self._close()
        elif self._server is None:
            self._server = grpc.aio.server(handlers=[self])
            self._server.add_insecure_port(f"0.0.0.0:{PORT}")
            await self._server.start()
        self._opened.set()  # each call checks the new order
        self._opened = asyncio.Event()
        return {}

    async def _close(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None


async def main() -> None:
    """Carry out orders until the input ends."""
    gate = Gate(sys.argv[-1])
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        word, _, about = line.strip().partition(" ")
        print(json.dumps(await gate.order(word, about)), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    asyncio.run(main())
