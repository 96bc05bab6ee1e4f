from pathlib import Path

import pytest

from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.objects.s3 import S3Objects
from sluice.archive.runs.source import ArchivedStore
from sluice.config import Settings
from sluice.core.values.model import ArchivedRun, StoreAddress
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.engine.access.connect import archives, open_source
from sluice.errors import AuthenticationFailed, InvalidSpec
from support.engine.plans import segment_plan, stream_plan, whole_plan

RUN = ArchivedRun(path="team/orders", run=3, sha256="ab" * 32)
BUCKET = StoreAddress(backend="s3", uri="s3://bucket/some/prefix", secret="keys")  # noqa: S106 - a name
VOLUME = StoreAddress(backend="volume", uri="volume://backups/streams")


def keys(folder: Path) -> Settings:
    """Return settings of a process with the mounted Secret."""
    (folder / "keys").mkdir()
    (folder / "keys" / "accessKeyId").write_text("hidden-id\n")
    (folder / "keys" / "secretAccessKey").write_text("hidden-secret\n")
    return Settings(credentials_dir=folder)


def test_a_bucket_is_opened_with_the_keys_of_its_secret(tmp_path: Path) -> None:
    """The keys come from the folder of credentials, and no representation shows them."""
    root = archives(BUCKET, keys(tmp_path))
    objects = root.archive("team/orders").objects
    assert isinstance(objects, S3Objects)
    assert repr(objects) == "S3Objects('s3://bucket/some/prefix/team/orders')"
    assert "hidden" not in f"{root!r}{vars(objects)}"


@pytest.mark.parametrize("missing", ["accessKeyId", "secretAccessKey"])
def test_a_missing_key_is_named(tmp_path: Path, missing: str) -> None:
    """The error names the file, and the remedy names the keys that the Secret needs."""
    settings = keys(tmp_path)
    (tmp_path / "keys" / missing).unlink()
    with pytest.raises(AuthenticationFailed, match=f"keys/{missing}") as caught:
        archives(BUCKET, settings)
    assert "accessKeyId and secretAccessKey" in caught.value.remedy


def test_a_volume_is_a_folder_under_the_name_of_its_claim(tmp_path: Path) -> None:
    """Pods mount the claim there. A path of the store's address continues below it."""
    (tmp_path / "backups").mkdir()
    objects = archives(VOLUME, Settings(volumes_dir=tmp_path)).archive("team/orders").objects
    assert isinstance(objects, DirectoryObjects)
    assert str(tmp_path / "backups" / "streams" / "team" / "orders") in repr(objects)


def test_a_claim_that_is_not_mounted_is_refused(tmp_path: Path) -> None:
    """Nothing is written to a folder that would be gone with the pod."""
    with pytest.raises(InvalidSpec, match="is not mounted"):
        archives(VOLUME, Settings(volumes_dir=tmp_path))
    with pytest.raises(InvalidSpec, match="no folder of volumes") as caught:
        archives(VOLUME, Settings())
    assert "SLUICE_VOLUMES_DIR" in caught.value.remedy


@pytest.mark.parametrize(
    "uri", ["volume://", "volume://../x", "volume://a/../../b", "s3://x", "file://host/x", "file:x"]
)
def test_an_address_of_a_volume_leads_nowhere_else(tmp_path: Path, uri: str) -> None:
    """An address outside a claim's folder, or of another form, is refused."""
    with pytest.raises(InvalidSpec, match="is no volume"):
        archives(StoreAddress(backend="volume", uri=uri), Settings(volumes_dir=tmp_path))


def test_a_directory_of_this_machine_is_a_place(tmp_path: Path) -> None:
    """A user names the directory on the command line. Its name may have any characters."""
    address = StoreAddress(backend="volume", uri=(tmp_path / "my archives").as_uri())
    assert str(tmp_path / "my archives") in repr(archives(address, Settings()).archive().objects)


def test_a_run_is_a_store(tmp_path: Path) -> None:
    """Only an address with a run opens as a store. An address of the other kind is refused."""
    (tmp_path / "backups").mkdir()
    settings = Settings(volumes_dir=tmp_path)
    store = open_source(VOLUME.model_copy(update={"archive": RUN}), settings)
    assert isinstance(store, ArchivedStore)
    assert store.pinned == RUN
    with pytest.raises(InvalidSpec, match="holds archives"):
        open_source(VOLUME, settings)
    with pytest.raises(InvalidSpec, match="holds no archives"):
        archives(StoreAddress(uri="tcp://it:9090"), settings)


def test_plans_of_live_streams_are_written_as_before() -> None:
    """Plans of live streams have no newer fields, so recorded plans keep their hashes."""
    plan = whole_plan(stream_plan(segment_plan(10)))
    text = plan.model_dump_json()
    assert '"archive"' not in text
    assert '"endpoint"' not in text
    address = plan.sources[0].model_copy(update={"archive": RUN})
    pinned = plan.model_copy(update={"sources": (address,)})
    assert StreamCopyPlan.model_validate_json(pinned.model_dump_json()) == pinned
