"""Options that several commands share, named and lettered as in the sf CLI.

The options of everything that reports on runs; formats that packages add are looked at when one is asked for.

What is said of a file that was read as a definition.

The org that a command talks to: its option, its line on stderr, its connection.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import click

from evalmeta.cli.output import json_option, note, say_target
from evalmeta.cli.run_reports import Output, prepare_folder
from evalmeta.cli.suggestions import remember_selection, remember_target
from evalmeta.report import FORMATS, format_names

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from click.shell_completion import CompletionItem

    from evalmeta.api.org_targets import Target
    from evalmeta.api.specs import Source
    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.project import Project


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


class _ResultFormat(click.ParamType):  # type: ignore[explicit-any, type-arg]
    """The name of a format; installed packages are looked at only for a name that is not built in."""

    name = "format"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value if value in FORMATS else click.Choice(format_names()).convert(value, param, ctx)

    def shell_complete(  # type: ignore[explicit-any]
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return click.Choice(format_names()).shell_complete(ctx, param, incomplete)


def result_format_option(command: _Command[_T]) -> _Command[_T]:
    """Adds `--result-format`."""
    return click.option(
        "--result-format",
        type=_ResultFormat(),
        metavar=f"[{'|'.join(FORMATS)}]",
        default="human",
        show_default=True,
        help="How to report; installed packages may add formats.",
    )(command)


def report_options(command: _Command[_T]) -> _Command[_T]:
    """Adds `--result-format`, `--output-dir` and `--json`, and gives the command what they say as `output`.

    The folder is there before the command begins.
    """

    @wraps(command)
    def run(*, result_format: str, output_dir: Path | None, as_json: bool, **others: object) -> _T:
        prepare_folder(output_dir)
        return command(output=Output(result_format, output_dir, as_json), **others)

    output_dir = click.option(
        "-d",
        "--output-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Also write each run to a file test-result-ID there.",
    )
    decorated: _Command[_T] = run
    for option in (json_option, output_dir, result_format_option):
        decorated = option(decorated)
    return decorated


def show_source(source: Source) -> None:
    """Shows on stderr the warnings about a file, and what a definition cannot hold of it."""
    for problem in source.notes:
        note(f"{problem} {problem.hint}".rstrip())
    for loss in source.losses:
        note(f"Lost: {loss}")


def _complete_login(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from evalmeta.api.logins import list_logins  # noqa: PLC0415 - not needed for --help
    from evalmeta.api.org_targets import EMBEDDED  # noqa: PLC0415 - likewise

    return [name for name in (*(each.name for each in list_logins()), EMBEDDED) if name.startswith(begun)]


target_org_option = click.option(
    "-o",
    "--target-org",
    metavar="NAME_OR_ALIAS",
    callback=remember_target,
    shell_complete=_complete_login,
    help="The login to use, or 'embedded'.  [default: SF_TARGET_ORG, the project's default, the embedded org]",
)


def choose_target(project: Project, target_org: str | None) -> Target | None:
    """Gives the org to talk to, None for the embedded one, and says which it is."""
    from evalmeta.api import org_targets  # noqa: PLC0415 - not needed for --help

    target = org_targets.choose_target(project, target_org)
    say_target(project, target)
    return target


@asynccontextmanager
async def connected(
    project: Project, target: Target | None, *, api_version: ApiVersion | None = None, detached: bool = False
) -> AsyncIterator[Connection]:
    """Opens the connection; remarks on it go to stderr."""
    from evalmeta.api import orgs  # noqa: PLC0415 - not needed for --help

    async with orgs.connect(
        project, target, api_version=api_version, detached=detached, remark=lambda text: note(f"Warning: {text}")
    ) as connection:
        yield connection
