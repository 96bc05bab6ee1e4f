"""Start, stop or show a local Pravega.

`python -m localstore up|down|status [--cluster] [--data DIR]`. `fetch` downloads and compiles the
store's parts, without starting it.
"""

import argparse
import sys
import time
from pathlib import Path

from localstore.cache import locked, state_root
from localstore.cluster import Cluster
from localstore.errors import LocalStoreError
from localstore.foreign_jvm import compiled_client
from localstore.standalone import Standalone


def main() -> int:
    """Run the command line.

    Returns:
        The exit code; for `status`, 1 if the store does not serve.
    """
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m localstore", description=summary)
    parser.add_argument("command", choices=["up", "down", "status", "fetch"])
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="four processes whose data survive, instead of one that forgets everything",
    )
    parser.add_argument("--data", type=Path, help="directory for data, ports and logs")
    options = parser.parse_args()
    kind = "cluster" if options.cluster else "standalone"
    data = (options.data or state_root() / kind).absolute()
    try:
        if options.command == "fetch":
            compiled_client()
            return 0
        with locked(data.with_name(f"{data.name}.lock")):
            store = (Cluster if options.cluster else Standalone)(data, tethered=False)
            return _run(options.command, f"Pravega {kind}", store)
    except LocalStoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _run(command: str, what: str, store: Cluster | Standalone) -> int:
    started = time.monotonic()
    if command == "up":
        store.start()
    elif command == "down":
        store.stop()
        print(f"{what} is down")
        return 0
    if not store.serves():
        print(f"{what} is not up")
        return 1
    elapsed = time.monotonic() - started
    print(f"{what} is up" + (f" ({elapsed:.1f} s)" if command == "up" else ""))
    print(f"  controller     {store.controller_uri}")
    print(f"  segment store  {store.segment_store[0]}:{store.segment_store[1]}")
    print(f"  data and logs  {store.data}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
