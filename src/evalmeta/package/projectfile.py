"""sfdx-project.json: what evalmeta needs of it, checked."""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Annotated, Final

import orjson
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from evalmeta.errors import ProjectError
from evalmeta.model.registry import NEWEST_API_VERSION, parse_api_version
from evalmeta.package.configfile import key_name, read_text

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PackageDirectory", "ProjectFile", "read_project_file"]

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NAMESPACE: Final = re.compile(r"(?=.{1,15}\Z)[A-Za-z](?:_?[A-Za-z0-9])*")


def _inside(path: str) -> str:
    # Projects saved on Windows may spell their folders with backslashes.
    spelt = path.replace("\\", "/")
    if not spelt or _CONTROL.search(spelt):
        raise ValueError("must be the path of a folder")
    if PurePosixPath(spelt).is_absolute() or PureWindowsPath(spelt).drive:
        raise ValueError("must be relative to the project's folder")
    return spelt


def _is_api_version(text: str) -> str:
    if parse_api_version(text) is None:
        raise ValueError(f"must be an API version such as {NEWEST_API_VERSION}")
    return text


def _is_namespace(text: str) -> str:
    if text and not _NAMESPACE.fullmatch(text):
        raise ValueError(
            "must be a namespace: up to 15 letters, digits and single underscores, beginning with a letter"
        )
    return text


class PackageDirectory(BaseModel):
    """One entry of packageDirectories; the path is relative, with forward slashes."""

    path: Annotated[str, AfterValidator(_inside)]
    default: bool = False


def _one_default(directories: tuple[PackageDirectory, ...]) -> tuple[PackageDirectory, ...]:
    if sum(directory.default for directory in directories) > 1:
        raise ValueError("only one package directory can be the default")
    return directories


class ProjectFile(BaseModel):
    """The part of `sfdx-project.json` that evalmeta uses; Salesforce has many more keys."""

    package_directories: Annotated[
        tuple[PackageDirectory, ...], Field(alias="packageDirectories", min_length=1), AfterValidator(_one_default)
    ]
    source_api_version: Annotated[str, AfterValidator(_is_api_version)] | None = Field(None, alias="sourceApiVersion")
    namespace: Annotated[str, AfterValidator(_is_namespace)] | None = None


def read_project_file(file: Path) -> ProjectFile:
    """Reads `sfdx-project.json`.

    Raises:
        ProjectError: the file cannot be read, is no JSON (file, line and column), or
            describes no project: one line per finding with the file and the key.
    """
    text = read_text(file, raises=ProjectError)
    try:
        return ProjectFile.model_validate(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise ProjectError(f"{file}:{error.lineno}:{error.colno}: is not JSON: {error.msg}.") from error
    except ValidationError as error:
        findings = (
            ": ".join(filter(None, (str(file), key_name(detail["loc"]), _reason(detail["msg"])))) + "."
            for detail in error.errors(include_url=False, include_input=False)
        )
        raise ProjectError("\n".join(findings), actions=(f"Correct {file}; nothing was done.",)) from error


def _reason(message: str) -> str:
    plain = message.removeprefix("Value error, ")
    return plain[0].lower() + plain[1:]
