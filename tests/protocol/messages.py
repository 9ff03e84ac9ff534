"""Messages of any content, for tests of the wire."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import TYPE_CHECKING, TypeVar, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from evalmeta.protocol import metadata_api

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")

RESULTS = (
    metadata_api.AsyncResult,
    metadata_api.DeployResult,
    metadata_api.DescribeResult,
    metadata_api.FileProperties,
    metadata_api.RetrieveResult,
)
ALL = (
    *RESULTS,
    metadata_api.DeployDetails,
    metadata_api.DeployMessage,
    metadata_api.DeployOptions,
    metadata_api.MetadataObject,
    metadata_api.RetrieveMessage,
    metadata_api.RunTestsResult,
)


def _is_xml(char: str) -> bool:
    return char in "\t\n\r" or (char >= " " and char not in "\ufffe\uffff")


texts = st.text(st.characters(exclude_categories=["Cs"]).filter(_is_xml)) | st.sampled_from(
    ["]]>", "<zipFile>AAAA</zipFile>", "&amp;", " ", "\r\n", "<!DOCTYPE x>"]
)


def made(kind: type[T]) -> SearchStrategy[T]:
    """Return a strategy for values of a message class with any field values."""
    return st.builds(kind, **{name: _of(hint) for name, hint in get_type_hints(kind).items()})


def _of(hint: object) -> SearchStrategy[object]:
    plain: dict[object, SearchStrategy[object]] = {
        str: texts,
        bool: st.booleans(),
        int: st.integers(),
        bytes: st.binary(),
        type(None): st.none(),
    }
    if hint in plain:
        return plain[hint]
    if isinstance(hint, type) and is_dataclass(hint):
        return made(hint)
    if get_origin(hint) is tuple:
        return st.lists(_of(get_args(hint)[0]), max_size=2).map(tuple)
    return st.one_of(*(_of(arg) for arg in get_args(hint)))
