"""Kubernetes quantities: sizes in bytes, processors in thousandths."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

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
BYTES_PATTERN: Final = r"^([0-9]{1,15})(k|M|G|T|Ki|Mi|Gi|Ti)?$"
CPU_PATTERN: Final = r"^([0-9]{1,6}m|[0-9]{1,3}(\.[0-9]{1,3})?)$"
_BYTES = re.compile(BYTES_PATTERN)
_CPU = re.compile(CPU_PATTERN)


def _to_bytes(value: Any) -> Any:
    """Bytes from a Kubernetes quantity; anything else is left for pydantic to refuse."""
    if isinstance(value, str):
        match = _BYTES.fullmatch(value)
        if match is None:
            raise ValueError("write a whole number of bytes, or one with a suffix: 500k, 64Mi, 2Gi")
        return int(match[1]) * _SUFFIXES[match[2] or ""]
    return _no_boolean(value)


def _to_milli(value: Any) -> Any:
    """Thousandths of a processor from a Kubernetes quantity."""
    if isinstance(value, str):
        if _CPU.fullmatch(value) is None:
            raise ValueError("write processors, or thousandths of one: 2, 1.5, 500m")
        if value.endswith("m"):
            return int(value[:-1])
        whole, _, fraction = value.partition(".")
        return int(whole) * 1000 + int(fraction.ljust(3, "0"))
    value = _no_boolean(value)
    return value * 1000 if isinstance(value, int) else value


def _no_boolean(value: Any) -> Any:
    """Refuse what Python takes for 0 or 1 and Kubernetes does not."""
    if isinstance(value, bool):
        raise ValueError("write a number, not true or false")  # noqa: TRY004 - pydantic's contract
    return value


Bytes = Annotated[int, BeforeValidator(_to_bytes)]
"""A number of bytes, written as a Kubernetes quantity."""

MilliCpu = Annotated[int, BeforeValidator(_to_milli)]
"""Thousandths of a processor, written as a Kubernetes quantity."""
