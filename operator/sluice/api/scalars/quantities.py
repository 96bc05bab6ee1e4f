"""Read and write Kubernetes quantities: sizes in bytes, processors in thousandths.

Sluice accepts only some of Kubernetes' forms, so that a number has few spellings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic_core import core_schema

from sluice.api.rules import Rule, rules

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

_SUFFIXES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A mark on an integer field that users write as a quantity.

    Attributes:
        least: the smallest quantity accepted.
        most: the largest quantity accepted.
    """

    least: str
    most: str

    pattern: ClassVar[str]
    longest: ClassVar[int]
    form: ClassVar[str]

    def parse(self, text: str) -> int:
        """Convert a text that matches `pattern` to a number."""
        raise NotImplementedError

    def scale(self, number: int) -> int:
        """Convert a plain number from YAML, which has no suffix, to the field's unit."""
        raise NotImplementedError

    @property
    def _remedy(self) -> str:
        return f"write {self.least} to {self.most}, in {self.form}"

    def read(self, value: Any) -> Any:
        """Read a value from YAML.

        Raises:
            ValueError: the value is no quantity, or out of bounds.
        """
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str) and re.fullmatch(self.pattern, value):
            number = self.parse(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            number = self.scale(value)
        else:
            raise ValueError(self._remedy)
        if not self.parse(self.least) <= number <= self.parse(self.most):
            raise ValueError(self._remedy)
        return number

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Give pydantic's schema of an integer that `read` converts from a quantity."""
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Give what the API server checks: the pattern, and a rule whose message tells the form."""
        rule = Rule(
            f"string(self).matches(r'{self.pattern}')"
            f" && quantity(string(self)).compareTo(quantity('{self.least}')) >= 0"
            f" && quantity(string(self)).compareTo(quantity('{self.most}')) <= 0",
            self._remedy,
        )
        return {
            "x-kubernetes-int-or-string": True,
            "pattern": self.pattern,
            "maxLength": self.longest,
            **rules(rule),
        }


def written_bytes(count: int) -> str:
    """Write a number of bytes as `Bytes` reads it, with the largest binary suffix that is exact."""
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        if count and count % _SUFFIXES[suffix] == 0:
            return f"{count // _SUFFIXES[suffix]}{suffix}"
    return str(count)


def written_cpu(thousandths: int) -> str:
    """Write thousandths of a processor as `MilliCpu` reads them."""
    whole, rest = divmod(thousandths, 1000)
    return f"{thousandths}m" if rest else str(whole)


class Bytes(Quantity):
    """A number of bytes: `4096`, `500k`, `64Mi`."""

    pattern = r"^([0-9]{1,15})(k|M|G|T|Ki|Mi|Gi|Ti)?$"
    longest = 17
    form = "bytes or with a suffix (500k, 64Mi, 2Gi)"

    def parse(self, text: str) -> int:
        """Convert a text to bytes."""
        digits = text.rstrip("kKMGTi")
        return int(digits) * _SUFFIXES[text[len(digits) :]]

    def scale(self, number: int) -> int:
        """Return the number: it counts bytes already."""
        return number


class MilliCpu(Quantity):
    """Thousandths of a processor: `2`, `1.5` (in quotes) and `500m` are 2000, 1500 and 500."""

    pattern = r"^([0-9]{1,6}m|[0-9]{1,3}(\.[0-9]{1,3})?)$"
    longest = 7
    form = 'processors or thousandths of one (2, "1.5", 500m)'

    def parse(self, text: str) -> int:
        """Convert a text to thousandths."""
        if text.endswith("m"):
            return int(text[:-1])
        whole, _, fraction = text.partition(".")
        return int(whole) * 1000 + int(fraction.ljust(3, "0"))

    def scale(self, number: int) -> int:
        """Convert whole processors to thousandths."""
        return number * 1000
