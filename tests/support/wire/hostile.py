"""A store that lies: a controller whose answers a test invents."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc

from sluice.config import StoreTimeouts
from sluice.stores.pravega.proto import controller_pb2 as pb
from sluice.stores.pravega.store import PravegaStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.core.values.model import StreamName

    Answer = Callable[[Any], Any]

_THREADS = 16


class HostileController(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc ships no types
    """A controller with given answers. It answers all other calls with UNIMPLEMENTED.

    Attributes:
        answers: functions from a request to its answer, by the method's name.
        uri: the controller's address, as stores are named.
        calls: the names of the methods that were called.
    """

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.calls: list[str] = []
        self._service = pb.DESCRIPTOR.services_by_name["ControllerService"]
        self._threads = ThreadPoolExecutor(_THREADS, "hostile")
        self._server = grpc.server(self._threads, handlers=[self])
        self.port: int = self._server.add_insecure_port("127.0.0.1:0")
        self.uri = f"tcp://127.0.0.1:{self.port}"

    def service(self, handler_call_details: Any) -> Any:
        """Return a handler for a call; None if there is no answer."""
        name = handler_call_details.method.rpartition("/")[2]
        self.calls.append(name)
        answer = self.answers.get(name)
        if answer is None:
            return None
        request = self._service.methods_by_name[name].input_type.name
        return grpc.unary_unary_rpc_method_handler(
            lambda asked, _: answer(asked),
            request_deserializer=getattr(pb, request).FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )

    @contextmanager
    def running(self) -> Iterator[PravegaStore]:
        """Run the controller during the block, and yield a store that calls it."""
        timeouts = StoreTimeouts(connect=5, call=30, stall=30)
        store = PravegaStore(self.uri, credentials=None, timeouts=timeouts)
        self._server.start()
        try:
            yield store
        finally:
            store.close()
            self._server.stop(grace=None).wait()
            self._threads.shutdown()


def stream_of(name: StreamName) -> pb.StreamInfo:
    """Return a stream as a message of the protocol."""
    return pb.StreamInfo(scope=name.scope, stream=name.stream)


def segment_of(name: StreamName, segment: int) -> pb.SegmentRange:
    """Return a segment with all keys, as a message of the protocol."""
    where = pb.SegmentId(streamInfo=stream_of(name), segmentId=segment)
    return pb.SegmentRange(segmentId=where, minKey=0.0, maxKey=1.0)
