"""Pravega behind the protocols of `sluice.stores.base`.

Two servers answer: the *controller* (gRPC, `controller`) knows scopes, streams and who owns which
segment; the *segment stores* (a framed TCP protocol, `wire`) hold the bytes. From the bottom up:

    wire            frames as values: encode, and decode what a peer sent
    refusals        the store's error replies as errors of `sluice.errors`
    connection      one socket: handshake, deadlines, whole frames
    pool            connections kept for the next call
    names           segment names, and what they say
    policies        stream configurations as the controller's messages
    controller      the gRPC client, asynchronous
    directory       the same for blocking callers, with owners and tokens remembered
    transport       requests to whoever owns a segment, repeated where that is safe
    window          how many bytes an append keeps in flight
    reader          a segment's bytes, read ahead
    appender        fenced appends
    segments        the protocol `Segments`
    store           the protocol `Store`
"""
