"""An org: its database, its subjects and how its runs find a worker."""

from __future__ import annotations

import os
import secrets
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from evalmeta.model.login import ADMIN
from evalmeta.model.registry import NEWEST_API_VERSION, OLDEST_API_VERSION, parse_api_version
from evalmeta.package.project import SETTINGS_FILE
from evalmeta.store.components import Components
from evalmeta.store.database import with_checksum
from evalmeta.store.jobs import Jobs
from evalmeta.store.runs import Runs
from evalmeta.store.users import Users, new_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from evalmeta.model.login import User
    from evalmeta.model.registry import ApiVersion
    from evalmeta.model.settings import RaterSettings, SubjectSettings
    from evalmeta.store.database import Database


ORG_ID: Final = with_checksum("00D000000000001")
_ID_CHARS: Final = 15


def _new_token() -> str:
    return f"{ORG_ID[:_ID_CHARS]}!{new_secret()}"


@dataclass(frozen=True, slots=True)
class Organization:
    """What the handlers of one org share.

    Attributes:
        root: the folder that subjects are found from.
        subjects: the adapters bound to agents, by the agent's API name.
        raters: the raters that runs may name, besides `rules`.
        launch: gives a run a worker; called with the run's id.
        wake: says that jobs may wait.
        settings_name: the file that binds subjects, as callers know it.
        reads_files: whether runs may be of files on this machine, which is for the embedded org alone.
        token: the admin's own, made anew for every process; others have theirs in the database.
    """

    database: Database
    root: Path
    subjects: Mapping[str, SubjectSettings]
    launch: Callable[[str], None]
    wake: Callable[[], None] = lambda: None
    settings_name: str = SETTINGS_FILE
    raters: Mapping[str, RaterSettings] = field(default_factory=dict)
    reads_files: bool = False
    token: str = field(default_factory=_new_token, repr=False)

    @property
    def components(self) -> Components:
        """Gives the org's components."""
        return Components(self.database)

    @property
    def jobs(self) -> Jobs:
        """Gives the org's deployments and retrieves."""
        return Jobs(self.database)

    @property
    def runs(self) -> Runs:
        """Gives the org's runs."""
        return Runs(self.database)

    @property
    def users(self) -> Users:
        """Gives the org's users and their tokens."""
        return Users(self.database)

    def new_token(self, user: User, *, now: float, expires: float) -> str:
        """Makes a token for a user; times are seconds since the epoch."""
        return self.users.add_token(user, org_id=ORG_ID[:_ID_CHARS], now=now, expires=expires)

    def speaks(self, version: str, *, oldest: ApiVersion = OLDEST_API_VERSION) -> bool:
        """Tells whether an address names an API version of the org's, such as `64.0`."""
        found = parse_api_version(version)
        return found is not None and oldest <= found <= NEWEST_API_VERSION

    def without_paths(self, text: str) -> str:
        """Gives a text for callers: files of the project by their names from its root on, others without folders."""
        folders = {str(self.root), str(self.database.path.parent), *sys.path}
        if self.database.path.is_relative_to(self.root):
            folders.remove(str(self.database.path.parent))
        for folder in sorted((each for each in folders if each.strip(os.sep)), key=len, reverse=True):
            text = text.replace(folder.rstrip(os.sep) + os.sep, "")
        return text.replace(str(self.root), "the project's folder")

    def user_of(self, token: str) -> User | None:
        """Gives the user whom a token stands for, compared in constant time; None when it is nobody's or has ended."""
        if secrets.compare_digest(token.encode(), self.token.encode()):
            return ADMIN
        return self.users.user_of(token, now=time.time())
