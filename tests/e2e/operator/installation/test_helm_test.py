"""`helm test` on a real cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from localcluster.release import NAME, NAMESPACE

if TYPE_CHECKING:
    from e2e.operator.conftest import Operator

_LEFT = "pods,serviceaccounts,networkpolicies"


@pytest.mark.exhaustive
def test_an_installation_passes_and_the_test_leaves_nothing(sluice: Operator) -> None:
    """The pod finds everything in order, and is gone with its account and rights afterwards."""
    done = sluice.cluster.helm(
        "test", NAME, f"--namespace={NAMESPACE}", "--timeout=2m", timeout=150
    )
    assert "Phase:          Succeeded" in done
    mine = "--selector=app.kubernetes.io/component=test"
    for kinds, where in ((_LEFT, f"--namespace={NAMESPACE}"), ("clusterroles", "--all-namespaces")):
        assert sluice.cluster.kubectl("get", kinds, where, mine, "--output=name") == ""
