"""Define where a bucket is."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sluice.api.fields.common import Folder, SecretRef
from sluice.api.fields.stores.part import CABundle, StoreEntry, StorePart
from sluice.api.scalars.addresses import Endpoint


class S3Spec(StorePart):
    """A bucket of Amazon S3, or of another server with its protocol."""

    bucket: Annotated[
        str, Field(min_length=3, max_length=63, pattern=r"^[a-z0-9][a-z0-9.-]*[a-z0-9]$")
    ] = Field(description="The bucket's name.")
    prefix: Folder | None = Field(
        default=None,
        description="The path in the bucket below which archives are; all of the bucket when left "
        "out.",
    )
    endpoint: Endpoint | None = Field(
        default=None,
        description="The server, https://host:port. Amazon's server of the region when left out.",
    )
    region: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9-]+$")] | None = (
        Field(default=None, description="The bucket's region; us-east-1 when left out.")
    )
    credentials_secret_ref: SecretRef | None = Field(
        default=None,
        description="A Secret with the keys `accessKeyId` and `secretAccessKey`. It may be left "
        "out only where the administrator lets the operator use its own identity; pods then use "
        "what their environment offers, such as a role of their ServiceAccount.",
    )
    ca_bundle_ref: CABundle | None = Field(
        default=None,
        description="CA certificates to trust the server by, besides those of the system.",
    )

    @property
    def entry(self) -> StoreEntry:
        """The way to the bucket."""
        secret = self.credentials_secret_ref
        return StoreEntry(
            uri=f"s3://{self.bucket}/{self.prefix}" if self.prefix else f"s3://{self.bucket}",
            secret=secret.name if secret else None,
            ca=self.ca_bundle_ref,
            endpoint=self.endpoint,
            region=self.region,
        )
