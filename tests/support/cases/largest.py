"""The largest value that a schema accepts: every text and every list has its full length."""

from __future__ import annotations

import time
from typing import Any


def largest(schema: dict[str, Any]) -> Any:
    """Return the largest value that a schema accepts."""
    match schema["type"]:
        case "object":
            return {name: largest(value) for name, value in schema["properties"].items()}
        case "array":
            rows = [largest(schema["items"]) for _ in range(schema["maxItems"])]
            for number, row in enumerate(rows):
                if "type" in row:
                    row["type"] = "T" + str(number).rjust(63, "0")
            return rows
        case "integer":
            return schema["maximum"]
        case _ if "enum" in schema:
            return schema["enum"][-1]
        case _ if schema.get("format") == "date-time":
            return time.strftime("%Y-%m-%dT%H:%M:%SZ")
        case _:
            return "x" * schema["maxLength"]
