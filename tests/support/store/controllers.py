"""A small controller, plain or with TLS."""

from __future__ import annotations

import base64
from concurrent import futures
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import grpc

from sluice.stores.pravega.proto import controller_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from localstore.certificates import Certificate

HOST: Final = "127.0.0.1"
SERVICE: Final = pb.DESCRIPTOR.services_by_name["ControllerService"].full_name


@contextmanager
def controller(
    certificate: Certificate | None, *, port: int = 0, passwords: Sequence[str] = ()
) -> Iterator[int]:
    """Run a controller that knows every scope. Yield its port. It may ask for a password."""

    def answer(_: pb.ScopeInfo, context: grpc.ServicerContext) -> pb.ExistsResponse:
        pairs = (base64.b64encode(f"user:{each}".encode()).decode() for each in passwords)
        given = dict(context.invocation_metadata()).get("authorization")
        if passwords and given not in {f"Basic {pair}" for pair in pairs}:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")
        return pb.ExistsResponse(exists=True)

    made = grpc.server(futures.ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    handler = grpc.unary_unary_rpc_method_handler(
        answer, pb.ScopeInfo.FromString, pb.ExistsResponse.SerializeToString
    )
    made.add_registered_method_handlers(SERVICE, {"checkScopeExists": handler})
    address = f"{HOST}:{port}"
    if certificate is None:
        port = made.add_insecure_port(address)
    else:
        pair = (certificate.key.read_bytes(), certificate.chain.read_bytes())
        port = made.add_secure_port(address, grpc.ssl_server_credentials([pair]))
    made.start()
    try:
        yield port
    finally:
        made.stop(None).wait()
