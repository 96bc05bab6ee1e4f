"""Fixtures for archives: buckets, and a client of each kind of object store."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localstore import ForeignClient, Standalone
from s3gateway import Gateway
from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.objects.objects import Objects
from sluice.archive.objects.s3 import Bucket, S3Keys, S3Objects
from support.command.restores import Env, Restore, bucket_store, volume
from support.model.memory_objects import MemoryObjects
from support.until import PATIENT

_buckets = itertools.count(1)


@pytest.fixture
def bucket(gateway: Gateway) -> str:
    """Return a bucket for one test alone."""
    return gateway.make_bucket(f"bucket-{next(_buckets)}")


@pytest.fixture
def in_bucket(gateway: Gateway, bucket: str) -> Callable[[str], S3Objects]:
    """Return a function that makes a client of the bucket, below a prefix."""

    def client(prefix: str = "team/a") -> S3Objects:
        place = Bucket(name=bucket, prefix=prefix, endpoint=gateway.endpoint)
        keys = S3Keys(access=gateway.access, secret=gateway.secret)
        return S3Objects(place, keys=keys, timeouts=PATIENT)

    return client


@pytest.fixture(params=["memory", "directory", "s3"])
def new_client(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Objects]:
    """Return a function that makes one more client of a place, for each kind of store."""
    if request.param == "memory":
        model = MemoryObjects()
        return lambda: model
    if request.param == "directory":
        return lambda: DirectoryObjects(tmp_path / "store" / "team" / "a")
    make: Callable[[], Objects] = request.getfixturevalue("in_bucket")
    return make


@pytest.fixture
def objects(new_client: Callable[[], Objects]) -> Objects:
    """Return a client of an empty place."""
    return new_client()


@pytest.fixture
def new_restore(
    tmp_path: Path, standalone: Standalone, scope: str
) -> Callable[[dict[str, object]], Restore]:
    """Return a function that makes a restore from this kind of store, in a scope of its own."""
    return lambda backend: Restore(
        tmp_path, standalone.controller_uri, (scope, "restored"), backend
    )


@pytest.fixture
def volume_env(
    tmp_path: Path, foreign: ForeignClient, new_restore: Callable[[dict[str, object]], Restore]
) -> Iterator[Env]:
    """Yield an environment whose archives lie in a directory."""
    env = Env(new_restore(volume(tmp_path)), foreign)
    with env.stores:
        yield env


@pytest.fixture
def bucket_env(
    tmp_path: Path,
    foreign: ForeignClient,
    gateway: Gateway,
    bucket: str,
    new_restore: Callable[[dict[str, object]], Restore],
) -> Iterator[Env]:
    """Yield an environment whose archives lie in a bucket."""
    env = Env(new_restore(bucket_store(tmp_path, gateway, bucket)), foreign)
    with env.stores:
        yield env


@pytest.fixture(params=["volume", "bucket"])
def env(request: pytest.FixtureRequest, standalone: Standalone) -> Env:
    """Return an environment with archives in a directory, or in a bucket."""
    assert standalone  # a parameter here too, so that the store stays until the last of these tests
    found: Env = request.getfixturevalue(f"{request.param}_env")
    return found
