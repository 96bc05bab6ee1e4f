"""A builder of images without a daemon or a registry, by mmdebstrap (the base) and buildah."""

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from localcluster.commands import Say, run, succeeds, watch
from localcluster.images import pip_settings
from localcluster.images.image import Image
from localcluster.images.inputs import input_key
from localcluster.packages import archives
from localcluster.progress import step
from localstore.cache import cache_root, locked

BASE = "localhost/base:bookworm"

_SUITE = "bookworm"
_PACKAGES = ("ca-certificates",)
# As in Debian's own slim images. They also hold for packages that a Dockerfile installs.
_SLIM = (
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=force-unsafe-io",
    *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "info", "locale", "man")),
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
    "--dpkgopt=path-include=/usr/share/locale/locale.alias",
)
# Number of earlier builds that are kept of an image with references from its content, because pods
# that run them may restart.
KEPT = 3

EPOCH = 1735689600
"""The time that all files of an image have, in seconds since 1970: two builds give one digest.

Java's archive of classes records the times of its jars. So it is a time that no program takes for
unset.
"""

_SECONDS = 600.0
_RUN = Path("/run/sluice-build")

# All images are built here, so there are no signatures to check.
_POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}\n'


@dataclass(frozen=True)
class Built:
    """An image in buildah's storage.

    Attributes:
        reference: the image's name with a tag.
        id: digest of the image's configuration.
    """

    reference: str
    id: str


class Builder:
    """Buildah with a storage of its own.

    Args:
        folder: folder of images, layers and settings; the user's cache if left out.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or cache_root() / "images"
        self._run = _RUN if folder is None else folder / "run"

    def has_base(self) -> bool:
        """Tell whether a base image exists."""
        return self._id(BASE) is not None

    def build_base(self, say: Say) -> Built:
        """Make the base image from this machine's Debian archives, if they or our packages changed.

        Raises:
            LocalClusterError: Debian 12 is not available, or a program failed.
        """
        sources = "".join(f"{line}\n" for line in archives(_SUITE))
        key = hashlib.sha256(f"{sources}{_PACKAGES}{_SLIM}{EPOCH}".encode()).hexdigest()[:12]
        settled = f"{BASE}-{key}"
        with locked(self._folder / "base.lock"):
            if self._id(settled) is None:
                with step(say, f"making the base image {BASE}"):
                    self._make_base(sources, settled, say)
                self._buildah("tag", settled, BASE)
        return Built(BASE, self._id(settled) or "")

    def build(self, image: Image, say: Say) -> Built:
        """Build an image, with unchanged layers from earlier builds.

        Raises:
            LocalClusterError: the build failed.
        """
        if image.settled and (known := self._id(image.name)):
            return Built(image.name, known)
        base = self.build(image.beneath, say).reference if image.beneath else BASE
        key = input_key(image, self._id(base) or "")
        with locked(self._folder / f"{image.repository.replace('/', '_')}.lock"):
            file = self._folder / f"{image.name.replace('/', '_')}.json"
            note: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
            if note.get("key") == key and self._id(note["reference"]) == note["id"]:
                return Built(note["reference"], note["id"])
            built = self._build(image, base, say)
            earlier = self._without_old(built, note, tagged=image.tagged)
            file.write_text(json.dumps({"key": key, **asdict(built), "earlier": earlier}))
        return built

    def release(self, *, alone: bool = False) -> None:
        """Unmount the storage that buildah leaves mounted, unless a build uses it.

        Args:
            alone: whether no other process builds in this storage. Then what builds have left
                mounted inside goes as well.
        """
        mount = self._folder / "storage" / "overlay"
        if alone or mount.is_mount():  # is_mount() misses a folder that is mounted on itself
            succeeds(["umount", *(["--recursive"] if alone else []), mount])

    def export(self, built: Built, folder: Path) -> None:
        """Write an image into a folder in the OCI's image layout.

        Blobs that the folder already has stay as they are.
        """
        storage = f"[overlay@{self._folder}/storage+{self._run}]"
        uncompressed = "--dest-oci-accept-uncompressed-layers"
        copy = ["skopeo", "copy", "--insecure-policy", "--quiet", uncompressed]
        run([*copy, f"containers-storage:{storage}{built.id}", f"oci:{folder}"], seconds=_SECONDS)

    def _build(self, image: Image, base: str, say: Say) -> Built:
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".build-") as temporary:
            id_file = Path(temporary) / "id"
            arguments = {
                "BASE_IMAGE": base,
                "SOURCE_DATE_EPOCH": str(EPOCH),
                **image.build_args,
            }
            command = [
                *self._command("build"),
                *("--isolation=chroot", "--network=host", "--layers", "--pull-never"),
                f"--timestamp={EPOCH}",
                *(f"--iidfile={id_file}", f"--file={image.recipe}"),
                *(f"--volume={mount}" for mount in self._mounts()),
                *(f"--build-arg={name}={value}" for name, value in arguments.items()),
                *([f"--target={image.stage}"] if image.stage else []),
                *([f"--tag={image.name}"] if image.tagged else []),
                str(image.context),
            ]
            with step(say, f"building {image.name}"):
                watch(command, sign=lambda _: f"still building {image.name}", say=say)
            known = id_file.read_text().strip().removeprefix("sha256:")
        if image.tagged:
            return Built(image.name, known)
        reference = f"{image.name}:{known[:12]}"
        self._buildah("tag", known, reference)
        return Built(reference, known)

    def _without_old(self, built: Built, note: dict[str, Any], *, tagged: bool) -> list[str]:
        """Remove outdated builds.

        Args:
            built: the latest build.
            note: record of the build before.
            tagged: whether all builds share one name, so that the build before has lost it.

        Returns:
            The earlier references that are kept.
        """
        if not note or note["id"] == built.id:
            return list(note.get("earlier", []))
        if tagged:
            succeeds(self._command("rmi", note["id"]))
            return []
        earlier = [note["reference"], *note.get("earlier", [])]
        earlier = [reference for reference in earlier if reference != built.reference]
        for reference in earlier[KEPT:]:
            succeeds(self._command("rmi", reference))
        return earlier[:KEPT]

    def _make_base(self, sources: str, reference: str, say: Say) -> None:
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".base-") as temporary:
            context = Path(temporary)
            list_file = context / "sources.list"
            list_file.write_text(sources)
            target = str(context / "rootfs.tar")
            included = f"--include={','.join(_PACKAGES)}"
            command = ["mmdebstrap", "--variant=minbase", included, *_SLIM]
            command += [_SUITE, target, str(list_file)]
            epoch = {"SOURCE_DATE_EPOCH": str(EPOCH)}
            sign = "still making the base image"
            watch(command, sign=lambda _: sign, say=say, environment=epoch)
            (context / "Dockerfile").write_text('FROM scratch\nADD rootfs.tar /\nCMD ["bash"]\n')
            self._buildah("build", f"--tag={reference}", f"--timestamp={EPOCH}", temporary)

    def _mounts(self) -> list[str]:
        """Return mounts that let pip reach its index in a build, without traces in the image."""
        settings = pip_settings.host_settings()
        file = self._folder / "pip.conf"
        file.write_text(pip_settings.mounted_settings(settings))
        bundle = pip_settings.bundle(settings)
        return [f"{file}:/etc/pip.conf:ro", f"{bundle}:{pip_settings.MOUNTED_BUNDLE}:ro"]

    def _id(self, reference: str) -> str | None:
        inspect = self._command("inspect", "--type=image", "--format={{.FromImageID}}", reference)
        if not self._folder.exists() or not succeeds(inspect):
            return None
        return run(inspect).strip()

    def _buildah(self, *arguments: str) -> str:
        return run(self._command(*arguments), seconds=_SECONDS)

    def _command(self, command: str, *arguments: str) -> Sequence[str]:
        self._folder.mkdir(parents=True, exist_ok=True)
        policy = self._folder / "policy.json"
        if not policy.exists():
            policy.write_text(_POLICY)
        checked = [f"--signature-policy={policy}"] if command == "build" else []
        storage = [f"--root={self._folder}/storage", f"--runroot={self._run}"]
        return ["buildah", *storage, "--storage-driver=overlay", command, *checked, *arguments]
