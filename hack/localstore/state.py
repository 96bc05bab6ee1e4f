"""The ports and processes that a data directory records of its servers."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from localstore.ports import free_ports
from localstore.process import Process


def kept_ports(data: Path, names: Sequence[str]) -> dict[str, int]:
    """Return the ports of a data directory, which are chosen when it is made.

    So a restarted server has the same ports for its clients and peers.
    """
    file = data / "ports.json"
    if not file.exists():
        data.mkdir(parents=True, exist_ok=True)
        _write(file, dict(zip(names, free_ports(len(names)), strict=True)))
    ports: dict[str, int] = json.loads(file.read_text())
    return {name: ports[name] for name in names}


def save_processes(data: Path, processes: Mapping[str, Process]) -> None:
    """Record the processes that serve a data directory."""
    notes = {
        key: {
            "name": process.name,
            "pid": process.pid,
            "started": process.started,
            "log": str(process.log),
        }
        for key, process in processes.items()
    }
    _write(data / "processes.json", notes)


def living_processes(data: Path) -> dict[str, Process]:
    """Return the recorded processes that still run."""
    file = data / "processes.json"
    if not file.exists():
        return {}
    noted = {
        key: Process(
            name=note["name"], pid=note["pid"], started=note["started"], log=Path(note["log"])
        )
        for key, note in json.loads(file.read_text()).items()
    }
    return {key: process for key, process in noted.items() if process.alive}


def _write(file: Path, content: object) -> None:
    fresh = file.with_suffix(".new")  # a reader finds the old content or the new, never a part
    fresh.write_text(json.dumps(content, indent=2) + "\n")
    fresh.replace(file)
