"""What `sluice position` asks for before it looks at any store."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from sluice.commands.groups import parse
from sluice.commands.positions import position
from sluice.errors import InvalidSpec


@pytest.mark.parametrize("options", [["--apply"], ["--as", "b"], ["--only-this-stream"]])
def test_options_of_a_group_need_one(options: list[str]) -> None:
    """The error says which is missing."""
    finished = CliRunner().invoke(position, ["-f", "copy.yaml", *options])
    assert isinstance(finished.exception, InvalidSpec)
    assert finished.exception.field == "--reader-group"


@pytest.mark.parametrize("field", ["--reader-group", "--as"])
@pytest.mark.parametrize("text", ["", "/", "/a", "a/", "a/b/c"])
def test_a_name_that_is_none_is_refused(field: str, text: str) -> None:
    """The error says which option it was."""
    options = ["--reader-group", "a", field, text]
    finished = CliRunner().invoke(position, ["-f", "copy.yaml", *options])
    assert isinstance(finished.exception, InvalidSpec)
    assert (finished.exception.field, text in finished.exception.message) == (field, True)


def test_a_group_may_be_named_with_its_scope() -> None:
    """Or without."""
    assert parse("a", "--as") == ("", "a")
    assert parse("s/a", "--as") == ("s", "a")
