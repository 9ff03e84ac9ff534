"""The API version in force when neither a call nor a manifest that was named says one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.errors import EvalmetaError
from evalmeta.model.manifest import PACKAGE_FILE
from evalmeta.model.registry import NEWEST_API_VERSION, parse_api_version
from evalmeta.package.files import read_file

if TYPE_CHECKING:
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.project import Project

__all__ = ["version_in_force"]


def version_in_force(project: Project) -> ApiVersion:
    """Gives a DX project's sourceApiVersion, or the version in a plain folder's `package.xml`; else the newest one.

    A `package.xml` that cannot be read says none: whoever checks it tells why.
    """
    return project.api_version or _declared(project) or NEWEST_API_VERSION


def _declared(project: Project) -> ApiVersion | None:
    path = project.root / PACKAGE_FILE
    if project.is_dx or not path.is_file():
        return None
    from evalmeta.xmlio.manifests import read_manifest  # noqa: PLC0415 - DX projects do without
    from evalmeta.xmlio.reader import read_xml  # noqa: PLC0415 - likewise

    try:
        manifest = read_manifest(read_xml(read_file(path), label=PACKAGE_FILE))
    except EvalmetaError:
        return None
    return parse_api_version(manifest.version or "")
