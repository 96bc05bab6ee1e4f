"""A bucket as a store of objects, through obstore.

Requests are bounded in bytes, so each has a deadline as a whole. An object is put in one request.
A multipart upload of a process that was killed would stay in the bucket and cost money, and no
listing would show it.
"""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from sluice.api.fields.backends import BUCKET_KEYS
from sluice.archive.objects.objects import ObjectInfo
from sluice.archive.objects.s3_answers import S3Failure, only_missing
from sluice.errors import (
    AuthenticationFailed,
    StoreRejected,
    StoreTimeout,
)
from sluice.stores import allowance, deadline
from sluice.stores.credentials import read_file

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from obstore import GetOptions, ListStream, ObjectMeta
    from obstore.store import ClientConfig, S3Config, S3Credential, S3CredentialProvider

    from sluice.archive.objects.objects import Buffer
    from sluice.config import StoreTimeouts

_T = TypeVar("_T")
_R = TypeVar("_R")

_SLOWEST: Final = 1 << 20
"""Bytes per second below which a transfer of the largest object misses its deadline."""

_CHUNK: Final = 256 << 10
"""Least bytes of an object that the library passes on at a time."""

_NAMED: Final = 100
"""Bytes of memory that an object in a listing takes beside its name."""

_LARGEST: Final = 192 << 20
"""Most bytes in an object."""

_AT_ONCE: Final = 32
"""Small objects that are transferred at a time."""

_BATCH: Final = 512
"""Small objects that are taken from an iterator at a time."""

_KEYS_COUNT: Final = timedelta(minutes=1)
"""How long keys from files are valid for the library. For keys that expire in less than five
minutes, it asks again before each request that comes a tenth of a second after it last asked."""

_TRIES: Final = 2
"""How often the library repeats a request; after that the caller decides."""


_NO_RANGE: Final = 416


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The place of objects in a bucket.

    Attributes:
        name: name of the bucket.
        prefix: prefix of all names, without a slash at its end; empty for none.
        endpoint: URL of the store, if it is not Amazon's.
        region: region of the bucket.
        ca: certificates in PEM by which the store's is trusted, beside the system's.
    """

    name: str
    prefix: str = ""
    endpoint: str | None = None
    region: str = "us-east-1"
    ca: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Keys:
    """The keys of a user of the bucket. Their repr shows none of them, so logs do not either."""

    access: str = field(repr=False)
    secret: str = field(repr=False)
    source: tuple[str, Path] | None = field(default=None, repr=False, compare=False)
    """The Secret and the folder that the keys were read from; None if they were given."""

    @classmethod
    def read(cls, secret: str, folder: Path | None) -> S3Keys:
        """Read `<folder>/<secret>/accessKeyId` and `.../secretAccessKey`.

        Raises:
            AuthenticationFailed: the folder or a file is missing, or a file is empty.
        """
        access, hidden = (read_file(secret, name, folder, keys=BUCKET_KEYS) for name in BUCKET_KEYS)
        return cls(
            access=access, secret=hidden, source=None if folder is None else (secret, folder)
        )

    def again(self) -> S3Keys:
        """Read the files again. Return the same keys if they have no files or cannot be read."""
        if self.source is None:
            return self
        try:
            return S3Keys.read(*self.source)
        except AuthenticationFailed:
            return self


class S3Objects:
    """`Objects` in a bucket, below a prefix.

    Args:
        bucket: the bucket and prefix.
        keys: the credentials. None to use those that the process's environment offers; otherwise
            nothing of that environment is used.
        timeouts: timeouts of requests: `connect`, and `call` for a small one.
        most: most bytes of an object that is read or put; its request may take longer by that.
    """

    def __init__(
        self,
        bucket: Bucket,
        *,
        keys: S3Keys | None,
        timeouts: StoreTimeouts,
        most: int = _LARGEST,
    ) -> None:
        self._bucket = bucket
        self._store = S3Store(
            bucket.name,
            prefix=bucket.prefix or None,
            config=_config(bucket),
            client_options=_options(bucket, timeouts, min(most, _LARGEST)),
            credential_provider=None if keys is None else _provider(keys),
            retry_config={
                "max_retries": _TRIES,
                "retry_timeout": timedelta(seconds=timeouts.call),
            },
        )

    def __repr__(self) -> str:
        """Return the class and the place, but no key."""
        return f"{type(self).__name__}({self._place!r})"

    @property
    def _place(self) -> str:
        """The place of the objects as a URL, for messages."""
        return f"s3://{self._bucket.name}/{self._bucket.prefix}".rstrip("/")

    def put(self, name: str, data: Buffer) -> None:
        """Make an object, or replace it."""
        with self._told(name):
            obstore.put(self._store, name, data, use_multipart=False)

    def put_new(self, name: str, data: Buffer) -> bool:
        """Make an object. Return False if one of that name exists."""
        with self._told(name):
            try:
                obstore.put(self._store, name, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True

    def put_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Make or replace many small objects."""
        for _ in self._side_by_side(lambda item: self.put(*item), items):
            pass

    def look(self, name: str) -> ObjectInfo | None:
        """Return an object's size and time; None if it does not exist."""
        with self._told(name):
            try:
                found = obstore.head(self._store, name)
            except FileNotFoundError as error:
                only_missing(error)
                return None
            return ObjectInfo(name, found["size"], _ms(found["last_modified"].timestamp()))

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return the bytes [start, end) of an object; None if it does not exist."""
        if end is not None and end <= start:
            return b"" if self.look(name) else None
        with self._told(name):
            try:
                if end is None and not start:
                    return bytes(obstore.get(self._store, name).bytes())
                if end is None:
                    rest: GetOptions = {"range": {"offset": start}}
                    return bytes(obstore.get(self._store, name, options=rest).bytes())
                part: GetOptions = {"range": (start, end)}
                # Stream and count: the library would accept more bytes than it has asked for.
                data = bytearray()
                with allowance.held() as held:
                    chunks = obstore.get(self._store, name, options=part).stream(_CHUNK)
                    for chunk in chunks:
                        deadline.left()
                        held.add(len(chunk))
                        data += chunk
                        if len(data) > end - start:
                            raise StoreRejected(
                                f"{self!r}, {name}: more is sent than was asked for"
                            )
                    return bytes(data)
            except FileNotFoundError as error:
                only_missing(error)
                return None
            except BaseError as error:
                if S3Failure.of(error).status == _NO_RANGE:
                    return b""
                raise

    def get_many(self, names: Sequence[str]) -> list[bytes | None]:
        """Read many small objects at once, in the order of `names`."""
        return list(self._side_by_side(self.get, names))

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects in a folder and below it, in the order of their whole names."""
        with self._told(prefix):
            pages = obstore.list(
                self._store, prefix.rstrip("/") or None, offset=after or None, chunk_size=1000
            )
            listed = allowance.Held()  # callers may keep the names, and a listing may have no end
            while (page := self._turned(pages)) is not None:
                listed.add(sum(_NAMED + len(one["path"]) for one in page))
                for one in page:
                    yield ObjectInfo(
                        one["path"], one["size"], _ms(one["last_modified"].timestamp())
                    )

    def folders(self, prefix: str = "") -> tuple[str, ...]:
        """Return the folders directly in a folder."""
        with self._told(prefix):
            folder = prefix.rstrip("/") or None
            found = self._in_time(
                lambda: obstore.list_with_delimiter(self._store, folder),
                lambda: obstore.list_with_delimiter_async(self._store, folder),
            )
            return tuple(sorted(f"{one.rstrip('/')}/" for one in found["common_prefixes"]))

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects. Missing ones are no error."""
        with self._told(names[0] if names else ""):
            obstore.delete(self._store, list(names))

    def _turned(self, pages: ListStream[Sequence[ObjectMeta]]) -> Sequence[ObjectMeta] | None:
        """Return the next page of a listing; None after the last one."""

        async def turn() -> Sequence[ObjectMeta] | None:
            return await anext(pages, None)

        return self._in_time(lambda: next(pages, None), turn)

    def _in_time(self, call: Callable[[], _R], same: Callable[[], Awaitable[_R]]) -> _R:
        """Return the result of a call that asks for page after page, and so has no own deadline.

        Args:
            call: the call, made if no deadline is set.
            same: the same call as a coroutine, made if a deadline is set.

        Raises:
            StoreTimeout: the deadline has passed.
        """
        seconds = deadline.left()
        if seconds == math.inf:
            return call()

        async def asked() -> _R:
            async with asyncio.timeout(seconds):
                return await same()

        try:
            return asyncio.run(asked())
        except TimeoutError:
            raise StoreTimeout(f"{self!r} was not listed to its end in time") from None

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """Raise an error of the library in the block as the matching SluiceError.

        Raises:
            StoreTimeout: the deadline had passed before the block.
        """
        deadline.left()
        try:
            yield
        except (BaseError, OSError) as error:
            what = name or "its list of objects"
            raise S3Failure.of(error).told(f"{self._place}: {what}") from None

    @staticmethod
    def _side_by_side(act: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
        """Call a function for many items at once, and yield the results in the items' order."""
        source = iter(items)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="objects") as pool:
            while batch := list(islice(source, _BATCH)):
                yield from pool.map(deadline.carried(act), batch)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _provider(keys: S3Keys) -> S3CredentialProvider:
    """Return a function that gives the library the present keys, read from their files again.

    Keys are not put into the library's configuration: it would add a session token from the
    environment to them.
    """

    def provide() -> S3Credential:
        nonlocal keys
        keys = keys.again()
        return {
            "access_key_id": keys.access,
            "secret_access_key": keys.secret,
            "token": None,
            "expires_at": None if keys.source is None else datetime.now(UTC) + _KEYS_COUNT,
        }

    return provide


def _config(bucket: Bucket) -> S3Config:
    """Return the configuration of the library for a bucket, with all relevant options set.

    The library takes an option that is left out from `AWS_...` in the environment. These variables
    are meant for other programs, and processes that share an archive may have different ones.
    """
    return {
        "region": bucket.region,
        # This option has precedence over all other endpoints.
        "aws_endpoint_url_s3": bucket.endpoint or f"https://s3.{bucket.region}.amazonaws.com",
        "virtual_hosted_style_request": False,
        "s3_express": False,
        "skip_signature": False,
        "unsigned_payload": False,
        "request_payer": False,
        "conditional_put": "etag",
    }


def _options(bucket: Bucket, timeouts: StoreTimeouts, most: int) -> ClientConfig:
    options: ClientConfig = {
        "connect_timeout": timedelta(seconds=timeouts.connect),
        "timeout": timedelta(seconds=timeouts.call + most / _SLOWEST),
        "allow_http": (bucket.endpoint or "").startswith("http://"),
    }
    if bucket.ca:
        options["root_certificate"] = bucket.ca
    return options
