"""`evalmeta convert`, `format` and `generate`: convert projects and files between formats, format them, write specs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.groups import FullHelpGroup
from evalmeta.cli.options import (
    FILE,
    FOLDER,
    PATH,
    api_version_option,
    columns_option,
    names_options,
    option_group,
    selection_options,
)
from evalmeta.cli.output import (
    json_option,
    note,
    print_json,
    print_losses,
    print_problems,
    print_source_notes,
    print_table,
)
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED, UsageError
from evalmeta.formats.registry import all_formats, written_formats
from evalmeta.package.project import find_project
from evalmeta.package.selection import Selection
from evalmeta.report.problems import problem_json
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.api.specs import DefinitionNames, SpecTemplate
    from evalmeta.cli.options import Decorator
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.files import ComponentFile


_DEFAULT_FOLDER: Final = "metadataPackage"
_force_option = click.option("--force", is_flag=True, help="Overwrite files that have different content.")


class _FileGroup(FullHelpGroup):
    """A group whose command `file` is the default: a word that is not another command is a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `file` before arguments that begin with a file or an option of that command."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["file", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_FileGroup)
def convert() -> None:
    """Convert a project between source and metadata format, or a file between formats.

    \b
    evalmeta convert source                     the project as metadata format
    evalmeta convert metadata --root-dir mdapi  and back
    evalmeta convert specs/Orders.yaml --to definition
    """


@convert.command()
@click.argument("path", metavar="SOURCE", type=PATH)
@click.option("--to", "target", type=click.Choice(written_formats()), required=True, help="The format to write.")
@click.option("-o", "--output-file", type=FILE, help="The file to write.  [default: stdout]")
@click.option("--strict", is_flag=True, help="Fail, and write nothing, if anything would be lost.")
@click.option(
    "--dialect",
    type=click.Choice(("python", "typescript")),
    default="python",
    show_default=True,
    help="With --to adk: which of ADK's libraries will read it.",
)
@columns_option
@names_options
@_force_option
@json_option
def file(
    path: Path,
    *,
    target: str,
    dialect: str,
    output_file: Path | None,
    strict: bool,
    columns: Mapping[str, str],
    names: DefinitionNames,
    force: bool,
    as_json: bool,
) -> None:
    """Convert a file from one format to another.

    SOURCE can be a definition, a test spec (YAML), a Testing Center table (CSV), or a file of ADK, Databricks,
    Ballerina, promptfoo, pydantic-evals, deepeval, inspect, OpenAI evals or LangSmith; the format is detected from
    the content. Everything that the other format cannot hold is listed; with --strict, nothing is written in that
    case. The word `file` is optional.

    \b
    evalmeta convert file specs/Orders.yaml --to definition
    evalmeta convert Orders.aiEvaluationDefinition-meta.xml --to testspec -o specs/Orders.yaml
    evalmeta convert Orders.csv --to testspec --subject-name Order_Agent --strict
    evalmeta convert promptfooconfig.yaml --to testspec -o specs/Shop.yaml
    evalmeta convert weather.test.json --to definition --subject-name Weather_Agent
    """
    written = api.specs.convert_file(path, target, names=names, strict=strict, dialect=dialect, columns=columns)
    state = api.specs.write_converted(output_file, written.content, overwrite=force) if output_file else None
    print_losses(written.losses)
    if output_file and written.config is not None:
        config = output_file.with_name(all_formats()[target].settings_file)
        try:
            note(f"{api.specs.write_converted(config, written.config, overwrite=force)} {config}")
        except UsageError:
            note(f"Kept {config}, which has different content; replace it with --force.")
    losses: JsonObject = {"losses": [{"where": loss.where, "what": loss.what} for loss in written.losses]}
    _print_file(written.content, output_file, state, losses, as_json=as_json)


@convert.command()
@selection_options(source_dir=("-p",))
@click.option("-r", "--root-dir", type=FOLDER, help="Convert only this folder of the project.")
@click.option(
    "-d", "--output-dir", type=FOLDER, default=_DEFAULT_FOLDER, show_default=True, help="The folder to write to."
)
@api_version_option
@_force_option
@json_option
def source(
    selection: Selection,
    *,
    root_dir: Path | None,
    output_dir: Path,
    api_version: ApiVersion | None,
    force: bool,
    as_json: bool,
) -> None:
    """Convert the project from source format to metadata format: a folder with package.xml.

    If files exist with different content, they are listed and nothing is written.

    \b
    evalmeta convert source
    evalmeta convert source --root-dir force-app --output-dir mdapi
    """
    if root_dir is not None:
        if not selection.is_everything:
            raise click.UsageError("--root-dir cannot be combined with --source-dir, --manifest and --metadata.")
        selection = Selection(source_dirs=(root_dir,))
    project = find_project(Path.cwd())
    done = api.selections.convert_source(project, selection, output_dir, api_version=api_version, overwrite=force)
    _report(done, as_json=as_json)


@convert.command()
@selection_options(source_dir=("-p", "--metadata-dir"), source_dir_help="A file or folder in --root-dir; repeatable.")
@click.option("-r", "--root-dir", type=FOLDER, required=True, help="The folder in metadata format.")
@click.option(
    "-d",
    "--output-dir",
    type=FOLDER,
    help="The folder to write to.  [default: the project's default package directory]",
)
@_force_option
@json_option
def metadata(selection: Selection, *, root_dir: Path, output_dir: Path | None, force: bool, as_json: bool) -> None:
    """Convert a folder in metadata format, such as a retrieved package, to source format.

    Components that the project already has keep their place. If files exist with other
    content, they are listed and nothing is written.

    \b
    evalmeta convert metadata --root-dir mdapi
    evalmeta convert metadata --root-dir mdapi --output-dir force-app
    """
    done = api.selections.convert_metadata(root_dir, selection, output_dir, overwrite=force)
    _report(done, as_json=as_json)


def _report(done: Sequence[ComponentFile], *, as_json: bool) -> None:
    if as_json:
        print_json({"files": [asdict(converted) for converted in done]})
        return
    click.echo(f"Converted {count(sum(1 for converted in done if converted.full_name), 'component')}.")
    print_table(["State", "Name", "File"], [(file.state, file.full_name, file.file) for file in done])


@click.command("format")
@click.argument("paths", nargs=-1, type=PATH, metavar="[PATH]...")
@click.option("--check", is_flag=True, help="List the files that would change without writing; exit with 1 if any.")
@json_option
def format_(paths: tuple[Path, ...], *, check: bool, as_json: bool) -> int:
    """Format definitions and manifests as an org writes them.

    Sets order, indentation and escaping. Comments stay with their elements, and texts
    never change. PATH is a definition, a manifest or a folder to search. By default, the
    project's definitions and manifests are formatted. Files with problems are not
    changed, and the exit code is then 1.

    \b
    evalmeta format
    evalmeta format --check force-app manifest/package.xml
    """
    done = api.files.format_files(paths, check=check)
    status = EXIT_FAILED if done.problems or (check and done.changed) else EXIT_PASSED
    if as_json:
        problems = [*map(problem_json, done.problems)]
        print_json({"files": done.files, "changed": done.changed, "problems": problems}, status=status)
        return status
    if done.problems:
        print_problems(done.problems, files=done.files, err=True)
    for file in done.changed:
        click.echo(file)
    if done.changed:
        note(f"{'Would format' if check else 'Formatted'} {len(done.changed):,} of {count(done.files, 'file')}.")
    else:
        valid = done.files - len({problem.location.path for problem in done.problems})
        note(f"{count(valid, 'file')} already formatted.")
    return status


_RUNNERS: Final = ("testing-center", "agentforce-studio")
_output_option = click.option("-o", "--output-file", type=FILE, help="The file to write.  [default: stdout]")
_overwrite_option = click.option(
    "--force", "--force-overwrite", "force", is_flag=True, help="Overwrite a file that has different content."
)


@click.group(cls=FullHelpGroup)
def generate() -> None:
    """Write test specs, and their JSON Schema for editors."""


_TEMPLATE: Sequence[Decorator] = (
    click.option("--name", help="The test's name."),
    click.option("--subject-name", metavar="API_NAME", help="The agent under test."),
    click.option("--subject-version", metavar="VERSION", help="The agent's version, such as v2."),
    click.option("--description", help="What the test is for."),
    click.option(
        "--test-runner",
        type=click.Choice(_RUNNERS),
        default=_RUNNERS[0],
        show_default=True,
        help="The service that runs the test.",
    ),
    click.option(
        "--utterance", "utterances", multiple=True, help="The utterance of a test case; repeat it for more test cases."
    ),
    click.option("--topic", help="The topic that every test case expects."),
    click.option("--action", "actions", multiple=True, help="An action that every test case expects; repeatable."),
    click.option("--outcome", help="The answer that every test case expects."),
    click.option("--metric", "metrics", multiple=True, help="A metric for every test case; repeatable."),
)


@generate.command()
@click.option("--from-definition", type=PATH, help="A definition or a table to convert into the spec.")
@click.option(
    "--from-agent",
    metavar="NAME",
    help="An agent in the files of the project: a test case for each topic and action, marked for review.",
)
@option_group("template", lambda **values: api.specs.SpecTemplate(**values), _TEMPLATE)  # noqa: PLW0108 - loads specs later
@_output_option
@_overwrite_option
@json_option
def spec(
    *,
    from_definition: Path | None,
    from_agent: str | None,
    template: SpecTemplate,
    output_file: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a test spec from a definition, from an agent or from options, without prompts.

    The utterances of --from-agent are the descriptions of topics and actions. Replace them with what
    users say: until `review` is removed, the test cases are undecided.

    \b
    evalmeta generate spec --from-definition Orders.aiEvaluationDefinition-meta.xml -o specs/Orders.yaml
    evalmeta generate spec --name Orders --subject-name Order_Agent --utterance "Where is my order?" --topic Orders
    evalmeta generate spec --from-agent Order_Agent -o specs/Order_Agent.yaml
    """
    if from_agent:
        if from_definition or template != api.specs.SpecTemplate():
            raise click.UsageError("--from-agent cannot be combined with --from-definition or the options of a test.")
        content, cases = api.agent_specs.propose_spec(find_project(Path.cwd(), or_folder=True), from_agent)
        _put(content, output_file, force=force, as_json=as_json)
        note(f"{count(cases, 'test case')} to review: replace each input with what users say, then remove review.")
        return
    if from_definition is None:
        definition = api.specs.definition_from_template(template)
    else:
        names = api.specs.DefinitionNames(template.name, template.subject_name, template.subject_version)
        source = api.specs.read_source(from_definition, names)
        print_source_notes(source)
        definition = source.definition
    written = api.specs.write_as(definition, "testspec")
    print_losses(written.losses)
    _put(written.content, output_file, force=force, as_json=as_json)


@generate.command()
@click.argument("agents", nargs=-1, metavar="[AGENT]...")
@json_option
def doubles(*, agents: tuple[str, ...], as_json: bool) -> None:
    """Write example outputs for the actions of agents in Agent Script.

    AGENT is an agent of the project; by default, all of them. Only actions that nothing answers yet get a file,
    actions/ACTION.yaml or actions/AGENT/ACTION.yaml. Replace the outputs with what the action returns: until `review`
    is removed, a case is judged by its topics and actions only.

    \b
    evalmeta generate doubles
    evalmeta generate doubles Order_Agent
    """
    files = api.agent_doubles.write_doubles(find_project(Path.cwd(), or_folder=True), agents)
    if as_json:
        print_json({"files": [{"path": str(file.path), "state": file.state} for file in files]})
        return
    for line in api.init.project.state_lines(files):
        click.echo(line)
    if not files:
        click.echo("All actions have answers already.")
        return
    note("Replace the outputs with what the actions return, then remove review.")


@generate.command()
@_output_option
@_overwrite_option
@json_option
def schema(*, output_file: Path | None, force: bool, as_json: bool) -> None:
    """Write the JSON Schema of test specs, for editors that can use it.

    \b
    evalmeta generate schema -o specs/testspec.schema.json
    """
    from evalmeta.formats.short_forms import spec_schema

    _put(spec_schema(), output_file, force=force, as_json=as_json)


def _put(content: bytes, output_file: Path | None, *, force: bool, as_json: bool) -> None:
    state = api.specs.write_converted(output_file, content, overwrite=force) if output_file else None
    _print_file(content, output_file, state, {}, as_json=as_json)


def _print_file(content: bytes, file: Path | None, state: str | None, more: JsonObject, *, as_json: bool) -> None:
    """Print a content, or to which file it was written."""
    if as_json:
        print_json({**more, "file": str(file), "state": state} if file else {**more, "contents": content.decode()})
    elif file:
        click.echo(f"{state} {file}")
    else:
        click.echo(content, nl=False)
