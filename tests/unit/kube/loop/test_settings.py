from pathlib import Path

import pytest

from sluice.core.values.model import StoreAddress
from sluice.errors import InvalidSpec
from sluice.kube.loop.settings import OperatorSettings, StoreSettings
from support.cases import allowed_servers


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a file that a test writes."""
    return tmp_path / "config.yaml"


def test_an_image_is_all_that_has_to_be_said(file: Path) -> None:
    """All other settings have a default, and a profile of that name exists."""
    file.write_text("image: localhost/sluice:dev\n")
    found = OperatorSettings.read(file)
    assert found.image == "localhost/sluice:dev"
    assert list(found.profiles) == ["default"]
    assert (found.cluster_id, found.namespaces, found.listen.port) == ("", [], 8080)
    assert found.profiles["default"].max_resources.memory == 8 << 30


def test_profiles_are_what_the_file_says(file: Path) -> None:
    """Sizes have Kubernetes' form, and no default profile is added to others."""
    file.write_text(
        "image: i\n"
        "clusterID: east\n"
        "profiles:\n"
        "  big:\n"
        "    slots: 4\n"
        "    maxResources: {cpu: 1500m, memory: 4Gi}\n"
        "    driver: {resources: {requests: {cpu: 2, memory: 1Gi}}, scratchSize: 2Gi}\n"
        "    executor: {cores: 2}\n"
        "    sparkConf: {spark.ui.enabled: 'true'}\n"
    )
    found = OperatorSettings.read(file)
    assert (found.cluster_id, list(found.profiles)) == ("east", ["big"])
    big = found.profiles["big"]
    assert (big.max_resources.cpu, big.max_resources.memory) == (1500, 4 << 30)
    assert big.driver.resources == {"requests": {"cpu": 2, "memory": "1Gi"}}
    assert (big.driver.scratch_size, big.executor.cores) == ("2Gi", 2)
    assert big.executor.resources["limits"] == {"memory": "1Gi"}


def test_stores_are_opened_where_the_administrator_allows_it() -> None:
    """A * stands for characters of a host or a port, and other characters for themselves."""
    stores = StoreSettings(allowed=list(allowed_servers.PATTERNS))

    def bucket(place: dict[str, str]) -> bool:
        server = StoreAddress(backend="s3", uri="s3://archives", **place).server
        assert server is not None
        return stores.allow(server)

    assert all(map(stores.allow, allowed_servers.ALLOWED))
    assert not any(map(stores.allow, allowed_servers.REFUSED))
    assert all(map(bucket, allowed_servers.BUCKETS_ALLOWED))
    assert not any(map(bucket, allowed_servers.BUCKETS_REFUSED))
    assert StoreSettings().allow("tcp://anywhere:1")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("image: [", "cannot read"),
        ("- image", "valid"),
        ("", "image: Field required"),
        ("image: i\nresyncSeconds: 0\n", "resyncSeconds: "),
        ("image: i\nlisten: {port: 70000}\n", "listen.port: "),
        ("image: i\nimages: j\n", "images: "),
        ("image: i\nprofiles: {big: {slots: 0}}\n", "profiles.big.slots: "),
        (
            "image: i\nprofiles: {big: {maxResources: {cpu: lots}}}\n",
            "profiles.big.maxResources.cpu",
        ),
        ("image: i\nprofiles: {big: {executor: {cores: 0}}}\n", "profiles.big.executor.cores: "),
        ("image: i\nprofiles: {big: {ttlSecondsAfterFinished: 1}}\n", "ttlSecondsAfterFinished"),
    ],
)
def test_a_wrong_file_is_refused_by_the_field(file: Path, text: str, says: str) -> None:
    """The error names the file and the path of the wrong value."""
    file.write_text(text)
    with pytest.raises(InvalidSpec) as caught:
        OperatorSettings.read(file)
    assert caught.value.field == "--config"
    assert str(file) in caught.value.message
    assert says in caught.value.message


def test_a_wrong_file_is_refused_with_all_that_is_wrong(file: Path) -> None:
    """An administrator need not correct one field per restart."""
    file.write_text("imagePullPolicy: [1]\nresyncSeconds: soon\n")
    with pytest.raises(InvalidSpec) as caught:
        OperatorSettings.read(file)
    assert all(f in caught.value.message for f in ("image:", "imagePullPolicy:", "resyncSeconds:"))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A folder and a file that is no text are refused, too."""
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(InvalidSpec, match="cannot read"):
            OperatorSettings.read(path)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(InvalidSpec, match="cannot read"):
        OperatorSettings.read(binary)


@pytest.mark.parametrize(
    ("sink", "says"),
    [
        ("events.example", "give a URL"),
        ("ftp://events.example/", "give a URL"),
        ("https:///x", "give a URL"),
        ("https://me:secret@events.example/", "put a header into a Secret"),
    ],
)
def test_a_sink_that_is_no_address_is_refused(file: Path, sink: str, says: str) -> None:
    """The message names the field, and quotes no credential."""
    file.write_text(f"image: i\nnotices: {{sink: '{sink}'}}\n")
    with pytest.raises(InvalidSpec, match=says) as caught:
        OperatorSettings.read(file)
    assert "notices.sink" in str(caught.value)
    assert "secret" not in str(caught.value).replace("a Secret", "")
