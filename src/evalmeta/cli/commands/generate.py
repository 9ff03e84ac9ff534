"""`evalmeta generate`: files to begin with."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Final

import click

from evalmeta.cli.options import show_source
from evalmeta.cli.output import json_option, note, print_json

_FILE = click.Path(path_type=Path)
_RUNNERS: Final = ("testing-center", "agentforce-studio")
_output_option = click.option("-o", "--output-file", type=_FILE, help="The file to write.  [default: stdout]")
_force_option = click.option(
    "--force", "--force-overwrite", "force", is_flag=True, help="Overwrite a file that has other content."
)


@click.group()
def generate() -> None:
    """Write files to begin with: test specs, and the JSON Schema that editors check them by."""


@generate.command()
@click.option("--from-definition", type=_FILE, help="A definition, or a table, to make the spec of.")
@click.option("--name", help="What the test is called.")
@click.option("--subject-name", metavar="API_NAME", help="The agent under test.")
@click.option("--subject-version", metavar="VERSION", help="Its version, such as v2.")
@click.option("--description", help="What the test is for.")
@click.option("--test-runner", type=click.Choice(_RUNNERS), default=_RUNNERS[0], show_default=True, help="Who runs it.")
@click.option("--utterance", "utterances", multiple=True, help="A question, for a test case of its own; repeatable.")
@click.option("--topic", help="The topic that every test case expects.")
@click.option("--action", "actions", multiple=True, help="An action that every test case expects; repeatable.")
@click.option("--outcome", help="The answer that every test case expects.")
@click.option("--metric", "metrics", multiple=True, help="A metric for every test case; repeatable.")
@_output_option
@_force_option
@json_option
@click.pass_context
def spec(ctx: click.Context, /, from_definition: Path | None, **_: object) -> None:
    """Write a test spec, from a definition or from options; nothing is asked.

    \b
    evalmeta generate spec --from-definition Orders.aiEvaluationDefinition-meta.xml -o specs/Orders.yaml
    evalmeta generate spec --name Orders --subject-name Order_Agent --utterance "Where is my order?" --topic Orders
    """
    from evalmeta.api import specs  # noqa: PLC0415 - not needed for --help

    known = {field.name for field in fields(specs.Outline)}
    outline = specs.Outline(**{name: value for name, value in ctx.params.items() if name in known})
    if from_definition is None:
        definition = specs.outlined_definition(outline)
    else:
        answers = specs.Answers(outline.name, outline.subject_name, outline.subject_version)
        source = specs.read_source(from_definition, answers)
        show_source(source)
        definition = source.definition
    written = specs.write_as(definition, "testspec")
    for loss in written.losses:
        note(f"Lost: {loss}")
    _put(written.content, ctx.params["output_file"], force=ctx.params["force"], as_json=ctx.params["as_json"])


@generate.command()
@_output_option
@_force_option
@json_option
def schema(*, output_file: Path | None, force: bool, as_json: bool) -> None:
    """Write the JSON Schema of test specs, which editors know how to use.

    \b
    evalmeta generate schema -o specs/testspec.schema.json
    """
    from importlib import resources  # noqa: PLC0415 - not needed for --help

    content = (resources.files("evalmeta.formats") / "schemas" / "testspec.schema.json").read_bytes()
    _put(content, output_file, force=force, as_json=as_json)


def _put(content: bytes, output_file: Path | None, *, force: bool, as_json: bool) -> None:
    from evalmeta.api import specs  # noqa: PLC0415 - not needed for --help

    if output_file is None:
        _print(content, as_json=as_json)
        return
    state = specs.put_converted(output_file, content, overwrite=force)
    if as_json:
        print_json({"file": str(output_file), "state": state})
    else:
        click.echo(f"{state} {output_file}")


def _print(content: bytes, *, as_json: bool) -> None:
    if as_json:
        print_json({"contents": content.decode()})
    else:
        click.echo(content, nl=False)
