"""StreamStores as the resources that name them see them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sluice.core.model import Health
from sluice.core.reconcile.world import StoreSeen
