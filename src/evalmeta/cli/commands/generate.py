"""`evalmeta generate` and `evalmeta completion`: write test specs, their JSON Schema, and shell completion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import get_completion_class

from evalmeta import api
from evalmeta.cli.groups import FullHelpGroup
from evalmeta.cli.options import PATH, option_group
from evalmeta.cli.output import json_option, print_json, print_losses, print_source_notes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.api.specs import SpecTemplate
    from evalmeta.cli.options import Decorator


_RUNNERS: Final = ("testing-center", "agentforce-studio")
_output_option = click.option("-o", "--output-file", type=PATH, help="The file to write.  [default: stdout]")
_force_option = click.option(
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
@option_group("template", lambda **values: api.specs.SpecTemplate(**values), _TEMPLATE)  # noqa: PLW0108 - loads specs later
@_output_option
@_force_option
@json_option
def spec(
    *, from_definition: Path | None, template: SpecTemplate, output_file: Path | None, force: bool, as_json: bool
) -> None:
    """Write a test spec from a definition or from options, without prompts.

    \b
    evalmeta generate spec --from-definition Orders.aiEvaluationDefinition-meta.xml -o specs/Orders.yaml
    evalmeta generate spec --name Orders --subject-name Order_Agent --utterance "Where is my order?" --topic Orders
    """
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
@_output_option
@_force_option
@json_option
def schema(*, output_file: Path | None, force: bool, as_json: bool) -> None:
    """Write the JSON Schema of test specs, for editors that can use it.

    \b
    evalmeta generate schema -o specs/testspec.schema.json
    """
    from evalmeta.formats.short_forms import spec_schema

    _put(spec_schema(), output_file, force=force, as_json=as_json)


def _put(content: bytes, output_file: Path | None, *, force: bool, as_json: bool) -> None:
    if output_file is None:
        if as_json:
            print_json({"contents": content.decode()})
        else:
            click.echo(content, nl=False)
        return
    state = api.specs.write_converted(output_file, content, overwrite=force)
    if as_json:
        print_json({"file": str(output_file), "state": state})
    else:
        click.echo(f"{state} {output_file}")


_SHELLS: Final = ("bash", "zsh", "fish", "powershell")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes evalmeta's commands in your shell.

    \b
    evalmeta completion bash >> ~/.bashrc
    evalmeta completion zsh >> ~/.zshrc
    evalmeta completion fish > ~/.config/fish/completions/evalmeta.fish
    evalmeta completion powershell >> $PROFILE
    """
    import evalmeta.cli.completions  # noqa: F401 - registers the shells before click looks for one

    program = context.find_root()
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click has no completion for {shell}.")
    click.echo(kind(program.command, {}, "evalmeta", "_EVALMETA_COMPLETE").source())
