"""The import of built images into the container runtime of our own cluster."""

import json
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from localcluster.commands import Say, run, succeeds
from localcluster.errors import LocalClusterError
from localcluster.images.builder import KEPT, Builder, Built
from localcluster.images.image import Image
from localcluster.node.layout import RUNTIME_SOCKET, Layout
from localcluster.progress import step
from localstore.cache import cache_root, locked

_SECONDS = 600.0

# The folder in which containerd keeps manifests, configurations and layers, named by digest.
_CONTENT = "io.containerd.content.v1.content/blobs/sha256"


class NodeImages:
    """The images of our own cluster.

    Args:
        layout: the cluster's files.
        builder: the builder of the images.
    """

    def __init__(self, layout: Layout, builder: Builder) -> None:
        self._record = layout.state / "images.json"
        self._blobs = layout.state / "containerd" / _CONTENT
        self._builder = builder

    def provide(self, image: Image, say: Say) -> str:
        """Build an image and load it into the node, unless it is unchanged."""
        _need_runtime()
        built = self._builder.build(image, say)
        self.load(built, say)
        return built.reference

    def load(self, built: Built, say: Say) -> None:
        """Load a built image into the node.

        Raises:
            LocalClusterError: the node does not run, or refuses the image.
        """
        _need_runtime()
        with locked(self._record.with_suffix(".lock")):
            known = self._known()
            replaced = known.get(built.reference)
            if replaced == built.id:
                return
            with step(say, f"loading {built.reference}"):
                self._import(built)
            known.pop(built.reference, None)
            known[built.reference] = built.id  # the latest image comes last
            for old in _old(known, built):
                _ctr("images", "remove", old)
                del known[old]
            self._record.write_text(json.dumps(known, indent=2) + "\n")
            if replaced and replaced not in known.values():
                _ctr("images", "remove", f"sha256:{replaced}")  # else it would stay for ever

    def _known(self) -> dict[str, str]:
        """Return the ids of the images that we loaded and the node still has."""
        if not self._record.exists():
            return {}
        known: dict[str, str] = json.loads(self._record.read_text())
        there = set(_ctr("images", "list", "--quiet").split())
        return {reference: id_ for reference, id_ in known.items() if reference in there}

    def _import(self, built: Built) -> None:
        with tempfile.TemporaryDirectory(dir=cache_root(), prefix=".import-") as temporary:
            layout = Path(temporary) / "layout"
            blobs = layout / "blobs" / "sha256"
            blobs.mkdir(parents=True)
            for blob in self._blobs.glob("*"):  # the node's own blobs are not exported again
                (blobs / blob.name).symlink_to(blob)
            self._builder.export(built, layout)
            _name(layout / "index.json", built.reference)
            archive = Path(temporary) / "image.tar"
            with tarfile.open(archive, "w") as tar:
                tar.add(layout, arcname="", filter=_without_links)
            _ctr("images", "import", str(archive))


def _old(known: Mapping[str, str], built: Built) -> list[str]:
    """Return the outdated references of the same image that come from content."""
    repository = built.reference.rpartition(":")[0]
    alike = [name for name, id_ in known.items() if name == f"{repository}:{id_[:12]}"]
    return alike[: -1 - KEPT]


def _need_runtime() -> None:
    if not runtime_answers():
        raise LocalClusterError("the cluster is down and takes no image: make cluster-up")


def _name(index_file: Path, reference: str) -> None:
    """Write an image's name into the annotation that the runtime reads."""
    index = json.loads(index_file.read_text())
    for manifest in index["manifests"]:
        manifest["annotations"] = {"io.containerd.image.name": reference}
    index_file.write_text(json.dumps(index))


def _without_links(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.issym() else member


def runtime_answers() -> bool:
    """Tell whether the container runtime answers."""
    return RUNTIME_SOCKET.exists() and succeeds(["ctr", "--address", RUNTIME_SOCKET, "version"])


def _ctr(*arguments: str) -> str:
    command = ["ctr", "--address", str(RUNTIME_SOCKET), "--namespace=k8s.io", *arguments]
    return run(command, seconds=_SECONDS)
