"""The adapter adk: an agent of google-adk in a module of the project, as `adk eval` names it."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from evalmeta.model.settings import SubjectSettings

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import SignIn


_MODULE: Final = r"^[^\W\d]\w*(\.[^\W\d]\w*)*$"
_AGENT: Final = re.compile(r"^(root_agent\b|app\s*=\s*App\(|(async )?def get_agent_async\b)", re.MULTILINE)


class AdkSubject(SubjectSettings):
    """An agent of google-adk, asked through its Runner: `target` is its module or package in the project's folder.

    The module, or the module `agent` of the package, has `root_agent`, `get_agent_async` or `app`. `agent_name` names
    an agent below it. Variables of the nearest `.env` of its folder that are not set are set, as by `adk eval`.
    """

    agent = "an agent of google-adk"
    imports_code = True
    parts_unknown = ""

    adapter: Literal["adk"]
    target: Annotated[str, Field(pattern=_MODULE)]
    agent_name: str = ""

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Import the module and return its agent; raise SettingsError if it has none."""
        from evalmeta.engine.project_code import import_from
        from evalmeta.errors import SettingsError
        from evalmeta.systems.adk.modules import live_agent

        folder = root.joinpath(*self.target.split("."))
        load_environment(folder, root)
        name = f"{self.target}.agent" if (folder / "agent.py").is_file() else self.target
        called = f"the subject's target {self.target!r}"
        agent = live_agent(import_from(root, name, called=called), root=root, agent_name=self.agent_name)
        if agent is None:
            raise SettingsError(
                f"{called} has no agent of google-adk",
                actions=("Define root_agent in it, or get_agent_async, or app.",),
            )
        return agent

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the target, and the files in which its agent may be."""
        folder = root.joinpath(*self.target.split("."))
        name = f"{self.target}/{self.agent_name}" if self.agent_name else self.target
        return f"adk {name}", [folder / "agent.py", folder / "__init__.py", folder.with_name(f"{folder.name}.py")]


def load_environment(folder: Path, root: Path) -> None:
    """Set the variables of the nearest `.env` from a folder up to the project's, if google-adk's dotenv is there."""
    folders = (folder, *(parent for parent in folder.parents if parent == root or parent.is_relative_to(root)))
    file = next((path for place in folders if (path := place / ".env").is_file()), None)
    if file is not None:
        with suppress(ImportError):
            import_module("dotenv").load_dotenv(file)


def adk_settings(root: Path, name: str) -> JsonObject | None:
    """Return the settings of the agent in a folder, package or module of a project; None if it has none.

    It is relative to the project or to the current folder, such as `agents/weather_agent`.
    """
    name = name.removesuffix("/agent.py").removesuffix(".agent")
    for base in (root, Path.cwd()):
        for folder in (base / name, base.joinpath(*name.split("."))):
            place = folder.resolve()
            files = (place / "agent.py", place / "__init__.py", place.parent / f"{place.name}.py")
            if place.is_relative_to(root.resolve()) and any(map(_has_agent, files)):
                parts = place.relative_to(root.resolve()).parts
                if parts and all(map(str.isidentifier, parts)):
                    return {"adapter": "adk", "target": ".".join(parts)}
    return None


def _has_agent(file: Path) -> bool:
    return file.is_file() and _AGENT.search(file.read_text(encoding="utf-8", errors="replace")) is not None
