"""The adapter python: an agent that is a Python object of the project or of a package."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from evalmeta.engine.project_code import import_from
from evalmeta.engine.subjects.objects import subject_of
from evalmeta.errors import SettingsError
from evalmeta.model.settings import TARGET, SubjectSettings

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.login import SignIn


class PythonSubject(SubjectSettings):
    """An agent that is a Python object: `target = "module:name"`, imported from the project's folder.

    `retry_on` lists the agent's transient exceptions, such as `httpx.ReadTimeout`, which are retried. `model`
    is the language model whose price its answers have, unless they name one. With `traces`, evalmeta reads what answers
    leave out from the spans that the agent records with OpenTelemetry.
    """

    agent = "a Python function or object"
    imports_code = True
    parts_unknown = ""
    tracing = "in process"

    adapter: Literal["python"]
    target: Annotated[str, Field(pattern=TARGET)]
    retry_on: tuple[str, ...] = ()
    model: str = ""
    traces: bool = False

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Import the target and return a subject for it; raise SettingsError if it is not an agent."""
        target = self.target
        called = f"the subject's target {target!r}"
        module_name, _, path = target.partition(":")
        agent: object = import_from(root, module_name, called=called)
        missing = object()
        for name in path.split("."):
            owner, agent = agent, getattr(agent, name, missing)
            if agent is missing:
                near = get_close_matches(name, [known for known in dir(owner) if not known.startswith("_")], n=1)
                meant = [f"Did you mean {target.removesuffix(name)}{known}?" for known in near]
                where = getattr(owner, "__file__", None) or owner
                raise SettingsError(
                    f"{called} names {name}, which {where} does not define",
                    actions=meant or ("Define it, or correct the target.",),
                )
        return subject_of(agent, root=root, called=called, retry_on=self.retry_on)

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the target, and the files in which its module may be."""
        path = root.joinpath(*self.target.partition(":")[0].split("."))
        return f"python {self.target}", [path.with_name(f"{path.name}.py"), path / "__init__.py"]
