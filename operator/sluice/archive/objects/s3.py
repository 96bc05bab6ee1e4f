"""A bucket as an object store, through obstore.

Requests are bounded in bytes, so each has a deadline as a whole. Objects are put in one request:
a multipart upload that somebody is killed in would stay, and cost, where no listing shows it.
"""

from __future__ import annotations

import asyncio
import math
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from sluice.archive.objects.objects import ObjectInfo
from sluice.errors import (
    AuthenticationFailed,
    PermissionDenied,
    SluiceError,
    StoreBusy,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
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
"""Bytes per second below which a transfer of the largest object comes to its deadline."""

_CHUNK: Final = 256 << 10
"""Bytes of an object after which the library hands on what it has of it, at the earliest."""

_NAMED: Final = 100
"""Bytes that an object in a listing takes beside its name."""

_LARGEST: Final = 192 << 20
"""Bytes in the largest objects."""

_AT_ONCE: Final = 32
"""Small objects that are on their way at a time."""

_BATCH: Final = 512
"""Small objects that are taken from an iterator at a time."""

_KEYS_COUNT: Final = timedelta(minutes=1)
"""For which keys from files count. The library asks again before each request, a tenth of a second
after it last did, where that is less than five minutes."""

_TRIES: Final = 2
"""How often a request is repeated at once; after that the caller decides."""

_LIBRARY: Final = "Generic S3 error: "
"""What the library puts in front of all that it says."""

_NO_USER: Final = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "XAdminUserNotFound",
}
_KINDS: Final[dict[int, type[SluiceError]]] = {
    401: AuthenticationFailed,
    403: PermissionDenied,
    409: StoreBusy,
    429: StoreBusy,
    503: StoreBusy,
}
_REMEDIES: Final[dict[type[SluiceError], str]] = {
    PermissionDenied: "Let the user list, read, write and delete objects of this bucket."
}
_NO_RANGE: Final = 416
_SERVER: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Where objects are.

    Attributes:
        name: of the bucket.
        prefix: before all names, without a slash at its end; empty for none.
        endpoint: the URL of a store that is not Amazon's.
        region: the bucket's.
        ca: certificates in PEM that the store's is trusted by, besides the system's.
    """

    name: str
    prefix: str = ""
    endpoint: str | None = None
    region: str = "us-east-1"
    ca: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Keys:
    """Who we are. Neither part appears in a repr, so neither does in logs."""

    access: str = field(repr=False)
    secret: str = field(repr=False)
    source: tuple[str, Path] | None = field(default=None, repr=False, compare=False)
    """The Secret and the folder that they were read from."""

    @classmethod
    def read(cls, secret: str, folder: Path | None) -> S3Keys:
        """Read `<folder>/<secret>/accessKeyId` and `.../secretAccessKey`.

        Raises:
            AuthenticationFailed: there is no such folder or file, or a file is empty.
        """
        names = ("accessKeyId", "secretAccessKey")
        access, hidden = (read_file(secret, name, folder, keys=names) for name in names)
        return cls(
            access=access, secret=hidden, source=None if folder is None else (secret, folder)
        )

    def again(self) -> S3Keys:
        """What the files hold by now; the same where they cannot be read, or there are none."""
        if self.source is None:
            return self
        try:
            return S3Keys.read(*self.source)
        except AuthenticationFailed:
            return self


class S3Objects:
    """`Objects` in a bucket, below a prefix.

    Args:
        bucket: where.
        keys: as whom, and then nothing of whom the environment of the process names; None for what
            that offers.
        timeouts: of requests: `connect`, and `call` for a small one.
        most: bytes of the longest object that is read or put; a request for it may take longer.
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
        """The class and the place; never a key."""
        return f"{type(self).__name__}({self._place!r})"

    @property
    def _place(self) -> str:
        """Where the objects are, as people write it."""
        return f"s3://{self._bucket.name}/{self._bucket.prefix}".rstrip("/")

    def put(self, name: str, data: Buffer) -> None:
        """Make an object, or replace it."""
        with self._told(name):
            obstore.put(self._store, name, data, use_multipart=False)

    def put_new(self, name: str, data: Buffer) -> bool:
        """Make an object; False when there is one of that name."""
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
        """What is known of an object; None when there is none."""
        with self._told(name):
            try:
                found = obstore.head(self._store, name)
            except FileNotFoundError as error:
                _only_missing(error)
                return None
            return ObjectInfo(name, found["size"], _ms(found["last_modified"].timestamp()))

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """The bytes [start, end) of an object; None when there is none."""
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
                # The library would take in whatever is sent, and not only what it has asked for.
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
                _only_missing(error)
                return None
            except BaseError as error:
                if _Answer.of(error).status == _NO_RANGE:
                    return b""
                raise

    def get_many(self, names: Sequence[str]) -> list[bytes | None]:
        """Many small objects at once, in the order of `names`."""
        return list(self._side_by_side(self.get, names))

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """The objects in a folder and below it, in the order of their whole names."""
        with self._told(prefix):
            pages = obstore.list(
                self._store, prefix.rstrip("/") or None, offset=after or None, chunk_size=1000
            )
            listed = allowance.Held()  # also where the names are kept: a listing may have no end
            while (page := self._turned(pages)) is not None:
                listed.add(sum(_NAMED + len(one["path"]) for one in page))
                for one in page:
                    yield ObjectInfo(
                        one["path"], one["size"], _ms(one["last_modified"].timestamp())
                    )

    def folders(self, prefix: str = "") -> tuple[str, ...]:
        """The folders directly in a folder."""
        with self._told(prefix):
            folder = prefix.rstrip("/") or None
            found = self._in_time(
                lambda: obstore.list_with_delimiter(self._store, folder),
                lambda: obstore.list_with_delimiter_async(self._store, folder),
            )
            return tuple(sorted(f"{one.rstrip('/')}/" for one in found["common_prefixes"]))

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that are not there are fine."""
        with self._told(names[0] if names else ""):
            obstore.delete(self._store, list(names))

    def _turned(self, pages: ListStream[Sequence[ObjectMeta]]) -> Sequence[ObjectMeta] | None:
        """The next page of a listing; None behind the last one."""

        async def turn() -> Sequence[ObjectMeta] | None:
            return await anext(pages, None)

        return self._in_time(lambda: next(pages, None), turn)

    def _in_time(self, call: Callable[[], _R], same: Callable[[], Awaitable[_R]]) -> _R:
        """What a call gives that has no end of its own, as it asks for page after page.

        Args:
            call: the call.
            same: the same one where there is a time by which it has to be over.
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
        """Raise what the library says as an error of the tree. StoreTimeout: it is too late."""
        deadline.left()
        try:
            yield
        except (BaseError, OSError) as error:
            what = name or "its list of objects"
            raise _Answer.of(error).told(f"{self._place}: {what}") from None

    @staticmethod
    def _side_by_side(act: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
        """What comes of each item, in their order."""
        source = iter(items)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="objects") as pool:
            while batch := list(islice(source, _BATCH)):
                yield from pool.map(deadline.carried(act), batch)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What an error of the library tells of the server's answer; it has a text only.

    Attributes:
        status: HTTP's; None without an answer.
        code: the store's own word.
        message: the store's own sentence, or the first line of the library's.
        late: whether there was no answer in time.
    """

    status: int | None
    code: str
    message: str
    late: bool

    @classmethod
    def of(cls, error: Exception) -> _Answer:
        """Read it out of an error. The whole text is never passed on: it is a page long."""
        text = str(error)
        status = re.search(r"status code: (\d{3})", text)
        code = re.search(r"<Code>(\w+)</Code>", text)
        said = re.search(r"<Message>([^<]*)</Message>", text)
        cause = re.findall(r'(?:message|error): "([^"]*)"', text)
        first = text.partition("\n")[0].partition(": <?xml")[0].removeprefix(_LIBRARY)
        return cls(
            int(status[1]) if status else None,
            code[1] if code else "",
            said[1] if said else ": ".join([first, *cause[-1:]]),
            "kind: Timeout" in text,
        )

    def told(self, what: str) -> SluiceError:
        """The error of the tree."""
        text = f"{what}: {self.code + ', ' if self.code else ''}{self.message}"
        if self.status is None:
            return (StoreTimeout if self.late else StoreUnavailable)(text)
        if self.code in _NO_USER:
            return AuthenticationFailed(text)
        if self.code == "NoSuchBucket":
            return StoreRejected(text, remedy="Make the bucket first, or correct its name.")
        kind = _KINDS.get(self.status)
        if kind is None:
            kind = StoreUnavailable if self.status >= _SERVER else StoreRejected
        return kind(text, remedy=_REMEDIES.get(kind))


def _only_missing(error: FileNotFoundError) -> None:
    """Raise the error where it is not an object that is missing, but the bucket or the user."""
    if _Answer.of(error).code not in {"", "NoSuchKey"}:
        raise error


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _provider(keys: S3Keys) -> S3CredentialProvider:
    """What gives the library these keys alone, and those that come into their files later.

    To keys in its configuration it would add a session token of the environment.
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
    """All that says where objects go and how they are asked for.

    What is left out the library would take from AWS_... in the environment, which is meant for
    other programs, and need not be the same for all who work on an archive.
    """
    return {
        "region": bucket.region,
        # This one comes before all others that there are.
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
