"""sfdx-project.json: what evalmeta needs of it, checked.

By hand, for every file of a DX project is checked with it: pydantic would take longer than the check.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.errors import ProjectError
from evalmeta.model.registry import NEWEST_API_VERSION, parse_api_version
from evalmeta.package.configfile import key_name, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.model.registry import ApiVersion

__all__ = ["PackageDirectory", "ProjectFile", "read_project_file"]

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NAMESPACE: Final = re.compile(r"(?:(?=.{1,15}\Z)[A-Za-z](?:_?[A-Za-z0-9])*)?")
_EXAMPLE: Final = 'such as [{"path": "force-app", "default": true}]'


class PackageDirectory(NamedTuple):
    """One entry of packageDirectories; the path is relative, with forward slashes."""

    path: str
    default: bool = False


class ProjectFile(NamedTuple):
    """The part of `sfdx-project.json` that evalmeta uses; Salesforce has many more keys."""

    package_directories: tuple[PackageDirectory, ...]
    source_api_version: ApiVersion | None = None
    namespace: str = ""


class _Fault(NamedTuple):
    """What is wrong with a value, and the way to it."""

    keys: tuple[str | int, ...]
    reason: str


def read_project_file(file: Path) -> ProjectFile:
    """Reads `sfdx-project.json`.

    Raises:
        ProjectError: the file cannot be read, is no JSON (file, line and column), or
            describes no project: one line per finding with the file and the key.
    """
    content = _parse(file)
    faults = list(_faults(content))
    if faults or not isinstance(content, dict):
        findings = (": ".join(filter(None, (str(file), key_name(keys), reason))) + "." for keys, reason in faults)
        raise ProjectError("\n".join(findings), actions=(f"Correct {file}; nothing was done.",))
    rows = content["packageDirectories"]
    return ProjectFile(
        tuple(PackageDirectory(_slashed(row["path"]), row.get("default", False)) for row in rows),
        parse_api_version(content.get("sourceApiVersion") or ""),
        content.get("namespace") or "",
    )


def _parse(file: Path) -> object:
    try:
        content: object = orjson.loads(read_text(file, raises=ProjectError))
    except orjson.JSONDecodeError as error:
        raise ProjectError(f"{file}:{error.lineno}:{error.colno}: is not JSON: {error.msg}.") from error
    return content


def _faults(content: object) -> Iterator[_Fault]:
    if not isinstance(content, dict):
        yield _Fault((), "must be a JSON object, in braces")
        return
    yield from _directory_faults(content)
    version, namespace = content.get("sourceApiVersion"), content.get("namespace")
    if version is not None and not (isinstance(version, str) and parse_api_version(version)):
        yield _Fault(("sourceApiVersion",), f'must be an API version in quotes, such as "{NEWEST_API_VERSION}"')
    if not (namespace is None or (isinstance(namespace, str) and _NAMESPACE.fullmatch(namespace))):
        reason = "must be a namespace: up to 15 letters, digits and single underscores, beginning with a letter"
        yield _Fault(("namespace",), reason)


def _directory_faults(content: dict[str, object]) -> Iterator[_Fault]:
    key = "packageDirectories"
    if key not in content:
        yield _Fault((key,), f"is missing; it lists the folders of the project, {_EXAMPLE}")
        return
    rows = content[key]
    if not isinstance(rows, list):
        yield _Fault((key,), f"must be a list of folders, {_EXAMPLE}")
    elif not rows:
        yield _Fault((key,), f"names no folder; a project has at least one, {_EXAMPLE}")
    else:
        for place, row in enumerate(rows):
            yield from (_Fault((key, place, *keys), reason) for keys, reason in _row_faults(row))
        if sum(isinstance(row, dict) and row.get("default") is True for row in rows) > 1:
            yield _Fault((key,), "only one package directory can be the default")


def _row_faults(row: object) -> Iterator[_Fault]:
    if not isinstance(row, dict):
        yield _Fault((), 'must be an object with a path, such as {"path": "force-app"}')
        return
    if reason := _path_fault(row.get("path")):
        yield _Fault(("path",), reason)
    if not isinstance(row.get("default", False), bool):
        yield _Fault(("default",), "must be true or false")


def _path_fault(path: object) -> str | None:
    if path is None:
        return "is missing; it says where the folder is"
    if not isinstance(path, str) or not path or _CONTROL.search(path):
        return "must be the path of a folder"
    spelt = _slashed(path)
    if PurePosixPath(spelt).is_absolute() or PureWindowsPath(spelt).drive:
        return "must be relative to the project's folder"
    return None


def _slashed(path: str) -> str:
    # Projects saved on Windows may spell their folders with backslashes.
    return path.replace("\\", "/")
