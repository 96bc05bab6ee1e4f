import json
import socket
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from localstore import ForeignClient, ForeignClientError, Standalone
from support.command.sluice_command import Copy, Finished
from support.store.inline import begin, leftovers, run_inline

AUTH = "controllerURI: {uri}, auth: {{basic: {{secretRef: {{name: login}}}}}}"


class LoginCopy(Copy):
    """A copy in a store that requires a login."""

    @property
    def file(self) -> Path:
        """The file, with the Secret's name in it."""
        path = super().file
        plain = f'controllerURI: "{self.uri}"'
        assert plain in path.read_text()
        path.write_text(path.read_text().replace(plain, AUTH.format(uri=json.dumps(self.uri))))
        return path

    def credentials(self, name: str, password: str) -> str:
        """Return a folder with this login, as Kubernetes would mount it."""
        secret = self.folder / "credentials" / "login"
        secret.mkdir(parents=True)
        (secret / "username").write_text(name)
        (secret / "password").write_text(password)
        return str(secret.parent)


@pytest.fixture
def copy(tmp_path: Path, standalone: Standalone, scope: str, foreign: ForeignClient) -> Copy:
    """Return a copy of a stream of 200 events within a scope of its own."""
    foreign.create(scope, "source", segments=2)
    foreign.write(scope, "source", events=200, keys=8)
    return Copy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))


def failure(finished: Finished) -> dict[str, Any]:
    """Return the failure of a run's only copy, from its JSON."""
    (report,) = finished.json
    assert report["outcome"] == "Failed"
    error: dict[str, Any] = report["error"]
    assert error["remedy"] in finished.err
    return error


@pytest.mark.parametrize(
    ("scope_there", "stream"), [(True, "no-stream"), (False, "source")], ids=["stream", "scope"]
)
def test_an_unknown_source_is_refused(
    copy: Copy,
    standalone: Standalone,
    scope_there: bool,  # noqa: FBT001
    stream: str,
) -> None:
    """A missing source ends the run with code 2 and its field, and nothing is made."""
    copy.source = (copy.source[0] if scope_there else "no-scope", stream)
    ended = copy.run("run", "-o", "json")
    assert ended.code == 2
    error = failure(ended)
    assert (error["reason"], error["field"]) == ("SourceNotFound", "spec.source.stream")
    assert leftovers(copy, standalone) == []


def test_an_unknown_target_scope_is_refused(copy: Copy, standalone: Standalone) -> None:
    """By default a missing target scope is not made. The run ends with code 2 and its field."""
    copy.target = ("no-scope", "target")
    ended = copy.run("run", "-o", "json")
    assert ended.code == 2
    error = failure(ended)
    assert (error["reason"], error["field"]) == ("TargetScopeNotFound", "spec.target.scope")
    assert leftovers(copy, standalone) == []


def test_a_target_scope_is_made_if_the_copy_asks_for_it(
    copy: Copy, standalone: Standalone, foreign: ForeignClient, scope: str
) -> None:
    """With `scopePolicy: CreateIfAbsent` the copy makes the scope."""
    copy.target, copy.scope_policy = (f"made-{scope}", "target"), "CreateIfAbsent"
    ended = copy.run("run", "-o", "json")
    assert ended.code == 0
    assert foreign.streams(f"made-{scope}") == ["target"]
    assert foreign.read(*copy.target).digest == foreign.read(*copy.source).digest
    assert copy.run("run").code == 0


def test_a_target_of_another_owner_is_left_alone(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A foreign stream in the target's place ends the run with code 2, and keeps all its events."""
    foreign.create(*copy.target, segments=1)
    foreign.write(*copy.target, events=10)
    before = (foreign.info(*copy.target), leftovers(copy, standalone))
    ended = copy.run("run", "-o", "json")
    assert ended.code == 2
    error = failure(ended)
    assert (error["reason"], error["field"]) == ("TargetExists", "spec.target.stream")
    assert (foreign.info(*copy.target), leftovers(copy, standalone)) == before
    assert foreign.visible(*copy.target).events == 10


def test_a_store_that_is_down_is_said(copy: Copy, standalone: Standalone) -> None:
    """A refused connection ends the run with code 3 and the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    there, copy.uri = copy.uri, f"tcp://127.0.0.1:{port}"
    ended = copy.run("run", "-o", "json", "--patience", "1")
    assert ended.code == 3
    error = failure(ended)
    assert (error["reason"], error["retryable"]) == ("StoreUnavailable", True)
    assert f"127.0.0.1:{port}" in error["message"]
    copy.uri = there
    assert leftovers(copy, standalone) == []


@pytest.mark.parametrize("again", [True, False], ids=["made again", "gone"])
def test_a_source_that_was_deleted_is_not_taken_for_the_planned_one(
    copy: Copy,
    standalone: Standalone,
    foreign: ForeignClient,
    again: bool,  # noqa: FBT001
) -> None:
    """A source deleted after the plan was recorded is refused, even under its old name."""
    begin(copy)
    foreign.delete(*copy.source)
    if again:
        foreign.create(*copy.source, segments=2)
        foreign.write(*copy.source, events=200, keys=8)
    report = run_inline(copy)
    assert report.error is not None
    assert report.error.reason == ("SourceReplaced" if again else "SourceNotFound")
    assert report.cleaned is True
    assert leftovers(copy, standalone) == []


def test_a_source_truncated_below_its_bounds_is_refused(
    copy: Copy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """If retention removed planned bytes, the run ends with code 6 and leaves nothing behind."""
    begin(copy)
    foreign.truncate(*copy.source)
    ended = copy.run("run", "-o", "json", "--tasks", "1")
    assert ended.code == 6
    error = failure(ended)
    assert (error["reason"], error["category"]) == ("SourceTruncated", "Integrity")
    assert ended.json[0]["cleaned"] is True
    assert leftovers(copy, standalone) == []
    with pytest.raises(ForeignClientError):
        foreign.info(*copy.target)


@pytest.mark.exhaustive
def test_wrong_input_mended_is_input(copy: Copy, standalone: Standalone) -> None:
    """After a refusal the corrected copy runs. A further run finds it complete."""
    wrong, copy.source = copy.source, (copy.source[0], "no-stream")
    assert run_inline(copy).outcome == "Failed"
    copy.source = wrong
    first = copy.run("run", "-o", "json", "--tasks", "1")
    assert (first.code, first.json[0]["outcome"], first.json[0]["events"]) == (0, "Copied", 200)
    second = copy.run("run", "-o", "json")
    assert (second.code, second.json[0]["outcome"]) == (0, "AlreadyComplete")
    assert second.json[0]["digest"] == first.json[0]["digest"]


@pytest.fixture
def guarded(tmp_path: Path, standalone_auth: Standalone, foreign_for: Any) -> LoginCopy:
    """Return a copy in a store with logins, whose administrator made the source."""
    scope = f"guarded-{uuid4().hex[:12]}"
    admin = foreign_for(standalone_auth.controller_uri, standalone_auth.users[0])
    admin.create_scope(scope)
    admin.create(scope, "source", segments=1)
    admin.write(scope, "source", events=10)
    return LoginCopy(tmp_path, standalone_auth.controller_uri, (scope, "source"), (scope, "target"))


def assert_no_target(copy: Copy, server: Standalone, foreign_for: Any) -> None:
    """Check that the administrator finds no target."""
    with pytest.raises(ForeignClientError):
        foreign_for(server.controller_uri, server.users[0]).info(*copy.target)


def test_a_wrong_password_is_refused(
    guarded: LoginCopy, standalone_auth: Standalone, foreign_for: Any
) -> None:
    """A login that the store does not know ends the run with code 3. No password is shown."""
    folder = guarded.credentials(standalone_auth.users[0].name, "not-this-one")
    ended = guarded.run("run", "-o", "json", "--credentials-dir", folder)
    assert ended.code == 3
    assert failure(ended)["reason"] == "AuthenticationFailed"
    assert "not-this-one" not in ended.out + ended.err
    assert_no_target(guarded, standalone_auth, foreign_for)


def test_a_missing_permission_is_refused(
    guarded: LoginCopy, standalone_auth: Standalone, foreign_for: Any
) -> None:
    """A user without the right to write ends the run with code 3. No target is made."""
    reader = standalone_auth.users[1]
    folder = guarded.credentials(reader.name, reader.password)
    ended = guarded.run("run", "-o", "json", "--tasks", "1", "--credentials-dir", folder)
    assert ended.code == 3
    assert failure(ended)["reason"] == "PermissionDenied"
    assert reader.password not in ended.out + ended.err
    assert_no_target(guarded, standalone_auth, foreign_for)


def test_a_user_with_all_rights_copies(
    guarded: LoginCopy, standalone_auth: Standalone, foreign_for: Any
) -> None:
    """With the right login the same copy runs, also in tasks."""
    admin = standalone_auth.users[0]
    folder = guarded.credentials(admin.name, admin.password)
    ended = guarded.run("run", "-o", "json", "--tasks", "1", "--credentials-dir", folder)
    assert ended.code == 0
    assert foreign_for(standalone_auth.controller_uri, admin).visible(*guarded.target).events == 10
    assert admin.password not in ended.out + ended.err
