import pytest
from pydantic import TypeAdapter, ValidationError

from sluice.api.scalars.instant import Instant


@pytest.mark.parametrize(
    "text", ["1969-12-31T23:59:59Z", "1970-01-01T01:00:00+01:00", "0001-01-01T00:00:00+14:00"]
)
def test_a_time_is_after_1970(text: str) -> None:
    """As the API server has it; also where no calendar has that time in UTC."""
    with pytest.raises(ValidationError, match="after 1970"):
        TypeAdapter(Instant).validate_python(text)
