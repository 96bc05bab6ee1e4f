"""A scope's copy and its adversary: see `support.simulation.copy_machine`."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from sluice.api.status.common import ConditionType
from sluice.core.scope.scope import StreamState, counts_of
from support.simulation.copy_machine import CopyMachine
from support.simulation.scope_cluster import SOURCES, ScopeCluster, run_of

OUTSIDE = (
    "source",
    "target",
    "source_there",
    "target_there",
    "profile_there",
    "runtime",
    "stop",
    *(f"{what} {name}" for what in ("there", "bad", "done") for name in SOURCES),
)


class ScopeMachine(CopyMachine):
    """One scope's copy, its cluster, and one operator or two."""

    cluster: ScopeCluster
    make = ScopeCluster
    wishes = 5

    def __init__(self) -> None:
        super().__init__()
        self.cluster.store.bad.add("b")  # until a rule mends it
        self.epoch: int | None = None
        self.wish: int | None = None

    @property
    def things(self) -> tuple[str, ...]:
        """The things that can happen outside."""
        return OUTSIDE

    @rule(what=st.sampled_from(OUTSIDE), on=st.booleans())
    def outside(self, what: str, *, on: bool) -> None:
        """Change whether a store can be reached, or delete, mend or spoil a stream."""
        store = self.cluster.store
        what, _, name = what.partition(" ")
        match what:
            case "there":
                store.there = {
                    one: size for one, size in SOURCES.items() if one in store.there or one == name
                }
                if not on and len(store.there) > 1:
                    del store.there[name]
            case "bad":
                store.bad = store.bad - {name} if on else store.bad | {name}
            case "done":  # another client deletes the target
                self.taken = self.taken or name in store.done
                store.done.pop(name, None)
            case "stop":
                self.change(failurePolicy="Stop" if on else "Continue")
            case _:
                super().outside(what, on=on)

    @rule()
    def request(self) -> None:
        """Request another run, and note the present one, so that a missing run is noticed."""
        if self.alone and self.is_partial():
            log = self.cluster.store.log
            self.wish = 0 if log is None else run_of(log)
        super().request()

    @rule(really=st.booleans())
    def lose_status(self, *, really: bool) -> None:
        """Restore the copy from a backup, without its status and its request."""
        self.wish = None if really else self.wish
        super().lose_status(really=really)

    def mend(self) -> None:
        """Restore every stream, and let all be copied."""
        super().mend()
        self.cluster.store.there = dict(SOURCES)
        self.cluster.store.bad.clear()

    def the_world_is_in_order(self) -> None:
        """Check the promises about every copy, and those about a scope's."""
        super().the_world_is_in_order()
        if self.alone:
            self.the_end_can_be_read()
            self.what_failed_can_be_tried_again()
            self.a_run_has_what_failed()

    def success_is_true(self) -> None:
        """Check that success is reported only if every target is whole."""
        results = self.cluster.results
        if not (self.said_to_be_done() and self.alone and self.is_heard()):
            return
        assert results is not None
        for result in results:
            assert result.state is StreamState.COPIED
            assert self.taken or result.stream in self.cluster.store.done

    def the_end_can_be_read(self) -> None:
        """Check that a copy reported as over, in part or not, shows the result of each stream.

        This does not hold while the operator comes to another end at a user's request.
        """
        said, results = self.status.condition(ConditionType.READY), self.cluster.results
        words = {"Succeeded", "PartiallySucceeded", "Failed"}
        if said is None or said.reason not in words or not self.is_heard():
            return
        assert results is not None
        counts, streams = counts_of(results), self.status.streams
        assert streams is not None
        assert (streams.total, streams.copied) == (counts.total, counts.copied)
        assert (streams.failed, streams.stopped) == (counts.failed, counts.stopped)
        failed = sorted(one.stream for one in results if one.state is StreamState.FAILED)
        assert [one.stream for one in self.status.failed_streams] == failed
        if said.reason != "Succeeded":
            assert counts.failed + counts.stopped > 0
            assert (counts.copied > 0) == (said.reason == "PartiallySucceeded")

    def is_partial(self) -> bool:
        """Tell whether the copy is over, and not all of it is copied."""
        said = self.status.condition(ConditionType.READY)
        return (
            said is not None
            and said.reason in {"PartiallySucceeded", "Failed"}
            and (self.is_heard())
        )

    def what_failed_can_be_tried_again(self) -> None:
        """Check that staging of failed streams stays, and that a request leads to a run."""
        store = self.cluster.store
        if self.wish is not None and store.log is None:
            self.wish = 0  # a failure of the whole has dropped the log, and runs count anew
        if not self.is_partial() or self.cluster.deleted:
            self.epoch = None
            return
        assert self.epoch in {None, store.epoch}
        self.epoch = store.epoch
        assert self.wish is None or self.status.run > self.wish
        self.wish = None

    def is_heard(self) -> bool:
        """Tell whether the status is about the users' latest request."""
        copy, status = self.cluster, self.status
        return (
            copy.copy is not None
            and copy.generation == status.observed_generation
            and copy.requested_at == status.last_handled_requested_at
        )

    def a_run_has_what_failed(self) -> None:
        """Check that a run plans no copied stream again, and no stream gets lost between runs."""
        assert not self.cluster.store.redone
        assert not self.cluster.store.lost
