"""Put the version and the compiled extension into wheels.

Without a C compiler, wheels are pure Python.
"""

import runpy
from pathlib import Path
from subprocess import SubprocessError
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Extension(BuildHookInterface):
    """A hook of hatchling, for each wheel that pip or uv builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the version, compile the extension, and put both into the wheel."""
        # An editable install is a checkout. Its version changes with each commit, so it names none.
        if version == "standard":
            self._folder = TemporaryDirectory()
            file = Path(self._folder.name, "VERSION")
            file.write_text(f"{self.metadata.version}\n", encoding="utf-8")
            file.chmod(0o644)
            build_data["force_include"][str(file)] = "sluice/VERSION"
        vendor = Path(self.root, "operator/sluice/serving/page/vendor")
        if vendor.is_dir():
            build_data["artifacts"].append("operator/sluice/serving/page/vendor/*")
        else:
            self.app.display_warning("pages of queries have no chart: run hack/pageparts.py first")
        compiler = runpy.run_path(str(Path(self.root, "docker/compile.py")))
        try:
            compiler["compile_extension"](Path(self.root, "operator/sluice"))
        except (compiler["NoCompiler"], SubprocessError, OSError) as error:
            self.app.display_warning(f"events are counted in Python, which is slower: {error}")
            return
        build_data["artifacts"].append("*.abi3.so")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - its interface
        """Remove the file of the version, which is in the wheel now."""
        if version == "standard":
            self._folder.cleanup()
