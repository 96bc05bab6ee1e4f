from pathlib import Path

import pytest

from localcluster.images.image import Image


@pytest.mark.parametrize(
    ("name", "repository", "tagged"),
    [
        ("localhost/sluice:dev", "localhost/sluice", True),
        ("localhost/sluice", "localhost/sluice", False),
        ("host:5000/sluice", "host:5000/sluice", False),
        ("host:5000/sluice:1", "host:5000/sluice", True),
    ],
)
def test_a_port_is_no_tag(name: str, repository: str, *, tagged: bool) -> None:
    """A colon begins a tag only after the last slash."""
    image = Image(name, Path("/context"))
    assert (image.repository, image.tagged) == (repository, tagged)
