from pathlib import Path

import pytest

from sluice.config import Settings, StoreTimeouts

VARIABLES = (
    "SLUICE_CLUSTER_ID",
    "SLUICE_CREDENTIALS_DIR",
    "SLUICE_STORE_TIMEOUT",
    "SLUICE_PART_BYTES",
    "SLUICE_SPARK_BYTES",
)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset the variables of the user who runs the tests."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_an_empty_environment_gives_the_defaults() -> None:
    """Without variables the settings are the documented defaults."""
    expected = Settings(
        cluster_id="local",
        credentials_dir=None,
        timeouts=StoreTimeouts(connect=10, call=30, stall=30),
    )
    assert Settings.from_environment() == expected


def test_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each variable has its documented effect."""
    monkeypatch.setenv("SLUICE_CLUSTER_ID", "east")
    monkeypatch.setenv("SLUICE_CREDENTIALS_DIR", "/secrets")
    monkeypatch.setenv("SLUICE_STORE_TIMEOUT", "2.5")
    expected = Settings(
        cluster_id="east",
        credentials_dir=Path("/secrets"),
        timeouts=StoreTimeouts(connect=10, call=2.5, stall=2.5),
    )
    assert Settings.from_environment() == expected


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable with an empty value means its default, as manifests often leave it."""
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
    assert Settings.from_environment() == Settings()


@pytest.mark.parametrize("value", ["soon", "-1", "0", "nan", "inf", "5s"])
def test_a_timeout_that_is_no_time_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """A wrong value is refused by the variable's name."""
    monkeypatch.setenv("SLUICE_STORE_TIMEOUT", value)
    with pytest.raises(ValueError, match="SLUICE_STORE_TIMEOUT"):
        Settings.from_environment()


@pytest.mark.parametrize("name", ["SLUICE_PART_BYTES", "SLUICE_SPARK_BYTES"])
@pytest.mark.parametrize("value", ["many", "-1", "8Mi", "1.5", "\N{SUPERSCRIPT TWO}"])
def test_a_size_that_is_no_number_of_bytes_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """A wrong value is refused by the variable's name."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=name):
        Settings.from_environment()


@pytest.mark.parametrize("name", VARIABLES)
def test_every_variable_is_documented(name: str) -> None:
    """The docstring of the settings names each variable."""
    assert f"`{name}`" in str(Settings.__doc__)
