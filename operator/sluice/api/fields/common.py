"""Define what all kinds share: the base model, metadata, references, names and paths."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from sluice.api.fields.backends import Holds, either
from sluice.api.rules import Rule, rules

GROUP: Final = "sluice.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"


class ApiModel(BaseModel):
    """A part of a resource: camelCase in YAML, unknown fields refused, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        defer_build=True,  # see Frozen
        extra="forbid",
        frozen=True,
        validate_by_name=False,
    )


StoreName = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")
]
"""The name of one of Sluice's resources, or of a namespace."""

ObjectName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
    ),
]
"""The name of a Kubernetes object: a Secret, ConfigMap or PersistentVolumeClaim."""

_PARTS = r"^[A-Za-z0-9._=+@-]+(/[A-Za-z0-9._=+@-]+)*$"
_FOLDERS = ("data", "events", "runs", "heads", "leases", "work", ".partial")
_NO_STEP = "a path has no parts . and ..: write it without"
_NO_FOLDER = (
    f"no part of an archive's path is called {', '.join(_FOLDERS)}, . or ..: these are folders of "
    "archives; take another name"
)
_STEP = r"(^|/)[.]{1,2}(/|$)"
_FOLDER = rf"(^|/)({'|'.join(_FOLDERS).replace('.', '[.]')}|[.]{{1,2}})(/|$)"


def _without(pattern: str, remedy: str) -> AfterValidator:
    """Give a validator that refuses a path in which `pattern` is found."""

    def check(path: str) -> str:
        if re.search(pattern, path):
            raise ValueError(remedy)
        return path

    return AfterValidator(check)


def only(pattern: str, remedy: str) -> AfterValidator:
    """Give a validator that refuses a text which `pattern` does not match as a whole."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(remedy)
        return text

    return AfterValidator(check)


_LONGEST: Final = 249
_NEW_NAME: Final = "^[A-Za-z0-9.-]+$"
_ANY_NAME: Final = "^_?[A-Za-z0-9.-]+$"
NO_NEW_NAME: Final = (
    "names in a store have letters, digits, . and - only, and those with _ are its own: choose "
    "another"
)
_NO_NAME: Final = (
    "names in a store have letters, digits, . and - only, and one _ in front if they are its own"
)
NEW_NAME_RULE: Final = Rule(f"self.matches('{_NEW_NAME}')", NO_NEW_NAME)
"""The API server's rule of NewNameInStore. A field with rules of its own has to repeat it, since
these replace those of its type.
"""

NameInStore = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_LONGEST,
        json_schema_extra=rules(Rule(f"self.matches('{_ANY_NAME}')", _NO_NAME)),
    ),
    only(_ANY_NAME, _NO_NAME),
]
"""The name of an existing stream or scope: see `validateStreamName` of Pravega's NameUtils."""

NewNameInStore = Annotated[
    str,
    Field(min_length=1, max_length=_LONGEST, json_schema_extra=rules(NEW_NAME_RULE)),
    only(_NEW_NAME, NO_NEW_NAME),
]
"""The name of a stream or scope to make: see `validateUserStreamName` of Pravega's NameUtils."""


def is_new_name(text: str) -> bool:
    """Tell whether a stream or scope can have this name, and the store keeps none for itself."""
    return len(text) <= _LONGEST and re.fullmatch(_NEW_NAME, text) is not None


Folder = Annotated[
    str,
    Field(
        min_length=1,
        max_length=512,
        pattern=_PARTS,
        json_schema_extra=rules(Rule(f"!self.matches('{_STEP}')", _NO_STEP)),
    ),
    _without(_STEP, _NO_STEP),
]
"""The path in a bucket or a volume below which the archives are."""

ArchivePath = Annotated[
    str,
    Field(
        min_length=1,
        max_length=512,
        pattern=_PARTS,
        json_schema_extra=rules(Rule(f"!self.matches('{_FOLDER}')", _NO_FOLDER)),
    ),
    _without(_FOLDER, _NO_FOLDER),
]
"""The path in its store of an archive, or of a folder of archives. No part has a name that
`core.archive.names` gives to an archive's own folders.
"""

ArchiveFolder = Annotated[ArchivePath, Field(max_length=262)]
"""The path of a folder of archives, short enough that a stream's name can follow."""


class Metadata(ApiModel):
    """The fields of Kubernetes' metadata that Sluice reads. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    name: StoreName = Field(description="The resource's name.")
    namespace: StoreName = Field(default="default", description="The resource's namespace.")


class StoreRef(ApiModel):
    """A reference to a StreamStore."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: StoreName = Field(description="The StreamStore's name.")
    namespace: StoreName | None = Field(
        default=None,
        description="The StreamStore's namespace, if it is another one. The StreamStore's "
        "`access.sharedWith` has to admit the resource's namespace.",
    )

    @property
    def title(self) -> str:
        """The name, with the namespace if it is given."""
        return self.name if self.namespace is None else f"{self.namespace}/{self.name}"

    def other(self, namespace: str) -> str | None:
        """Return the StreamStore's namespace if it is not this one; None if it is."""
        return None if self.namespace in {None, namespace} else self.namespace


def other_store(source: str, target: str) -> str:
    """Return the API server's rule that two places name different StreamStores.

    It does not know the resource's own namespace, so it compares the references as they are.

    Args:
        source: a place that has the field storeRef, in CEL.
        target: the other place.
    """
    near, far = f"{source}.storeRef", f"{target}.storeRef"
    # The word is reserved in CEL. Without the underscores the API server does not find the field's
    # maxLength, and refuses the rule as too costly.
    own, other = f"{near}.__namespace__", f"{far}.__namespace__"
    return (
        f"{near}.name != {far}.name || has({own}) != has({other})"
        f" || (has({own}) && {own} != {other})"
    )


class SecretRef(ApiModel):
    """A reference to a Secret in the same namespace."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: ObjectName = Field(description="The object's name.")


class PlaceInStore(ApiModel, ABC):
    """A place in a StreamStore, however it names that."""

    @property
    @abstractmethod
    def ref(self) -> StoreRef:
        """The reference to the StreamStore."""

    @property
    def store(self) -> str:
        """The name of the StreamStore, with its namespace if that is given."""
        return self.ref.title

    @property
    def store_field(self) -> str:
        """The path of the field that names the StreamStore, relative to this one."""
        return "storeRef.name"

    @property
    def holds_archives(self) -> bool:
        """Whether the StreamStore must hold archives."""
        return False


class InStore(PlaceInStore):
    """A place in a StreamStore of any namespace."""

    store_ref: StoreRef

    @property
    def ref(self) -> StoreRef:
        """The reference to the StreamStore."""
        return self.store_ref


class OwnStoreRef(ApiModel):
    """A reference to a StreamStore of the resource's own namespace."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: StoreName = Field(
        description="The StreamStore's name. It is in the namespace of this resource."
    )


class InOwnStore(PlaceInStore):
    """A place in a StreamStore of the resource's own namespace."""

    store_ref: OwnStoreRef

    @property
    def ref(self) -> StoreRef:
        """The reference to the StreamStore."""
        return StoreRef.model_construct(name=self.store_ref.name)


class StreamInStore(InStore):
    """A stream that is read from a store of streams."""

    store_ref: StoreRef = Field(
        description=f"The StreamStore that holds the stream. Its kind is {either(Holds.LIVE)}."
    )
    scope: NameInStore = Field(description="The stream's scope.")
    stream: NameInStore = Field(description="The stream's name.")

    @property
    def title(self) -> str:
        """The stream with its scope, for messages."""
        return f"{self.scope}/{self.stream}"


class Resource(ApiModel):
    """The fields that every resource has. The operator writes the status; files do not set it."""

    model_config = ConfigDict(extra="forbid")

    api_version: Literal["sluice.dev/v1alpha1"]
    metadata: Metadata
    status: Any = Field(default=None, exclude=True)
