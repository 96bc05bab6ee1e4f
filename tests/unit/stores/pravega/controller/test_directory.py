import asyncio
import base64
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sluice.config import StoreTimeouts
from sluice.errors import StoreUnavailable
from sluice.stores.credentials import Credentials
from sluice.stores.pravega.controller import directory as directory_module
from sluice.stores.pravega.controller.controller import ControllerClient
from sluice.stores.pravega.controller.directory import Directory, expiry_of
from sluice.stores.pravega.names import Endpoint, TokenAccess

CONTROLLER = Endpoint("127.0.0.1", 1)
FIRST, SECOND = "scope/stream/0.#epoch.0", "scope/stream/1.#epoch.0"


@pytest.fixture
def directory() -> Directory:
    """Return a directory of a controller that gets no calls."""
    return Directory(CONTROLLER, credentials=None, timeouts=StoreTimeouts())


def test_owners_are_answered_although_they_are_forgotten_meanwhile(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is complete even if another thread empties the cache during the call."""
    known, new = Endpoint("a", 1), Endpoint("b", 2)

    def run(_call: Any) -> list[Endpoint]:
        directory.forget_owner(FIRST)
        return [new]

    monkeypatch.setattr(directory, "run", lambda _call: [known])
    assert directory.owners([FIRST]) == [known]
    monkeypatch.setattr(directory, "run", run)
    assert directory.owners([SECOND, FIRST, SECOND]) == [new, known, new]


def test_a_server_that_is_away_is_forgotten_for_all_of_its_segments(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call looks all of them up again, and segments of other servers stay in the cache."""
    old, other, new = Endpoint("a", 1), Endpoint("b", 1), Endpoint("c", 1)
    beside = "scope/stream/2.#epoch.0"
    monkeypatch.setattr(directory, "run", lambda _call: [old, other, old])
    directory.owners([FIRST, SECOND, beside])
    directory.forget_server(FIRST)
    monkeypatch.setattr(directory, "run", lambda _call: [new, new])
    assert directory.owners([SECOND, FIRST, beside]) == [other, new, new]


def test_a_call_that_another_thread_cuts_off_is_one_to_try_again() -> None:
    """A change of credentials closes the client.

    Its calls raise StoreUnavailable, which is retryable.
    """
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(4) as threads:
        endpoint = Endpoint("127.0.0.1", silent.getsockname()[1])
        directory = Directory(endpoint, credentials=None, timeouts=StoreTimeouts(call=60))
        begun = threading.Barrier(5)

        async def call(controller: ControllerClient) -> bool:
            await asyncio.to_thread(begun.wait, 60)
            return await controller.scope_exists("scope")

        waiting = [threads.submit(directory.run, call) for _ in range(4)]
        begun.wait(60)
        directory.close()
        errors = [one.exception(timeout=60) for one in waiting]
        assert [type(error) for error in errors] == [StoreUnavailable] * 4


def test_a_call_of_a_loop_that_has_ended_is_one_to_try_again(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call to a client that was just closed raises StoreUnavailable, too."""
    client = directory._connect()
    directory.close()
    monkeypatch.setattr(directory, "_connect", lambda: client)
    with pytest.raises(StoreUnavailable):
        directory.run(lambda controller: controller.scope_exists("scope"))


def test_nobody_asks_for_a_token_without_credentials(directory: Directory) -> None:
    """Without a login the token is empty and never expires."""
    assert directory.token(FIRST, TokenAccess.READ) == ("", float("inf"))


def test_a_token_says_when_it_expires() -> None:
    """The expiry is in the token's claims."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 4711}).encode()).decode().rstrip("=")
    assert expiry_of(f"head.{claims}.signature", now=1000) == 4711


@pytest.mark.parametrize("token", ["", "a.b", "a.e30.c", "a.\u00fc.c", "a.W10.c", "a.bnVsbA.c"])
def test_a_token_that_does_not_say_is_used_for_a_while(token: str) -> None:
    """A token without an expiry is used for less than the store's default time."""
    assert 1000 < expiry_of(token, now=1000) < 1600


@pytest.mark.parametrize(("life", "used"), [(600, 540), (60, 45), (20, 15), (2, 1.5)])
def test_a_token_is_used_for_most_of_its_life(
    monkeypatch: pytest.MonkeyPatch, life: float, used: float
) -> None:
    """A token with a short life is used too: otherwise each request would ask for a new one."""
    now, made = [1000.0], 0
    monkeypatch.setattr(directory_module, "time", lambda: now[0])
    directory = Directory(
        CONTROLLER, credentials=Credentials("user", "password"), timeouts=StoreTimeouts()
    )

    def run(_call: Any) -> str:
        nonlocal made
        made += 1
        claims = json.dumps({"exp": now[0] + life}).encode()
        return f"head.{base64.urlsafe_b64encode(claims).decode()}.signature"

    monkeypatch.setattr(directory, "run", run)
    for later in (0.0, used - 0.1):
        now[0] = 1000 + later
        directory.token(FIRST, TokenAccess.READ)
    assert made == 1
    now[0] = 1000 + used
    directory.token(FIRST, TokenAccess.READ)
    assert made == 2
