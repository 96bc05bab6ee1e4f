"""The licences of the image's contents, allowed and refused."""

from __future__ import annotations

from typing import Any

import pytest

import licences


def component(name: str, *said: str, expression: str = "") -> dict[str, Any]:
    """Return a component of a bill of materials."""
    found: list[dict[str, Any]] = [{"license": {"name": one}} for one in said]
    if expression:
        found.append({"expression": expression})
    return {"name": name, "licenses": found} if found else {"name": name}


def test_an_image_of_this_checkout_has_allowed_licences() -> None:
    """Each part of the images has an allowed licence: Python packages, jars, the page's charts.

    Tools are not in them.
    """
    found = licences.of_checkout()
    assert list(licences.refused(found)) == []
    assert {"kopf", "opentelemetry-sdk", "spark-core_2.13", "pyspark", "duckdb", "uplot"} <= {
        one["name"] for one in found
    }
    assert "pytest" not in {one["name"] for one in found}
    assert len(found) > 200


@pytest.mark.parametrize(
    ("said", "expression"),
    [
        (["GNU General Public License v3 (GPLv3)"], ""),
        (["GNU Affero General Public License v3"], ""),
        (["GNU Lesser General Public License v2 (LGPLv2)"], ""),
        (["https://www.gnu.org/software/classpath/license.html"], ""),
        (["Some Company Commercial License"], ""),
        ([], "MIT AND GPL-3.0-only"),
        ([], "GPL-2.0-only OR LGPL-2.1-only"),
    ],
    ids=str,
)
def test_a_licence_that_is_not_allowed_is_named_with_its_package(
    said: list[str], expression: str
) -> None:
    """The complaint about a licence names it and the package."""
    (line,) = licences.refused([component("left-pad", *said, expression=expression)])
    assert line.startswith("left-pad has the licence ")
    assert (expression or said[0]) in line


def test_a_package_that_says_nothing_is_refused() -> None:
    """A package without a licence is refused, so that a developer looks for it."""
    (line,) = licences.refused([component("left-pad"), component("tink")])
    assert line.startswith("left-pad says nothing")


@pytest.mark.parametrize(
    ("said", "expression"),
    [
        (["BSD License"], ""),
        (["http://www.apache.org/licenses/LICENSE-2.0.txt"], ""),
        (["MPL 1.1", "LGPL 2.1"], ""),
        ([], "Apache-2.0 AND MIT"),
        ([], "GPL-3.0-only OR MIT"),
    ],
    ids=str,
)
def test_one_licence_of_a_choice_is_enough(said: list[str], expression: str) -> None:
    """A package that offers several licences is allowed if one of them is."""
    assert list(licences.refused([component("one", *said, expression=expression)])) == []
