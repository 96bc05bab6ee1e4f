"""The options of a table: where a stream's events are, and how they become rows.

Notebooks and Spark take the same options. None carries a password: Secrets are named, and each
process reads them from its folder of credentials.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Self

from pydantic import Field, ValidationError

from sluice.api.fields.backends import Holds, kind_of
from sluice.core.tables.columns import EventFormat, Malformed, columns_of
from sluice.core.tables.decoding import Decoder
from sluice.core.values.model import Frozen, StoreAddress, StreamName
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

HEAD: Final = "Head"
TAIL: Final = "Tail"

_REMEDY: Final = "docs/notebooks.md lists the options."
_NO_LOGIN: Final = (
    "Put user and password into files <folder>/NAME/username and <folder>/NAME/password, set "
    "SLUICE_CREDENTIALS_DIR to that folder, and give secret: NAME."
)

Limit = Annotated[int, Field(gt=0, lt=1 << 63)]


class EventsPlace(NamedTuple):
    """The place of a stream's events: a live store, an archive, or both.

    Attributes:
        store: the live store's address.
        stream: the stream; None for that of the archive.
        archive: the archive's address.
        run: the number of the archive's run; None for the last one.
    """

    store: StoreAddress | None
    stream: StreamName | None
    archive: StoreAddress | None
    run: int | None


class TableOptions(Frozen):
    """The options. `docs/notebooks.md` describes them."""

    store: str | None = None
    stream: str | None = None
    secret: str | None = None
    ca: str | None = None
    server_name: str | None = None
    client_certificate: str | None = None
    archive: str | None = None
    archive_run: Annotated[int, Field(ge=0)] | None = None
    archive_secret: str | None = None
    archive_ca: str | None = None
    archive_endpoint: str | None = None
    archive_region: str | None = None
    format: EventFormat = EventFormat.BYTES
    malformed: Malformed = Malformed.FAIL
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    starting_position: str = HEAD
    ending_position: str = TAIL
    max_events_per_trigger: Limit | None = None
    max_bytes_per_trigger: Limit | None = None
    event_time: str | None = None
    idle_after_ms: Limit | None = None
    checkpoint: str | None = None

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Self:
        """Read options, whose names may be written in small letters only.

        Raises:
            InvalidSpec: there is no such option, or it has a wrong value.
        """
        names = {name.replace("_", ""): name for name in cls.model_fields}
        known = {names.get(name.lower(), name): value for name, value in options.items()}
        try:
            found = cls.model_validate(known)
        except ValidationError as error:
            # The value is not told: it may be a password that was put into the wrong place.
            first = error.errors(include_input=False, include_url=False)[0]
            field = ".".join(map(str, first["loc"]))
            if first["type"] == "extra_forbidden":
                remedy = _NO_LOGIN if field.lower() in _LOGINS else _REMEDY
                raise InvalidSpec(
                    f"there is no option {field}", field=field, remedy=remedy
                ) from None
            raise InvalidSpec(first["msg"], field=field, remedy=_REMEDY) from None
        for field in ("store", "archive", "archive_endpoint"):
            _check_address(getattr(found, field), field)
        return found

    @property
    def place(self) -> EventsPlace:
        """The place of the events.

        Raises:
            InvalidSpec: an address or the stream's name has another form, or none is given.
        """
        if self.store is None and self.archive is None:
            raise InvalidSpec("neither a store nor an archive is named", field="store")
        if self.store is not None and self.stream is None:
            raise InvalidSpec(
                "no stream is named", field="stream", remedy="Write it as SCOPE/STREAM."
            )
        return EventsPlace(
            store=None if self.store is None else self._store(self.store),
            stream=None if self.stream is None else stream_name(self.stream),
            archive=None if self.archive is None else self._archive(self.archive),
            run=self.archive_run,
        )

    def _store(self, uri: str) -> StoreAddress:
        return _address(
            backend=kind_of(uri, Holds.LIVE).name,
            uri=uri,
            secret=self.secret,
            ca=self.ca,
            server_name=self.server_name,
            client_certificate=self.client_certificate,
        )

    def _archive(self, uri: str) -> StoreAddress:
        kind = kind_of(uri, Holds.ARCHIVES)
        if kind.mounted:
            return _address(backend=kind.name, uri=uri)
        return _address(
            backend=kind.name,
            uri=uri,
            secret=self.archive_secret,
            ca=self.archive_ca,
            endpoint=self.archive_endpoint,
            region=self.archive_region,
        )

    def decoder(self, schema: pa.Schema | None) -> Decoder:
        """Return a decoder of the events. InvalidSpec if the schema does not fit the format."""
        columns = columns_of(self.format, schema)
        return Decoder(columns, self.format, self.malformed, delimiter=self.delimiter)


_LOGINS: Final = frozenset({"user", "username", "password", "token", "accesskey", "secretkey"})
"""Names of options that other sources have for a login."""


def _check_address(uri: str | None, field: str) -> None:
    """Refuse an address with a login, without telling it. Who opens it checks the rest."""
    if uri is not None and "@" in uri.partition("://")[2].partition("/")[0]:
        raise InvalidSpec(
            "the address has a user or a password, which plans and logs would show",
            field=field,
            remedy=_NO_LOGIN,
        )


def _address(**fields: Any) -> StoreAddress:
    try:
        return StoreAddress(**fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise InvalidSpec(first["msg"], field=field, remedy=_REMEDY) from None


def stream_name(text: str) -> StreamName:
    """Read `SCOPE/STREAM`. InvalidSpec."""
    scope, _, stream = text.partition("/")
    if not scope or not stream or "/" in stream:
        raise InvalidSpec(
            f"{text!r} is no stream", field="stream", remedy="Write it as SCOPE/STREAM."
        )
    return StreamName(scope=scope, stream=stream)
