"""The examples of `evalmeta init --example`: small projects that run as they are, one for each kind of user."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.init.project import NewFile, NewProject, written
from evalmeta.errors import UsageError
from evalmeta.package.files import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable


class Example(NamedTuple):
    """What an example shows, and the commands that run it."""

    shows: str
    commands: tuple[str, ...] = ("evalmeta run",)


EXAMPLES: Final = {
    "python-tools": Example("a Python agent with tools"),
    "endpoint": Example("a chat completions endpoint", ("python endpoint.py &", "evalmeta run")),
    "adk": Example("eval sets of Google ADK", ("evalmeta run evaluation", "pytest")),
    "mlflow": Example("an evaluation set of MLflow and Databricks", ("evalmeta run eval_set.jsonl", "python judge.py")),
    "salesforce": Example(
        "definitions in a Salesforce DX project",
        ("evalmeta validate", "evalmeta deploy --manifest package.xml", "evalmeta test run --wait"),
    ),
    "pytest": Example("pytest functions", ("pytest",)),
}
_SUFFIX: Final = ".txt"


def write_example(folder: Path, name: str) -> NewProject:
    """Write the files of an example, and return what was done.

    Raises:
        UsageError: the folder has one of the files with another content; nothing is written.
    """
    root = folder.resolve()
    files = [NewFile(root / path, content) for path, content in _files_of(name)]
    if kept := [file.path for file in files if _is_other(file)]:
        raise UsageError(
            f"{shown(root)} has other files with the names of the example's: {', '.join(map(shown, kept))}",
            actions=[f"Name a new folder: evalmeta init --example {name} {name}-example"],
        )
    done = tuple(written(file, root) for file in files)
    return NewProject(root, "", done, (), (), is_dx=False, commands=EXAMPLES[name].commands)


def _is_other(file: NewFile) -> bool:
    """Return whether the file exists with another content; lines are added to .gitignore."""
    if file.path.name == ".gitignore" or not (file.path.exists() or file.path.is_symlink()):
        return False
    return not file.path.is_file() or file.path.read_bytes() != file.content.encode()


def _files_of(name: str) -> Iterator[tuple[str, str]]:
    top = resources.files("evalmeta.api") / "project_files" / "examples" / name
    for path, file in sorted(_below(top, Path())):
        yield path.removesuffix(_SUFFIX), file.read_text(encoding="utf-8")


def _below(folder: Traversable, path: Path) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, path / entry.name)
        elif entry.name.endswith(_SUFFIX):
            yield (path / entry.name).as_posix(), entry
