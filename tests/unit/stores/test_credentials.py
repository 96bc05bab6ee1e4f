from pathlib import Path

import pytest

from sluice.config import Settings
from sluice.core.values.model import StoreAddress
from sluice.errors import AuthenticationFailed, InvalidSpec
from sluice.stores.connect import connect
from sluice.stores.credentials import Credentials, Grace


def test_credentials_never_show() -> None:
    """The repr of credentials contains neither the user nor the password."""
    text = repr(Credentials("somebody", "hunter2"))
    assert "somebody" not in text
    assert "hunter2" not in text


def test_credentials_are_read_as_kubernetes_mounts_them(tmp_path: Path) -> None:
    """A final line break belongs to the file, but spaces belong to the password."""
    (tmp_path / "login").mkdir()
    (tmp_path / "login" / "username").write_text("somebody")
    (tmp_path / "login" / "password").write_text(" hunter2 \n")
    assert Credentials.read("login", tmp_path) == Credentials("somebody", " hunter2 ")


def test_a_process_without_a_folder_of_credentials_is_told_to_mount_one() -> None:
    """The error names the field, and the remedy the setting."""
    with pytest.raises(AuthenticationFailed, match="login") as caught:
        connect(StoreAddress(uri="tcp://store:9090", secret="login"), Settings())  # noqa: S106
    assert caught.value.field == "secret"
    assert "SLUICE_CREDENTIALS_DIR" in caught.value.remedy


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_a_missing_or_empty_file_is_named(tmp_path: Path, content: str | None) -> None:
    """The error names the file, and the remedy the keys that the Secret needs."""
    (tmp_path / "login").mkdir()
    (tmp_path / "login" / "username").write_text("somebody")
    if content is not None:
        (tmp_path / "login" / "password").write_text(content)
    with pytest.raises(AuthenticationFailed, match="login/password") as caught:
        Credentials.read("login", tmp_path)
    assert "username and password" in caught.value.remedy


def test_an_address_of_another_form_is_refused_before_any_call() -> None:
    """An address that cannot be right raises InvalidSpec, and no store is made."""
    with pytest.raises(InvalidSpec, match="https://store"):
        connect(StoreAddress(uri="https://store"), Settings())


def test_a_changed_secret_is_read_again(tmp_path: Path) -> None:
    """Kubernetes changes the files under a process. If a file is missing, the known login stays."""
    folder = tmp_path / "login"
    folder.mkdir()
    for key in ("username", "password"):
        (folder / key).write_text(key)
    found = Credentials.read("login", tmp_path)
    assert found.again() == found
    (folder / "password").write_text("changed")
    assert found.again() == Credentials("username", "changed")
    (folder / "password").unlink()
    assert found.again() == found
    assert Credentials("a", "b").again() == Credentials("a", "b")


def test_a_refusal_stands_at_once_where_nothing_was_accepted() -> None:
    """A password that was never accepted is reported at once."""
    grace = Grace(lambda: 0.0)
    assert not grace.may_pass()


def test_a_refusal_after_a_success_stands_once_nothing_changed_for_a_minute() -> None:
    """The minute begins with the first refusal, and anew after each success."""
    now = [0.0]
    grace = Grace(lambda: now[0])
    grace.accepted()
    now[0] = 500.0
    assert grace.may_pass()
    now[0] = 559.0
    assert grace.may_pass()
    now[0] = 560.0
    assert not grace.may_pass()
    grace.accepted()
    assert grace.may_pass()
