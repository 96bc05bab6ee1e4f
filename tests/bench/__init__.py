"""Sluice against Pravega's own Java client and against itself, and the operator against the clock.

    PYTHONPATH=hack:tests .venv/bin/python -m bench

A *side* is one way to copy a *source*. The sides of a *phase* take turns, so that other load on the
machine affects all of them. Each *comparison* is the ratio of the medians of two sides.

Some measurements are plain seconds, on a store of this machine: copies of whole scopes by the
command (`scopes`), copies through a relay that makes the store seem far away (`far`), and copies of
several sizes by threads and by a cold Spark (`crossing`).

The operator is measured in a cluster (`cluster.site`), in seconds and in calls. Copies are applied
one after the other, and followed through watches and the drivers' logs (`cluster.applies`). So is a
scope of 500 small streams; the Java client makes as many (`cluster.small_streams`).
EphemeralStreams are made and deleted by hundreds (`cluster.ephemerals`); the Java client deletes
streams in the same store.

No benchmark asserts a time. Goals are met or missed, and the exit code says only whether all
benchmarks ran.
"""
