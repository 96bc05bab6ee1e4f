import pytest
from pydantic import TypeAdapter, ValidationError

from sluice.api.scalars.instant import Instant


@pytest.mark.parametrize(
    "text", ["1969-12-31T23:59:59Z", "1970-01-01T01:00:00+01:00", "0001-01-01T00:00:00+14:00"]
)
def test_a_time_is_after_1970(text: str) -> None:
    """Earlier times are refused, as the API server does, even if UTC's calendar lacks them."""
    with pytest.raises(ValidationError, match="after 1970"):
        TypeAdapter(Instant).validate_python(text)
