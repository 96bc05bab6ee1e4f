"""What all kinds share: how models read YAML, metadata, references, paths of archives."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from sluice.api.fields.rules import Rule, rules

GROUP: Final = "sluice.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"


class ApiModel(BaseModel):
    """A part of a resource: camelCase in YAML, unknown fields refused, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, validate_by_name=False
    )


StoreName = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")
]
"""The name of a resource of ours, or of a namespace."""

ObjectName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
    ),
]
"""The name of an object of Kubernetes': of a Secret, a ConfigMap, a PersistentVolumeClaim."""

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
    """Refuses what has a part that it must not have."""

    def check(path: str) -> str:
        if re.search(pattern, path):
            raise ValueError(remedy)
        return path

    return AfterValidator(check)


def _only(pattern: str, remedy: str) -> AfterValidator:
    """Refuses what does not match as a whole."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(remedy)
        return text

    return AfterValidator(check)


_NEW_NAME: Final = "^[A-Za-z0-9.-]+$"
_ANY_NAME: Final = "^_?[A-Za-z0-9.-]+$"
_NO_NEW_NAME: Final = "names in a store have letters, digits, . and - only: choose another"
_NO_NAME: Final = (
    "names in a store have letters, digits, . and - only, and one _ in front if they are its own"
)
NEW_NAME_RULE: Final = Rule(f"self.matches('{_NEW_NAME}')", _NO_NEW_NAME)
"""The API server's part of NewNameInStore, for a field whose own rules take its place."""

NameInStore = Annotated[
    str,
    Field(
        min_length=1,
        max_length=249,
        json_schema_extra=rules(Rule(f"self.matches('{_ANY_NAME}')", _NO_NAME)),
    ),
    _only(_ANY_NAME, _NO_NAME),
]
"""The name of a stream or scope that is there: see `validateStreamName` of Pravega's NameUtils."""

NewNameInStore = Annotated[
    str,
    Field(min_length=1, max_length=249, json_schema_extra=rules(NEW_NAME_RULE)),
    _only(_NEW_NAME, _NO_NEW_NAME),
]
"""The name of a stream or scope to make: see `validateUserStreamName` of Pravega's NameUtils."""


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
"""A path in a bucket or a volume, below which archives are."""

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
"""Where an archive is in its store, or a folder of archives; what `core.archive.names` takes."""

ArchiveFolder = Annotated[ArchivePath, Field(max_length=262)]
"""A folder of archives below which there is room for the name of a stream."""


class Metadata(ApiModel):
    """Kubernetes' metadata, as far as Sluice reads it; the rest is allowed."""

    model_config = ConfigDict(extra="ignore")

    name: StoreName = Field(description="The resource's name.")
    namespace: StoreName = Field(default="default", description="The resource's namespace.")


class LocalRef(ApiModel):
    """Names a resource of ours, of the same namespace."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: StoreName = Field(description="The object's name.")


class SecretRef(ApiModel):
    """Names a Secret of the same namespace."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: ObjectName = Field(description="The object's name.")


class InStore(ApiModel):
    """Something in a StreamStore."""

    store_ref: LocalRef

    @property
    def store(self) -> str:
        """The name of the StreamStore."""
        return self.store_ref.name

    @property
    def store_field(self) -> str:
        """The field that names it, below this one."""
        return "storeRef.name"

    @property
    def holds_archives(self) -> bool:
        """Whether that has to be a store of archives."""
        return False


class Resource(ApiModel):
    """What every resource begins with. A status is the operator's and is not read from files."""

    model_config = ConfigDict(extra="forbid")

    api_version: Literal["sluice.dev/v1alpha1"]
    metadata: Metadata
    status: Any = Field(default=None, exclude=True)
