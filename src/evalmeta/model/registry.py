"""The metadata types that evalmeta handles, as data: one row per type."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final, NamedTuple

__all__ = [
    "NEWEST_API_VERSION",
    "OLDEST_API_VERSION",
    "PARAMETER_API_VERSION",
    "TYPES",
    "ApiVersion",
    "MetadataType",
    "metadata_type",
    "nearest_type_name",
    "parse_api_version",
]


class ApiVersion(NamedTuple):
    """A Metadata API version such as 64.0; versions compare by number, not as text."""

    major: int
    minor: int = 0

    def __str__(self) -> str:
        """Gives the version as manifests and URLs write it."""
        return f"{self.major}.{self.minor}"


OLDEST_API_VERSION: Final = ApiVersion(63)
PARAMETER_API_VERSION: Final = ApiVersion(64)
NEWEST_API_VERSION: Final = ApiVersion(67)


class MetadataType(NamedTuple):
    """A metadata type.

    Attributes:
        name: the type's name in manifests and the API.
        directory: the folder its files stand in, in metadata format.
        suffix: the file suffix without the dot; source format adds `-meta.xml`.
        since: the first API version that knows the type.
        xsd: the schema's file name in `xsd/`.
        id_prefix: the first three characters of its record ids.
    """

    name: str
    directory: str
    suffix: str
    since: ApiVersion
    xsd: str
    id_prefix: str


TYPES: Final = (
    MetadataType(
        name="AiEvaluationDefinition",
        directory="aiEvaluationDefinitions",
        suffix="aiEvaluationDefinition",
        since=OLDEST_API_VERSION,
        xsd="AiEvaluationDefinition.xsd",
        id_prefix="4KA",
    ),
)
_BY_NAME: Final = {row.name.lower(): row for row in TYPES}


def metadata_type(name: str) -> MetadataType | None:
    """Finds a type by its name in any case, as the sf CLI does; None if evalmeta does not handle it."""
    return _BY_NAME.get(name.lower())


def nearest_type_name(name: str) -> str | None:
    """Gives the handled type whose name is most like `name`, or None when nothing is near."""
    close = get_close_matches(name.lower(), _BY_NAME, n=1, cutoff=0.6)
    return _BY_NAME[close[0]].name if close else None


def parse_api_version(text: str) -> ApiVersion | None:
    """Reads `64.0` (or `64`); None when the text is no API version."""
    major, dot, minor = text.strip().partition(".")
    if not re.fullmatch(r"[0-9]{1,3}", major) or (dot and minor != "0"):
        return None
    return ApiVersion(int(major))
