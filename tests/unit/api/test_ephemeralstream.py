import pytest
from pydantic import ValidationError

from sluice.api.kinds.ephemeralstream import EphemeralStream
from sluice.api.load import invalid
from sluice.errors import InvalidSpec
from support.cases.resources import EPHEMERAL, label
from support.cases.wrong_ephemerals import GOOD, OWNERS, UNKNOWN, WRONG, ephemeral


def refusal(values: dict[str, object]) -> InvalidSpec:
    """Return the error for an invalid EphemeralStream with these values."""
    with pytest.raises(ValidationError) as caught:
        EphemeralStream.model_validate(ephemeral(values))
    return invalid(caught.value, "EphemeralStream 'helper'")


@pytest.mark.parametrize("values", GOOD, ids=label)
def test_a_good_resource_is_read(values: dict[str, object]) -> None:
    """Every valid combination of fields is accepted."""
    assert EphemeralStream.model_validate(ephemeral(values)).spec.scope == "in"


def test_what_is_left_out_is_careful() -> None:
    """By default Sluice adopts no stream, makes no scope, and ends nothing by time."""
    spec = EphemeralStream.model_validate(EPHEMERAL).spec
    assert (spec.scope_policy, spec.adopt, spec.claim) == ("MustExist", None, None)
    assert (spec.owners, spec.tracking, spec.release_when) == (
        (),
        "OwnerReference",
        "OwnersDeleted",
    )
    assert (spec.grace_period_seconds, spec.max_age_seconds) == (0, None)
    assert (spec.on_release, spec.deletion_timeout_seconds, spec.suspend) == ("Delete", None, False)


@pytest.mark.parametrize(("path", "values", "said"), [*WRONG, *UNKNOWN], ids=label)
def test_a_wrong_resource_is_refused(path: str, values: dict[str, object], said: str) -> None:
    """The error's field is the wrong field, or a parent of it; then the message names the field."""
    assert said
    error = refusal(values)
    assert error.field is not None
    assert error.field.startswith(path) or (
        path.startswith(error.field) and path.rpartition(".")[2] in error.message
    )
    assert "EphemeralStream 'helper'" in error.message


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"spec.streamPrefix": "app-"}, "exactly one thing to own is needed"),
        ({"spec.stream": "_a"}, "choose another"),
        ({"spec.owners": [{**OWNERS[0], "namespace": "b"}]}, "set tracking to Observe"),
        ({"spec.releaseWhen": "OwnersFinished"}, "add owners, or remove releaseWhen"),
        ({"spec.claim": "NewOnly"}, "remove it, or use adopt with stream"),
        ({"spec.config.tags": ["sluice.dev/a"]}, "remove them"),
        ({"spec.config.tags": ["a", "a"]}, "a tag is there twice: remove one"),
    ],
    ids=label,
)
def test_a_refusal_says_what_to_do(values: dict[str, object], said: str) -> None:
    """The message names the remedy in the words that the API server uses as well."""
    assert said in refusal(values).message
