"""Options that several commands share, named and lettered as in the sf CLI."""

from __future__ import annotations

import math
import os
import re
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

import click

from evalmeta import api
from evalmeta.cli.completions import complete_logins, complete_metadata
from evalmeta.cli.groups import remember_selection, remember_target
from evalmeta.model import registry
from evalmeta.package.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.api.specs import DefinitionNames
    from evalmeta.model.registry import ApiVersion


Command: TypeAlias = "Callable[..., object]"  # type: ignore[explicit-any]
Decorator: TypeAlias = "Callable[[Command], Command]"

_AGE: Final = re.compile(r"(\d{1,6})([dwh])")
_AGE_SECONDS: Final = {"d": 24 * 3600.0, "w": 7 * 24 * 3600.0, "h": 3600.0}


class _FilePath(click.Path):
    """The path of a file; one that ends with a slash names a folder, although it may not exist."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if os.fspath(value).endswith(("/", os.sep)):
            self.fail(f"{os.fspath(value)!r} is a folder; add the name of the file.", param, ctx)
        return super().convert(value, param, ctx)


PATH: Final = click.Path(path_type=Path)
FILE: Final = _FilePath(path_type=Path, dir_okay=False)
FOLDER: Final = click.Path(path_type=Path, file_okay=False)


def option_group(  # type: ignore[explicit-any]
    name: str, build: Callable[..., object], options: Sequence[Decorator]
) -> Decorator:
    """Return a decorator that adds options, and passes what `build` makes of their values as the parameter `name`."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*args: object, **values: object) -> object:
            group = {key: values.pop(key) for key in keys}
            return command(*args, **{name: build(**group)}, **values)

        before = len(getattr(run, "__click_params__", ()))
        decorated: Command = run
        for option in reversed(options):
            decorated = option(decorated)
        added: list[click.Parameter] = getattr(decorated, "__click_params__", [])[before:]
        keys = [parameter.name for parameter in added if parameter.name]
        return decorated

    return decorate


def selection_options(
    *,
    source_dir: Sequence[str] = ("-d",),
    source_dir_help: str = "A file or folder of the project to include; repeatable.",
) -> Decorator:
    """Add --source-dir and its other names, --manifest and --metadata, as the parameter `selection`."""
    options: Sequence[Decorator] = (
        click.option(*source_dir, "--source-dir", "source_dirs", multiple=True, type=PATH, help=source_dir_help),
        click.option("-x", "--manifest", type=PATH, help="Include what this package.xml names."),
        click.option(
            "-m",
            "--metadata",
            multiple=True,
            metavar="TYPE[:NAME]",
            shell_complete=complete_metadata,
            help="A component to include; * and ? in its name match several; repeatable.",
        ),
    )

    def build(*, source_dirs: tuple[Path, ...], manifest: Path | None, metadata: tuple[str, ...]) -> Selection:
        remember_selection(source_dirs, manifest, metadata)
        return Selection(source_dirs, manifest, metadata)

    return option_group("selection", build, options)


def _read_columns(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> Mapping[str, str]:
    columns: dict[str, str] = {}
    for text in texts:
        key, equals, title = (part.strip() for part in text.partition("="))
        if not (key and equals and title):
            raise click.BadParameter(f"{text!r} is not a key with its column, such as input=Question")
        if key in columns:
            raise click.BadParameter(f"{key!r} has two columns, {columns[key]!r} and {title!r}; keep one of them")
        columns[key] = title
    return columns


columns_option = click.option(
    "--columns",
    multiple=True,
    callback=_read_columns,
    metavar="KEY=TITLE",
    help="The column of tables and JSON Lines for a key of test cases, such as input=Question; repeatable.",
)

target_org_option = click.option(
    "-o",
    "--target-org",
    metavar="NAME_OR_ALIAS",
    callback=remember_target,
    shell_complete=complete_logins,
    help="The login to use, or 'embedded'.  [default: SF_TARGET_ORG, the project's default, the embedded org]",
)


on_option = click.option(
    "--on",
    metavar="CLUSTER",
    help="The cluster whose machines ask the cases: ray, or ray://HOST:PORT.  [default: EVALMETA_ON, this machine]",
)


def names_options(command: Command) -> Command:
    """Add what files of some formats do not say about their tests, as the parameter `names`."""
    options: Sequence[Decorator] = (
        click.option("--name", help="The test's name, if the file has none.  [default: the file's name]"),
        click.option("--subject-name", metavar="API_NAME", help="The agent under test, if the file names none."),
        click.option(
            "--subject-version", metavar="VERSION", help="The agent's version, such as v2, if the file names none."
        ),
    )

    def build(*, name: str | None, subject_name: str | None, subject_version: str | None) -> DefinitionNames:
        return api.specs.DefinitionNames(name, subject_name, subject_version)

    return option_group("names", build, options)(command)


def _read_version(_: click.Context, __: click.Parameter, text: str | None) -> ApiVersion | None:
    if text is None:
        return None
    version = registry.parse_api_version(text)
    if version is None or version < registry.OLDEST_API_VERSION:
        oldest, newest = registry.OLDEST_API_VERSION, registry.NEWEST_API_VERSION
        raise click.BadParameter(f"{text!r} is not a valid API version from {oldest} on, such as {newest}")
    return version


def zip_name(name: str, *, folder_option: str) -> str:
    """Return the name of a zip file, which --zip-file-name may give without `.zip`."""
    if not name or Path(name).name != name:
        raise click.UsageError(f"--zip-file-name must be a file name; its folder is {folder_option}.")
    return name if name.endswith(".zip") else f"{name}.zip"


api_version_option = click.option(
    "-a", "--api-version", callback=_read_version, metavar="NN.0", help="API version to use instead of the project's."
)


def _in_words(least: float | None, most: float | None, *, is_above: bool) -> str:
    if least is None:
        return ""
    if most is None:
        return f"at least {least:,g}"
    return f"above {least:,g} and at most {most:,g}" if is_above else f"from {least:,g} to {most:,g}"


class _InWords(click.ParamType):  # type: ignore[explicit-any, type-arg] # as click's
    def fail(self, message: str, param: click.Parameter | None = None, ctx: click.Context | None = None) -> NoReturn:
        """Raise click's error, with its range as a sentence."""
        number, is_outside, allowed = message.partition(" is not in the range ")
        raise click.BadParameter(
            f"it must be {allowed.rstrip('.')}, not {number}" if is_outside else message, ctx, param
        )


class IntRange(_InWords, click.IntRange):
    """A whole number within a range."""

    name = "integer"

    def _describe_range(self) -> str:
        return _in_words(self.min, self.max, is_above=self.min_open)


class Age(click.ParamType):  # type: ignore[explicit-any, type-arg] # as click's
    """A number of days, weeks or hours, such as `90d`; the value is in seconds."""

    name = "age"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        if isinstance(value, int | float):
            return value
        match = _AGE.fullmatch(value.strip())
        if match is None or not int(match[1]):
            self.fail(f"{value!r} is not an age: write days, weeks or hours, such as 90d, 12w or 36h.", param, ctx)
        return int(match[1]) * _AGE_SECONDS[match[2]]


class FloatRange(_InWords, click.FloatRange):
    """A finite number, within a range if there is one."""

    name = "number"

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; "nan", which is not outside of any range, and infinite numbers are refused."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            allowed = self._describe_range() or "a finite number"
            self.fail(f"{number:g} is not in the range {allowed}.", param, ctx)
        return number

    def _describe_range(self) -> str:
        return _in_words(self.min, self.max, is_above=self.min_open)
