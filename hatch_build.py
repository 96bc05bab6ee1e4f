"""Put the compiled extension into wheels. Without a C compiler, wheels are pure Python."""

import runpy
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Extension(BuildHookInterface):
    """A hook of hatchling, for each wheel that pip or uv builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - its interface
        """Compile the extension, and put it into the wheel."""
        compiler = runpy.run_path(str(Path(self.root, "docker/compile.py")))
        try:
            compiler["compile_extension"](Path(self.root, "operator/sluice"))
        except (compiler["NoCompiler"], SubprocessError, OSError) as error:
            self.app.display_warning(f"events are counted in Python, which is slower: {error}")
            return
        build_data["artifacts"].append("*.abi3.so")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
