"""Options that several commands share, named and lettered as in the sf CLI."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import click

from evalmeta.cli.calls import remember_selection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.model.registry import ApiVersion

__all__ = ["answers_options", "api_version_option", "selection_options"]

_T = TypeVar("_T")
_Command: TypeAlias = "Callable[..., _T]"  # type: ignore[explicit-any]


def selection_options(
    *,
    source_dir: Sequence[str] = ("-d",),
    source_dir_help: str = "A file or folder of the project to take; repeatable.",
) -> Callable[[_Command[_T]], _Command[_T]]:
    """Adds --source-dir, --manifest and --metadata, and gives the command what they say as its `selection`.

    Args:
        source_dir: other names of --source-dir, such as its letter.
        source_dir_help: what --source-dir means here.
    """
    options = (
        click.option(
            *source_dir,
            "--source-dir",
            "source_dirs",
            multiple=True,
            type=click.Path(path_type=Path),
            help=source_dir_help,
        ),
        click.option("-x", "--manifest", type=click.Path(path_type=Path), help="Take what this package.xml names."),
        click.option(
            "-m",
            "--metadata",
            multiple=True,
            metavar="TYPE[:NAME]",
            help="A component to take, * and ? in its name for several; repeatable.",
        ),
    )

    def decorate(command: _Command[_T]) -> _Command[_T]:
        @wraps(command)
        def run(
            *, source_dirs: tuple[Path, ...], manifest: Path | None, metadata: tuple[str, ...], **others: object
        ) -> _T:
            from evalmeta.package.selection import Selection  # noqa: PLC0415 - not needed for --help

            remember_selection(source_dirs, manifest, metadata)
            return command(selection=Selection(source_dirs, manifest, metadata), **others)

        decorated: _Command[_T] = run
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def answers_options(command: _Command[_T]) -> _Command[_T]:
    """Adds what files of some formats do not say of their tests, and gives it the command as its `answers`."""

    @wraps(command)
    def run(
        *args: object, name: str | None, subject_name: str | None, subject_version: str | None, **others: object
    ) -> _T:
        from evalmeta.api.specs import Answers  # noqa: PLC0415 - not needed for --help

        return command(*args, answers=Answers(name, subject_name, subject_version), **others)

    decorated: _Command[_T] = run
    for option in (
        click.option(
            "--subject-version", metavar="VERSION", help="The agent's version, such as v2, where the file names none."
        ),
        click.option("--subject-name", metavar="API_NAME", help="The agent under test, where the file names none."),
        click.option("--name", help="The test's name, where the file has none.  [default: the file's]"),
    ):
        decorated = option(decorated)
    return decorated


def _read_version(_: click.Context, __: click.Parameter, text: str | None) -> ApiVersion | None:
    if text is None:
        return None
    from evalmeta.model import registry  # noqa: PLC0415 - not needed for --help

    version = registry.parse_api_version(text)
    if version is None or version < registry.OLDEST_API_VERSION:
        oldest, newest = registry.OLDEST_API_VERSION, registry.NEWEST_API_VERSION
        raise click.BadParameter(f"{text!r} is no API version from {oldest} on, such as {newest}")
    return version


api_version_option = click.option(
    "-a", "--api-version", callback=_read_version, metavar="NN.0", help="API version, instead of the project's own."
)
