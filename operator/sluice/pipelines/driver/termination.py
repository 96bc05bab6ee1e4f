"""The termination message: what a driver's pod says about its end, for the operator to read.

It carries the outcome and the class of the error only. Whether a copy is whole the operator sees in
the store; a message proves nothing. Only of an archive in a volume, into which the operator cannot
look, it tells what there is.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.core.archive.recorded import Recorded
    from sluice.core.values.trouble import Trouble

_log = structlog.get_logger()

MAX_BYTES = 4096
"""What the kubelet keeps of a termination message."""

_CUT = "..."

_WIDEST = 6
"""Bytes that a character takes at most in JSON: those of an escaped control character."""


def message(trouble: Trouble | None, recorded: Recorded | None = None) -> bytes:
    """The message for an end: JSON of at most MAX_BYTES bytes; long texts are cut.

    Args:
        trouble: why the copy failed; None when it succeeded.
        recorded: what there is to say of an archive that the operator does not see.
    """
    if trouble is None and recorded is not None:
        return _encoded({"outcome": "Succeeded", "recorded": recorded.model_dump(mode="json")})
    if trouble is None:
        return _encoded({"outcome": "Succeeded"})
    said = {"outcome": "Failed", **trouble.model_dump(mode="json")}
    for text in ("message", "remedy", "field"):
        said = _fitted(said, text)
    return _encoded(said)


def write(path: Path | None, trouble: Trouble | None, recorded: Recorded | None = None) -> None:
    """Write the message; without a path, or where that fails, the exit code has to do."""
    if path is None:
        return
    try:
        path.write_bytes(message(trouble, recorded))
    except OSError as error:
        _log.warning("the termination message cannot be written", error=str(error))


def _fitted(said: dict[str, Any], key: str) -> dict[str, Any]:
    """The message with one text cut as far as is needed, at most to nothing but the dots."""
    text = said[key] or ""
    while text and (excess := len(_encoded(said)) - MAX_BYTES) > 0:
        text = text[: -max(1, excess // _WIDEST)]
        said = {**said, key: text + _CUT}
    return said


def _encoded(said: dict[str, Any]) -> bytes:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
