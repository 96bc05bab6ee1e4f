"""Which namespaces an operator serves, or a command is about."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Served:
    """Some namespaces of a cluster.

    Attributes:
        names: only these; all where there is none.
        excluded: not those whose names match one of these; `*` stands for any characters.
    """

    names: Sequence[str] = ()
    excluded: Sequence[str] = ()

    def include(self, namespace: str) -> bool:
        """Whether a namespace is one of them."""
        named = not self.names or namespace in self.names
        return named and not any(fnmatchcase(namespace, pattern) for pattern in self.excluded)


ALL: Final = Served()
"""All namespaces."""
