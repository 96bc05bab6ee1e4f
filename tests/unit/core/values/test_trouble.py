import json

import pytest
from pydantic import ValidationError

from sluice.api.status.common import Failure
from sluice.core.values.trouble import Trouble
from sluice.errors import Category, SluiceError, SourceNotFound, StoreUnavailable


def classes(root: type[SluiceError] = SluiceError) -> list[type[SluiceError]]:
    """Return all errors of the tree."""
    children = [child for child in root.__subclasses__() if child.__module__ == root.__module__]
    return [root, *(found for child in children for found in classes(child))]


def test_a_trouble_says_what_an_error_does() -> None:
    """A trouble has the error's reason, category, message, field and remedy."""
    error = SourceNotFound("there is no stream in/orders", field="spec.source.stream")
    trouble = Trouble.of(error)
    assert (trouble.reason, trouble.category, trouble.retryable) == (
        "SourceNotFound",
        Category.SPEC,
        False,
    )
    assert (trouble.message, trouble.field) == (error.message, "spec.source.stream")
    assert trouble.remedy == error.remedy


def test_a_trouble_reads_as_two_sentences() -> None:
    """The field begins the text and the remedy ends it, without doubled full stops."""
    field = SourceNotFound("there is none.", field="spec.source", remedy="Look again.")
    assert str(Trouble.of(field)) == "spec.source: there is none. Look again."
    assert str(Trouble.of(StoreUnavailable("away", remedy=" "))) == "away."


def test_notes_are_not_lost() -> None:
    """The message includes the notes that were added to the error."""
    error = StoreUnavailable("no connection")
    error.add_note("cleaning up failed as well")
    assert Trouble.of(error).message == "no connection; cleaning up failed as well"


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_every_error_can_be_told(kind: type[SluiceError]) -> None:
    """Each class of errors fits into a status, and into a termination message that reads back."""
    trouble = Trouble.of(kind("something is wrong"))
    assert Trouble.model_validate(json.loads(trouble.model_dump_json())) == trouble
    failure = Failure(
        reason=trouble.reason,
        category=trouble.category.value,
        message=trouble.message,
        remedy=trouble.remedy,
    )
    assert failure.reason == kind.__name__


@pytest.mark.parametrize("reason", ["", "two words", "ünlikely", "x" * 200])
def test_a_reason_is_one_word(reason: str) -> None:
    """Conditions in Kubernetes accept no other reason."""
    with pytest.raises(ValidationError):
        Trouble(reason=reason, category=Category.SPEC, message="m", remedy="r")
