"""The commands behind `make dist` and `make release-notes`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import distribution
from distribution.errors import DistributionError
from distribution.notes import notes_of
from distribution.release import ROOT, build


def main() -> int:
    """Run a command. Return 0, or 1 after an error."""
    parser = argparse.ArgumentParser(
        prog="distribution",
        description=distribution.__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="make all files of a release")
    building.add_argument("--into", type=Path, default=ROOT / "dist", help="the folder for them")
    telling = commands.add_parser("notes", help="print a version's part of the changelog")
    telling.add_argument("version", help="such as 1.2.3")
    options = parser.parse_args()
    try:
        if options.command == "build":
            for path in build(options.into):
                print(path)
        else:
            print(notes_of(ROOT / "CHANGELOG.md", options.version), end="")
    except DistributionError as error:
        print(f"sluice: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
