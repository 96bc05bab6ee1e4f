"""Fixtures for tests of the chart and of a release's files."""

import pytest

from support.kube.chart import VARIANTS, Rendered, render

_FIRST_SECONDS = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first test that uses Helm the time to compile it."""
    for item in items:
        if "packaging" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_FIRST_SECONDS))


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def rendered(request: pytest.FixtureRequest) -> Rendered:
    """Return the chart's objects of each variant of its values."""
    return render(request.param)
