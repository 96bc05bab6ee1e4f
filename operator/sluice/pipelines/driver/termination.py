"""Write the termination message, in which a driver's pod tells the operator how it ended.

The message has the outcome and, after a failure, the error. It proves nothing: the operator asks
the store whether a copy is complete. An archive in a volume is the exception. The operator cannot
look into volumes, so the message has the facts of the archive. A verification of a query writes
what it has found.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import structlog

from sluice.core.archive.recorded import Recorded
from sluice.core.query.recount import Recount

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.core.values.trouble import Trouble

Report = Recorded | Recount
"""What a driver reports to an operator that cannot look."""

_log = structlog.get_logger()

MAX_BYTES = 4096
"""Bytes of a termination message that the kubelet keeps."""

_KEYS: dict[type[Report], str] = {Recorded: "recorded", Recount: "recount"}

_CUT = "..."

_WIDEST = 6
"""The most bytes that a character takes in JSON: those of an escaped control character."""


def message(trouble: Trouble | None, report: Report | None = None) -> bytes:
    """Return the termination message: JSON of at most MAX_BYTES bytes. Long texts are cut.

    Args:
        trouble: why the copy failed; None when it succeeded.
        report: what the operator cannot see.
    """
    if trouble is None:
        told = {} if report is None else {_KEYS[type(report)]: report.model_dump(mode="json")}
        return _encoded({"outcome": "Succeeded", **told})
    said = {"outcome": "Failed", **trouble.model_dump(mode="json")}
    for text in ("message", "remedy", "field"):
        said = _fitted(said, text)
    return _encoded(said)


def write(path: Path | None, trouble: Trouble | None, report: Report | None = None) -> None:
    """Write the message to a file. Without a path, or on failure, only the exit code remains."""
    if path is None:
        return
    try:
        path.write_bytes(message(trouble, report))
    except OSError as error:
        _log.warning("the termination message cannot be written", error=str(error))


def _fitted(said: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the message with the text of `key` cut until it fits, down to the dots alone."""
    text = said[key] or ""
    while text and (excess := len(_encoded(said)) - MAX_BYTES) > 0:
        text = text[: -max(1, excess // _WIDEST)]
        said = {**said, key: text + _CUT}
    return said


def _encoded(said: dict[str, Any]) -> bytes:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
