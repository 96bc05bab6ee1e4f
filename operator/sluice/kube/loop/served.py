"""Namespaces that an operator serves, or a command is about."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Served:
    """Selection of a cluster's namespaces.

    Attributes:
        names: the namespaces; all if it is empty.
        excluded: patterns of namespaces that are left out; `*` stands for any characters.
    """

    names: Sequence[str] = ()
    excluded: Sequence[str] = ()

    def include(self, namespace: str) -> bool:
        """Tell whether a namespace is selected."""
        named = not self.names or namespace in self.names
        return named and not any(fnmatchcase(namespace, pattern) for pattern in self.excluded)


ALL: Final = Served()
"""All namespaces."""
