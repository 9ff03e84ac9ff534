"""An org: its database, its project's settings, and how it launches workers."""

from __future__ import annotations

import os
import secrets
import sys
from asyncio import to_thread
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from evalmeta.model.login import ADMIN, User
from evalmeta.model.registry import NEWEST_API_VERSION, OLDEST_API_VERSION, ApiVersion, parse_api_version
from evalmeta.package.project import SETTINGS_FILE
from evalmeta.protocol.oauth import read_named_user_token
from evalmeta.store.components import Components
from evalmeta.store.database import Database, open_database, with_checksum
from evalmeta.store.jobs import Jobs
from evalmeta.store.runs import Runs
from evalmeta.store.users import Users, new_secret

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.errors import StoreError
    from evalmeta.model.run import CaseResult
    from evalmeta.model.settings import Settings


_T = TypeVar("_T")
ORG_ID: Final = with_checksum("00D000000000001")
_ID_CHARS: Final = 15


def _has_error(case: CaseResult) -> bool:
    # A loop takes half as long as `any`.
    for result in case.results:  # noqa: SIM110 - as above
        if result.error:
            return True
    return False


class PathFilter:
    """Make the project's files relative to its root, and remove the folders of other files."""

    __slots__ = ("_folders", "_root")

    def __init__(self, root: Path, state_dir: Path) -> None:
        folders = {str(root), str(state_dir), *sys.path}
        if state_dir.is_relative_to(root):
            folders.discard(str(state_dir))
        named = sorted((folder for folder in folders if folder.strip(os.sep)), key=len, reverse=True)
        self._folders = [text.rstrip(os.sep) + os.sep for text in named]
        self._root = str(root)

    def text(self, text: str) -> str:
        """Return a text without folders."""
        for folder in self._folders:
            text = text.replace(folder, "")
        return text.replace(self._root, "the project's folder")

    def optional(self, text: str | None) -> str | None:
        """Return a text without folders; None for None."""
        return None if text is None else self.text(text)

    def case(self, case: CaseResult) -> CaseResult:
        """Return a case result whose errors have no folders."""
        if case.error is None and not _has_error(case):
            return case
        results = tuple(
            result._replace(error=self.text(result.error), explanation=self.text(result.explanation))
            if result.error
            else result
            for result in case.results
        )
        return case._replace(error=self.optional(case.error), results=results, traceback=self.text(case.traceback))


@dataclass(frozen=True, slots=True)
class Organization:
    """What the handlers of one org share; agents are imported from the folder `root`.

    `settings` returns the project's settings as they are now, or raises SettingsError. `launch` launches a worker for a
    run, by its id. `wake` wakes the queue when a job waits, and `trouble` returns why the queue cannot work, and for
    how many seconds already. A served org answers other programs, and only an embedded one reads files of this machine
    for runs. `usable` has each `Need` that an org of one command has checked, so that code is imported once. `token` is
    the admin's, and new for every process; tokens of other users are in the database.
    """

    database: Database
    root: Path
    settings: Callable[[], Settings]
    launch: Callable[[str], None]
    wake: Callable[[], None] = lambda: None
    trouble: Callable[[], tuple[StoreError, float] | None] = lambda: None
    settings_name: str = SETTINGS_FILE
    is_served: bool = False
    reads_files: bool = False
    usable: set[tuple[str, ...]] = field(default_factory=set, repr=False)
    token: str = field(default_factory=lambda: f"{ORG_ID[:_ID_CHARS]}!{new_secret()}", repr=False)

    @property
    def components(self) -> Components:
        """Return the org's components."""
        return Components(self.database)

    @property
    def jobs(self) -> Jobs:
        """Return the org's deployments and retrieves."""
        return Jobs(self.database)

    @property
    def runs(self) -> Runs:
        """Return the org's runs."""
        return Runs(self.database)

    @property
    def users(self) -> Users:
        """Return the org's users and their tokens."""
        return Users(self.database)

    def new_token(self, user: User, *, now: float, expires: float) -> str:
        """Create a token for a user; times are in seconds since the epoch."""
        return self.users.add_token(user, org_id=ORG_ID[:_ID_CHARS], now=now, expires=expires)

    def supports(self, version: str, *, oldest: ApiVersion = OLDEST_API_VERSION) -> bool:
        """Return whether the org supports an API version, such as `64.0`."""
        known = parse_api_version(version)
        return known is not None and oldest <= known <= NEWEST_API_VERSION

    @property
    def project(self) -> str:
        """Return how a shared store names the project, whose agents no other one has; empty in a folder."""
        store = self.database.store
        return store.project(self.root) if store.url else ""

    def without_paths(self, text: str) -> str:
        """Return a text with the project's files relative to its root, and without the folders of other files."""
        return self.paths.text(text)

    @property
    def paths(self) -> PathFilter:
        """Return what removes folders from several texts."""
        return PathFilter(self.root, self.database.folder)

    def user_of(self, token: str) -> User | None:
        """Return the user of a token, compared in constant time; None if the token is unknown or has expired."""
        token = read_named_user_token(token)
        if secrets.compare_digest(token.encode(), self.token.encode()):
            return ADMIN
        return self.users.user_of(token, now=self.database.now())

    def refusal_of(self, token: str, *, usual: str) -> str:
        """Return why a token has no user; only who has the token's secret learns more than usual."""
        if self.users.is_void(read_named_user_token(token), now=self.database.now()):
            return "This token was created for another folder or by another user; create a new one: evalmeta org token"
        return usual


async def run_in_thread(org: Organization, do: Callable[[Organization], _T]) -> _T:
    """Return `do(org)`, called in a thread with a new database connection, so that the event loop is not blocked."""

    def work() -> _T:
        with closing(open_database(org.database.store)) as database:
            return do(replace(org, database=database))

    return await to_thread(work)
