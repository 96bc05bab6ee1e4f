"""Fixtures that start the real store, each only if a test asks for it."""

import gc
import itertools
import logging
import os
import signal
import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import structlog
from hypothesis import settings

import localcluster
from lanes import SHARED_STORE
from localstore import ForeignClient, Standalone, User
from localstore.accounts import ADMIN, READER
from s3gateway import Gateway, versitygw
from support.cluster.local_operator import LocalOperator, opened
from support.cluster.outside import OUTSIDE
from support.cluster.turns import taken
from support.command import warm
from support.search import EXAMPLES, FAR
from support.store.servers import end_unneeded, ended_early, see_last
from support.tenants.desk import Desk
from support.until import PATIENTLY, until

# No test asserts a duration. CI repeats the same search, and other runs make a new one.
settings.register_profile(
    "sluice", deadline=None, derandomize="CI" in os.environ, max_examples=EXAMPLES * FAR
)
settings.load_profile("sluice")

_scopes = itertools.count(1)
_CLUSTER_SECONDS = 1200
_CRDS = Path(__file__).parents[1] / "crds"
_LANES = ("pods", "alone", "outside", "api", "table", "stores", "engine", "unit", "packaging")
_CRASH_TABLE = Path(__file__).parent / "e2e" / "crash" / "test_table.py"
_END_TO_END = Path(__file__).parent / "e2e"
_PAGES = _END_TO_END / "operator" / "pages"
_FOLDERS = {
    Path(__file__).parent / "unit" / "engine": "engine",
    Path(__file__).parent / "unit": "unit",
    Path(__file__).parent / "integration" / "packaging": "packaging",
}
"""The lane of all tests in a folder. The first match counts."""
_TURN: pytest.StashKey[ExitStack] = pytest.StashKey()
"""The stack that returns the installed operator, while tests have it."""


@pytest.fixture(scope="session", autouse=True)
def _warm_commands() -> Iterator[None]:
    """Fork the tests' commands from a process that has imported them already."""
    with warm.commands():
        yield


@pytest.fixture(scope="session")
def standalone(request: pytest.FixtureRequest) -> Iterator[Standalone]:
    """Yield a Pravega standalone server that all tests share. A test uses its own scope.

    Lanes that run side by side share the one that `hack/lanes.py` starts and ends.
    """
    if shared := os.environ.get(SHARED_STORE):
        server = Standalone(Path(shared))
        until("the store of all lanes serves", server.serves)
        yield server
        return
    server = Standalone()
    with _announced(request, "Pravega standalone"):
        server.start()
    with ended_early(request, server.stop):
        yield server


@pytest.fixture(scope="session")
def standalone_auth(request: pytest.FixtureRequest) -> Iterator[Standalone]:
    """Yield a second standalone server, which requires a login. Its `users` are the accounts."""
    server = Standalone(users=[ADMIN, READER])
    with _announced(request, "Pravega standalone with authentication"):
        server.start()
    with ended_early(request, server.stop):
        yield server


@pytest.fixture(scope="session")
def kube(request: pytest.FixtureRequest) -> Iterator[localcluster.Cluster]:
    """Yield a Kubernetes cluster: a running one, which stays, or a new one."""
    kubernetes = localcluster.choose()
    try:
        kubernetes.status()
    except localcluster.LocalClusterError:
        kubernetes.up(_line(request))
        yield kubernetes
        kubernetes.down(_line(request))
    else:
        yield kubernetes


@pytest.fixture(scope="session")
def definitions(request: pytest.FixtureRequest, kube: localcluster.Cluster) -> Iterator[list[str]]:
    """Yield the names of Sluice's definitions, applied. New ones are deleted afterwards."""
    found = kube.kubectl("get", "crds", "--output=name").split()
    names = kube.kubectl(
        "apply", "--server-side", "--force-conflicts", f"--filename={_CRDS}", "--output=name"
    ).split()
    kube.kubectl("wait", "--for=condition=Established", PATIENTLY, *names)
    yield names
    # Tests in another lane may use the definitions.
    if (added := set(names) - set(found)) and not request.config.getoption("--lane"):
        kube.kubectl("delete", PATIENTLY, *added)


@pytest.fixture(scope="session")
def gateway(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Gateway]:
    """Yield an S3 gateway that all tests share. A test makes a bucket of its own."""
    with announce("an S3 gateway"):
        versitygw(lambda _: None)
        server = Gateway()
        server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def operator_settings() -> dict[str, Any]:
    """Return unusual settings of `local_operator`, for modules to override."""
    return {}


@pytest.fixture(scope="module")
def local_operator(
    request: pytest.FixtureRequest,
    kube: localcluster.Cluster,
    definitions: list[str],
    standalone: Standalone,
    operator_settings: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LocalOperator]:
    """Yield an operator on this machine, and a namespace. The test runs its driver pods here."""
    assert definitions
    name = request.path.stem.removeprefix("test_").replace("_", "-")
    folder = tmp_path_factory.mktemp(f"sluice-test-{name}")
    with opened(kube, folder, standalone.controller_uri, operator_settings) as made:
        yield made


@pytest.fixture
def desk(local_operator: LocalOperator, tmp_path: Path) -> Desk:
    """Return the namespace of `local_operator`."""
    return Desk(local_operator.tenant, tmp_path)


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Restore the logging after each test, since pytest closes the streams of that test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def announce(request: pytest.FixtureRequest) -> Callable[[str], AbstractContextManager[None]]:
    """Return a context manager that names a slow start on the terminal."""
    return lambda what: _announced(request, what)


@pytest.fixture
def namespace(kube: localcluster.Cluster) -> Iterator[str]:
    """Yield a namespace for one test alone. It is deleted when the test ends."""
    yield from _namespace(kube, "test-")


@pytest.fixture
def outside(kube: localcluster.Cluster) -> Iterator[str]:
    """Yield a namespace that only an operator outside of the cluster serves."""
    yield from _namespace(kube, OUTSIDE)


def _namespace(kube: localcluster.Cluster, prefix: str) -> Iterator[str]:
    name = f"{prefix}{uuid4().hex[:12]}"
    kube.kubectl("create", "namespace", name)
    yield name
    kube.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def foreign_for() -> Iterator[Callable[..., ForeignClient]]:
    """Yield a function that makes the official Java client for a controller's address."""
    clients: dict[tuple[str, User | None], ForeignClient] = {}
    with ExitStack() as stack:

        def client(uri: str, user: User | None = None) -> ForeignClient:
            if (uri, user) not in clients:
                clients[uri, user] = stack.enter_context(ForeignClient(uri, user=user))
            return clients[uri, user]

        yield client


@pytest.fixture(scope="session")
def foreign(standalone: Standalone, foreign_for: Callable[..., ForeignClient]) -> ForeignClient:
    """Return the official Java client on the shared standalone server."""
    return foreign_for(standalone.controller_uri)


@pytest.fixture
def scope(foreign: ForeignClient) -> str:
    """Return a new scope on the shared standalone server, which forgets it when it stops."""
    name = f"test-{os.getpid()}-{next(_scopes)}"  # another lane may use the same server
    foreign.create_scope(name)
    return name


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Return a function that puts a line into the test log, even while output is captured."""
    return _line(request)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--lane`: one of the lanes that hack/lanes.py runs side by side."""
    parser.addoption(
        "--lane",
        choices=_LANES,
        help="only the tests of this lane; tests/README.md describes the lanes",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Leave out tests that only `make test-rest` runs, unless a mark or a name selects tests.

    Set a handler of SIGINT, so that tests can interrupt programs.
    """
    if not config.option.markexpr and not any("::" in path for path in config.args):
        config.option.markexpr = "not exhaustive and not soak"
    # Programs that a shell starts in the background ignore SIGINT, and so would their children.
    # Tests interrupt programs as a user does at a terminal. This handler is not Python's own, since
    # asyncio.run would replace that one in each call, and describe the task in full before.
    signal.signal(signal.SIGINT, _interrupt)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.hookimpl(trylast=True)  # after the selection of tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the lane. Give a test that uses a cluster the time to compile it."""
    lanes: dict[str, list[pytest.Item]] = {lane: [] for lane in _LANES}
    alone = {item.path for item in items if item.get_closest_marker("alone")}
    mixed = {item.path for item in items if item.get_closest_marker("alone") is None}
    whole = config.option.markexpr == "crash"
    for item in items:
        if "kube" in _fixtures(item) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_CLUSTER_SECONDS))
        lanes[_lane_of(item, alone, whole=whole)].append(item)
    # While one lane has the operator alone, the other one runs tests without an operator.
    lanes["alone"].sort(key=lambda item: (item.path not in alone, item.path in mixed))
    lanes["pods"].sort(key=lambda item: "sluice" in _fixtures(item))
    # The store with logins starts late, since an idle store takes processor time as well.
    lanes["outside"].sort(key=lambda item: "standalone_auth" in _fixtures(item))
    if lane := config.getoption("--lane"):
        items[:] = lanes.pop(lane)
        for others in lanes.values():
            config.hook.pytest_deselected(items=others)


def _lane_of(item: pytest.Item, alone: Collection[Path], *, whole: bool) -> str:
    """Return a test's lane.

    Args:
        item: the test.
        alone: the modules with tests that want the installed operator alone.
        whole: whether all cells of the crash tables run. They wait for most of an hour, so those of
            copies have a lane, and a store of four processes, of their own then.
    """
    if whole and item.path == _CRASH_TABLE:
        return "table"
    # A store that a lane starts takes some 15 s of processor time, so one lane has the store with
    # logins, and the one of four processes, most tests of which wait for its restarts.
    if _waits(item) or (
        "standalone_auth" in _fixtures(item) and not item.path.is_relative_to(_END_TO_END)
    ):
        return "outside"
    for folder, lane in _FOLDERS.items():
        if item.path.is_relative_to(folder):
            return lane
    if "kube" in _fixtures(item):
        return _lane_on_kubernetes(item, alone)
    return "outside" if item.path.is_relative_to(_END_TO_END) else "stores"


def _lane_on_kubernetes(item: pytest.Item, alone: Collection[Path]) -> str:
    if item.path.is_relative_to(_END_TO_END) and not _is_outside(item):
        return "pods" if _shares(item, alone) else "alone"
    return "outside" if _uses_store(item) else "api"


def _shares(item: pytest.Item, alone: Collection[Path]) -> bool:
    """Tell whether a test can run beside those of the lane `alone`, with the same operator.

    A module stays whole if one of its tests wants the operator alone. Only one lane has the store
    with logins. It also has the pages, so that both lanes take as long.
    """
    kept = item.path in alone or item.path.parent == _PAGES
    return not kept and "guarded" not in _fixtures(item)


def _is_outside(item: pytest.Item) -> bool:
    """Tell whether a test has an operator of its own, outside of the cluster."""
    return "local_operator" in _fixtures(item)


def _uses_store(item: pytest.Item) -> bool:
    """Tell whether a test needs a store of this machine, as operators outside of the cluster do."""
    return not _fixtures(item).isdisjoint({"standalone", "standalone_auth"})


def _waits(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) is not None for name in ("patient", "cluster"))


def _fixtures(item: pytest.Item) -> frozenset[str]:
    return frozenset(getattr(item, "fixturenames", ()))


def _turn_of(item: pytest.Item | None) -> tuple[Path, bool] | None:
    """Return the module that takes the installed operator, and whether it takes it alone."""
    if item is None:
        return None
    alone = item.get_closest_marker("alone") is not None
    return (item.path, alone) if alone or "sluice" in _fixtures(item) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Take the installed operator for all tests of a module that follow each other."""
    turn, stash = _turn_of(item), item.config.stash
    if turn and _TURN not in stash:
        stash[_TURN] = ExitStack()
        stash[_TURN].enter_context(taken(alone=turn[1]))
    try:
        return (yield)
    finally:
        if turn and _turn_of(nextitem) != turn:
            stash[_TURN].close()
            del stash[_TURN]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Record the last test of each fixture."""
    see_last(session)
    gc.freeze()  # the collector can skip thousands of tests that live as long as the process


def pytest_unconfigure() -> None:
    """Let libraries check their remains at the end."""
    gc.unfreeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """End servers that no later test needs."""
    end_unneeded(item)


def _line(request: pytest.FixtureRequest) -> Callable[[str], None]:
    capture = request.config.pluginmanager.getplugin("capturemanager")
    terminal = request.config.pluginmanager.getplugin("terminalreporter")

    def line(text: str) -> None:
        with capture.global_and_fixture_disabled():
            terminal.write_line("")
            terminal.write_line(text)

    return line


@contextmanager
def _announced(request: pytest.FixtureRequest, what: str) -> Iterator[None]:
    """Name a slow start on the terminal, even while pytest captures output."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    terminal = request.config.pluginmanager.getplugin("terminalreporter")
    started = time.monotonic()
    with capture.global_and_fixture_disabled():
        terminal.write(f"\nstarting {what} ... ", flush=True)
        yield
        terminal.write(f"up in {time.monotonic() - started:.1f} s\n", flush=True)
