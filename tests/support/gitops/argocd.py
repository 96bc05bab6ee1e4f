"""Health in Argo CD's view: our Lua, run with only the functions that Argo CD provides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lupa.lua51 import LuaRuntime  # Argo CD's own interpreter speaks Lua 5.1

import gengitops

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUSES = frozenset({"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"})
_CLOSED = ("coroutine", "debug", "io", "math", "os", "string")


def health(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the status and the message of the script of the object's kind."""
    script = gengitops.scripts()[f"sluice.dev_{body['kind']}"]
    lua = LuaRuntime(register_eval=False, register_builtins=False)
    lua.execute('getmetatable("").__index = nil')
    for name in _CLOSED:
        lua.globals()[name] = None
    lua.globals().obj = lua.table_from(body, recursive=True)
    return dict(lua.execute(script))
