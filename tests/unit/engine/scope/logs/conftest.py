import pytest

from sluice.core.workloads.plan import Plan
from support.engine.scope_drivers import MANY, SharedStore, put_scope, scope_plan
from support.model import World


@pytest.fixture
def store() -> SharedStore:
    """Return a store with some streams."""
    world = World()
    put_scope(world, *([[number]] for number in range(MANY)))
    return SharedStore(world)


@pytest.fixture
def plan(store: SharedStore) -> Plan:
    """Return the plan of all streams."""
    return scope_plan(store, range(MANY))
