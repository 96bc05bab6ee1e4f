"""A Pravega cluster behind the protocols of `sluice.stores.base`.

Two kinds of servers answer. The *controller* (gRPC, `controller`) knows scopes, streams and which
segment store owns a segment. The *segment stores* (a framed TCP protocol, `wire`) hold the bytes.
From the bottom up:

    wire            frames as values: encodes them, and decodes those of a peer
    refusals        the store's error replies as errors of `sluice.errors`
    connection      one socket: handshake, deadlines, whole frames
    pool            connections kept for the next call
    names           segment names, and the ids in them
    policies        stream configurations as the controller's messages
    controller      the gRPC client, asynchronous
    directory       the same for blocking callers, with owners and tokens cached
    transport       requests to the segment store that owns a segment, repeated where that is safe
    window          the bound on the bytes that an append keeps in flight
    reader          a segment's bytes, read ahead
    appender        fenced appends
    segments        the protocols `SegmentReader` and `SegmentSink`
    store           the protocol `Store`
    client          opens stores
"""
