"""Sluice: copy, clean up and archive streams declaratively, exactly once."""

from pathlib import Path

_FILE = Path(__file__).with_name("VERSION")  # wheels and images have it, a checkout has not

__version__ = _FILE.read_text(encoding="utf-8").strip() if _FILE.exists() else "dev"
