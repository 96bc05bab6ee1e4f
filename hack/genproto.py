"""Generate the messages of the controller's gRPC service beside its `.proto`.

python hack/genproto.py           write the generated files
python hack/genproto.py --check   fail if the files are out of date
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import grpc_tools  # type: ignore[import-untyped]
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent / "operator"
PROTO = Path("sluice/stores/pravega/proto/controller.proto")
NAMES = ("controller_pb2.py", "controller_pb2.pyi")


def generate(folder: Path) -> dict[Path, str]:
    """Compile the proto into `folder`.

    The include path is the root of the sources, so the generated imports are package-absolute.

    Returns:
        The text of each generated file by its path below the root.

    Raises:
        SystemExit: the compiler found an error and has printed it.
    """
    bundled = Path(grpc_tools.__file__).parent / "_proto"
    outputs = [f"--{kind}_out={folder}" for kind in ("python", "pyi")]
    status = protoc.main(["protoc", f"-I{ROOT}", f"-I{bundled}", *outputs, str(ROOT / PROTO)])
    if status:
        raise SystemExit(status)
    paths = [PROTO.parent / name for name in NAMES]
    return {path: (folder / path).read_text(encoding="utf-8") for path in paths}


def main() -> int:
    """Write or check the files. Return 1 if a check finds drift, else 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail on drift")
    check: bool = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        generated = generate(Path(folder))
    drifted = [
        path
        for path, text in generated.items()
        if not (ROOT / path).exists() or (ROOT / path).read_text(encoding="utf-8") != text
    ]
    if check:
        for path in drifted:
            print(f"{path} differs from its proto: run python hack/genproto.py", file=sys.stderr)
        return 1 if drifted else 0
    for path in drifted:
        (ROOT / path).write_text(generated[path], encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
