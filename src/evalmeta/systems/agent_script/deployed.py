"""Agent Script that is deployed to the org of a project, without files in the project itself."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from evalmeta.errors import NotFound, ProjectError
from evalmeta.model.bundle_content import split_files
from evalmeta.model.registry import AUTHORING_BUNDLE
from evalmeta.package.project import find_project
from evalmeta.store.components import Components
from evalmeta.store.database import layout_of, open_database

if TYPE_CHECKING:
    from pathlib import Path


def deployed_script(root: Path, bundle: str) -> bytes | None:
    """Return the script of a bundle in the org of a project; None if the org does not have it.

    Raise StoreError if the org cannot be read.
    """
    try:
        store = find_project(root).store
    except (NotFound, ProjectError):
        return None
    # Opening a database creates it.
    if not layout_of(store):
        return None
    with closing(open_database(store)) as database:
        content = Components(database).content(AUTHORING_BUNDLE.name, bundle)
    if content is None:
        return None
    name, _ = AUTHORING_BUNDLE.bundle_files(bundle.casefold())
    files = {file.casefold(): data for file, data in split_files(content).items()}
    return files.get(name)
