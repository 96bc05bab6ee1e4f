"""The promises about one copy, which hold after every crash, loss and action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice.api.status.common import ConditionType
from support.simulation.copy_cluster import Cluster
from support.simulation.copy_operator import Operator
from support.simulation.copy_store import map_of

if TYPE_CHECKING:
    from collections.abc import Callable


class CopyPromises:
    """One copy with its cluster and operators, and the promises about them."""

    make: Callable[[], Cluster] = Cluster
    """The factory of the cluster."""

    def __init__(self) -> None:
        self.cluster = type(self).make()
        self.operators = [Operator(self.cluster)]
        self.number = 0
        self.attempts = 0
        self.final: int | None = None
        self.succeeded = False
        self.taken = False

    @property
    def alone(self) -> bool:
        """Tell whether there is one operator, as it should be."""
        return len(self.operators) == 1

    @property
    def status(self) -> Any:
        """The copy's present status."""
        return self.cluster.status

    def the_world_is_in_order(self) -> None:
        """Check all promises, after any event."""
        self.conditions_do_not_contradict()
        self.success_is_true()
        self.status_is_bounded()
        if self.alone:
            self.what_is_final_stays_final()
            self.suspended_is_true()
            self.one_driver_at_most()
            self.the_finalizer_stands()
        self.nothing_is_left_behind()

    def conditions_do_not_contradict(self) -> None:
        """Check that tools that follow kstatus read the status as it is meant."""
        status = self.status
        said = {found.type: found.status for found in status.conditions}
        if not said:
            assert status.observed_generation == -1 or self.cluster.deleted
            return
        assert not {"Reconciling", "Stalled"} <= said.keys()
        assert said["Ready"] in {"True", "False", "Unknown"}
        assert (said["Ready"] == "False") == ("Stalled" in said)
        assert (said["Ready"] == "True") == (said["Succeeded"] == "True")
        assert ("Verified" in said) == (said["Succeeded"] == "True")
        assert all(said.get(kind, "True") == "True" for kind in ("Reconciling", "Suspended"))
        assert len({"Reconciling", "Stalled", "Suspended", "Verified"} & said.keys()) == 1
        assert all(found.message for found in status.conditions)

    def success_is_true(self) -> None:
        """Check that no target is reported as whole before it is."""
        whole = self.cluster.store.whole
        if self.said_to_be_done() and not self.taken:
            assert whole is not None
            assert self.status.plan_hash in {None, whole.hash}
            if self.alone and not self.cluster.deleted:
                assert self.status.position_map_ref is not None
                assert self.cluster.positions == map_of(whole)

    def suspended_is_true(self) -> None:
        """Check that a copy that is reported as suspended has no pod."""
        if self.status.condition(ConditionType.SUSPENDED):
            assert not self.cluster.drivers

    def said_to_be_done(self) -> bool:
        """Tell whether the status reports success."""
        said = self.status.condition(ConditionType.SUCCEEDED)
        return said is not None and said.status == "True"

    def status_is_bounded(self) -> None:
        """Check that attempts only grow, and that the status keeps few of them, in order."""
        status = self.status
        numbers = [entry.attempt for entry in status.history]
        assert len(numbers) <= 10
        assert numbers == sorted(set(numbers))
        assert status.attempts >= self.attempts or not self.alone
        self.attempts = status.attempts

    def what_is_final_stays_final(self) -> None:
        """Check that success and final failure stay until a user acts."""
        copy, status = self.cluster, self.status
        if self.final is not None:
            assert status.attempts == self.final
        if self.succeeded and not self.cluster.deleted:
            assert self.said_to_be_done()
        if (
            copy.deleted
            or copy.generation != status.observed_generation
            or copy.requested_at != status.last_handled_requested_at
        ):
            return
        self.succeeded = self.said_to_be_done()
        if status.last_failure and status.completion_time and not status.retry_time:
            assert status.condition(ConditionType.STALLED)
            self.final = status.attempts

    def one_driver_at_most(self) -> None:
        """Check that at most one driver was not told to stop."""
        cluster = self.cluster
        assert len([one for one in cluster.drivers if not cluster.is_stopping(one)]) <= 1
        assert len(cluster.jobs) <= 1

    def the_finalizer_stands(self) -> None:
        """Check that the finalizer holds a copy that has, or may soon have, data in the store."""
        cluster = self.cluster
        if cluster.copy is None or cluster.finalizer:
            return
        assert not cluster.store.holds_something or cluster.orphaned
        assert not any(one.running and not cluster.is_stopping(one) for one in cluster.drivers)

    def nothing_is_left_behind(self) -> None:
        """Check that all staged data are gone once the copy is gone."""
        cluster = self.cluster
        if cluster.copy is None and not cluster.orphaned and self.alone:
            assert not cluster.store.holds_something

    def is_over(self) -> bool:
        """Tell whether the copy is done and cleaned up, or gone."""
        cluster = self.cluster
        if cluster.deleted:
            return cluster.copy is None
        heard = self.status.last_handled_requested_at == str(self.number)
        tidy = not cluster.finalizer
        return self.said_to_be_done() and heard and tidy
