"""An org: its database, its subjects and how its runs find a worker."""

from __future__ import annotations

import os
import secrets
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from evalmeta.model.registry import NEWEST_API_VERSION, OLDEST_API_VERSION, parse_api_version
from evalmeta.model.user import ADMIN
from evalmeta.store.components import Components
from evalmeta.store.jobs import Jobs
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from evalmeta.model.settings import SubjectSettings
    from evalmeta.model.user import User
    from evalmeta.store.database import Database

__all__ = ["Organization"]

_ORG_ID: Final = "00D000000000001"


def _new_token() -> str:
    return f"{_ORG_ID}!{secrets.token_urlsafe(32).replace('-', '.')}"


@dataclass(frozen=True, slots=True)
class Organization:
    """What the handlers of one org share.

    Attributes:
        root: the folder that subjects are found from.
        subjects: the adapters bound to agents, by the agent's API name.
        launch: gives a run a worker; called with the run's id.
        token: what a caller must show; made anew for every process.
    """

    database: Database
    root: Path
    subjects: Mapping[str, SubjectSettings]
    launch: Callable[[str], None]
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

    def speaks(self, version: str) -> bool:
        """Tells whether an address names an API version of the org's, such as `64.0`."""
        found = parse_api_version(version)
        return found is not None and OLDEST_API_VERSION <= found <= NEWEST_API_VERSION

    def without_paths(self, text: str) -> str:
        """Gives a text for callers: files of the project by their names from its root on, others without folders."""
        folders = {str(self.root), str(self.database.path.parent), *sys.path}
        if self.database.path.is_relative_to(self.root):
            folders.remove(str(self.database.path.parent))
        for folder in sorted((each for each in folders if each.strip(os.sep)), key=len, reverse=True):
            text = text.replace(folder.rstrip(os.sep) + os.sep, "")
        return text.replace(str(self.root), "the project's folder")

    def user_of(self, token: str) -> User | None:
        """Gives the user whom a token stands for, found in constant time; None when it is nobody's."""
        return ADMIN if secrets.compare_digest(token.encode(), self.token.encode()) else None
