import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.query.recount import Recount, SinkRecount
from sluice.core.values.trouble import Trouble
from sluice.errors import Category, StoreUnavailable
from sluice.pipelines.driver import termination

TROUBLE = Trouble.of(StoreUnavailable("store:9090 does not answer", field="spec.source"))


def test_success_says_so(tmp_path: Path) -> None:
    """A copy that is whole leaves one word."""
    termination.write(tmp_path / "log", None)
    assert json.loads((tmp_path / "log").read_bytes()) == {"outcome": "Succeeded"}


def test_a_failure_can_be_read_back_whole(tmp_path: Path) -> None:
    """All that a Trouble has stands in the message, beside the outcome."""
    termination.write(tmp_path / "log", TROUBLE)
    said = json.loads((tmp_path / "log").read_bytes())
    assert said.pop("outcome") == "Failed"
    assert Trouble.model_validate(said) == TROUBLE


@given(message=st.text(max_size=6000), remedy=st.text(max_size=6000), field=st.text(max_size=6000))
def test_no_text_makes_the_message_longer_than_the_kubelet_keeps(
    message: str, remedy: str, field: str
) -> None:
    """Whatever the texts, the message is JSON of at most 4096 bytes with reason and category."""
    trouble = Trouble(
        reason="R", category=Category.BACKEND, message=message, remedy=remedy, field=field
    )
    encoded = termination.message(trouble)
    assert len(encoded) <= termination.MAX_BYTES
    said = json.loads(encoded)
    assert (said["reason"], said["category"]) == ("R", "Backend")


@pytest.mark.parametrize("character", ["x", "ü", "\x01", '"', "😀"])
def test_long_texts_are_cut_no_more_than_is_needed(character: str) -> None:
    """Of a long text as much stays as fits, with a mark that it was cut."""
    trouble = TROUBLE.model_copy(update={"message": character * 9000})
    encoded = termination.message(trouble)
    assert len(encoded) > termination.MAX_BYTES - 16
    assert json.loads(encoded)["message"].endswith("...")
    assert json.loads(encoded)["remedy"] == trouble.remedy


def test_half_a_surrogate_does_not_break_the_message() -> None:
    """Text that is no Unicode, as file names can be, is written with a question mark."""
    said = termination.message(TROUBLE.model_copy(update={"message": "file \ud800"}))
    assert json.loads(said)["message"] == "file ?"


def test_a_message_that_cannot_be_written_does_not_fail_the_copy(tmp_path: Path) -> None:
    """The exit code has to do then."""
    termination.write(tmp_path / "no" / "folder", TROUBLE)
    termination.write(None, TROUBLE)


def test_the_largest_report_of_a_verification_fits_and_is_read_back() -> None:
    """A query has at most four sinks, and names of streams are limited."""
    sink = SinkRecount(sink=f"{'s' * 255}/{'t' * 255}", rows=1 << 56, missing=1 << 56, extra=1)
    found = Recount(version=1 << 40, batch=1 << 40, late=1 << 40, sinks=(sink,) * 4)
    encoded = termination.message(None, found)
    assert len(encoded) <= termination.MAX_BYTES
    said = json.loads(encoded)
    assert said["outcome"] == "Succeeded"
    assert Recount.model_validate(said["recount"]) == found
