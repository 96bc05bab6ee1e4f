"""Sluice against Pravega's own Java client and against itself, and the operator against the clock.

    PYTHONPATH=hack:tests .venv/bin/python -m bench

A *side* is one way to copy a *source*. The sides of a *phase* take turns, so that a machine that is
busy for a while is busy for both. Each *comparison* is the ratio of the medians of two sides.

Copies of whole scopes are measured by the seconds of the command (`scopes`), on a store beside it.
So are copies through a relay that makes the store seem far away (`far`), and copies of several
sizes by threads and by a cold Spark (`crossing`).

The operator is measured in a cluster (`cluster.site`) by plain seconds and by what it asks. Copies
are applied one after the other, and each is followed through the watches and its driver's log
(`cluster.applies`). So is a scope of 500 small streams, beside as many that the Java client makes
(`cluster.small_streams`). EphemeralStreams come and go by hundreds (`cluster.ephemerals`), beside
streams that the Java client removes in the same store.

Nothing here asserts a time: goals are met or not, and the exit code says only whether everything
could be run.
"""
