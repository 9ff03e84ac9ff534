"""The worker process: `python -m evalmeta.org.worker PROJECT RUN_ID...` carries runs to their ends, in order."""

from __future__ import annotations

import sys
from pathlib import Path

from evalmeta.engine.loop import run_to_end
from evalmeta.errors import EXIT_ORG, EXIT_PASSED, StoreError
from evalmeta.org.evaluations import work
from evalmeta.org.organization import Organization
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database

__all__ = ["main"]


def main(root: str, *run_ids: str) -> int:
    """Works on runs of the project in `root`; one that another worker has is passed over.

    Gives the process's exit code: 4 when the database could not be used for one of them.
    """
    project = find_project(Path(root))
    database = open_database(project.state_dir)
    try:
        org = Organization(
            database, project.root, project.settings.subjects, lambda _: None, raters=project.settings.raters
        )
        done = [_carry_out(org, run_id) for run_id in run_ids]
        return EXIT_PASSED if all(done) else EXIT_ORG
    finally:
        database.close()


def _carry_out(org: Organization, run_id: str) -> bool:
    try:
        run_to_end(work(org, run_id))
    except StoreError as error:
        sys.stderr.write(f"run {run_id}: {error}\n")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
