"""How the project's definitions and those of its own org differ, as `evalmeta status` says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.org_targets import EMBEDDED_URL
from evalmeta.errors import EvalmetaError
from evalmeta.model.component import SyncState, hash_of, sync_state
from evalmeta.package.files import read_file
from evalmeta.package.resolver import list_files
from evalmeta.store.components import Components, open_tracking

if TYPE_CHECKING:
    from evalmeta.model.registry import MetadataType
    from evalmeta.viewer.pages import Source


def sync_states_of(source: Source, kind: MetadataType) -> dict[str, SyncState]:
    """Return the state of each component of a type by its full name; only admins see the files of the project."""
    org = Components(source.database).hashes(kind.name)
    if not source.user.is_admin:
        return dict.fromkeys(org, SyncState.ONLY_IN_ORG)
    try:
        files = [file for file in list_files(source.project) if file.type == kind]
        local = {file.full_name: hash_of(read_file(file.path)) for file in files}
    except (EvalmetaError, OSError):
        local = {}
    with open_tracking(source.project.state_dir, root=source.project.root, org_url=EMBEDDED_URL) as tracking:
        base = {name: synced.sha256 for name, synced in tracking.load(kind.name).items()}
    here, there = ({name.casefold(): data for name, data in each.items()} for each in (local, org))
    names = {name.casefold(): name for name in (*org, *local)}
    return {
        name: sync_state(local=here.get(key), org=there.get(key), base=base.get(key))
        for key, name in sorted(names.items())
    }
