"""Sluice against Pravega's own Java client and against itself, and the operator against the clock.

    PYTHONPATH=hack:tests .venv/bin/python -m bench

A *side* is one way to copy a *source*. The sides of a *phase* take turns, and each *comparison* is
the median over the pairs of neighbouring runs, so that a machine that is busy for a while is busy
for both.

Copies of whole scopes are measured by the seconds of the command (`scopes`), on a store beside it.

The operator is measured in a cluster (`site`) by plain seconds and by what it asks. Copies are
applied one after the other, and each is followed through the watches and its driver's log
(`applies`); so is a scope of 500 small streams (`small_streams`). EphemeralStreams come and go by
hundreds (`ephemerals`), beside streams that the Java client removes in the same store.

Nothing here asserts a time: goals are met or not, and the exit code says only whether everything
could be run.
"""
