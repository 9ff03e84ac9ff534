"""`evalmeta validate` and `evalmeta rule`: check definitions and manifests without an org, and explain the rules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.options import PATH, columns_option, selection_options
from evalmeta.cli.output import json_option, note, print_json, print_problems, print_table, wants_colour
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED
from evalmeta.package.folders import ignored_below
from evalmeta.package.project import find_project
from evalmeta.report.problems import FORMATS, problem_json, render
from evalmeta.validation import rules
from evalmeta.validation.rules import PROFILES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.settings import Profile
    from evalmeta.package.selection import Selection
    from evalmeta.validation.rule import Rule


@click.command()
@click.argument("paths", nargs=-1, type=PATH, metavar="[PATH]...")
@selection_options()
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    help="orgs: errors for what orgs reject, warnings for what they accept. documented: errors for"
    " everything that the metadata reference forbids.  [default: evalmeta.toml, or else orgs]",
)
@click.option("--result-format", type=click.Choice(FORMATS), default="human", show_default=True, help="Output format.")
@json_option
@columns_option
@click.option("-v", "--verbose", is_flag=True, help="Also list the files in folders that are not tests, and why.")
def validate(
    paths: tuple[Path, ...],
    *,
    selection: Selection,
    profile: Profile | None,
    result_format: str,
    as_json: bool,
    columns: Mapping[str, str],
    verbose: bool,
) -> int:
    """Check components, tests and manifests without an org.

    PATH is a definition, a bundle, a script of Agent Script, a test in another format, a
    package.xml, destructive changes or a folder to search. By default, all of these in the
    project are checked. --manifest checks the manifest and what it names. The exit code is 1
    if there are errors.

    \b
    evalmeta validate
    evalmeta validate force-app manifest/package.xml
    evalmeta validate --manifest manifest/package.xml
    evalmeta validate --profile documented
    evalmeta validate --result-format sarif > evalmeta.sarif

    `evalmeta rule CODE` explains the rule behind a problem.
    """
    if columns and not paths:
        raise click.UsageError("--columns is only for tables and JSON Lines: name them as PATH.")
    if paths and not selection.is_everything:
        raise click.UsageError("PATH cannot be combined with --source-dir, --manifest and --metadata.")

    if selection.is_everything:
        found = api.files.validate(paths, profile=profile, columns=columns)
    else:
        found = api.selections.validate_selection(selection, profile=profile)
    status = EXIT_PASSED if found.is_valid else EXIT_FAILED
    if as_json:
        print_json({"files": found.files, "problems": [*map(problem_json, found.problems)]}, status=status)
    elif result_format == "human":
        # The project is printed if it is not obvious.
        root = None if paths else find_project(Path.cwd()).root
        if root not in {None, Path.cwd().resolve()}:
            note(f"Project: {root}")
        print_problems(found.problems, files=found.files)
    else:
        click.echo(render(result_format, found.problems, files=found.files), nl=False)
    if not found.files:
        for text in filter(None, (ignored_below(path) for path in paths if path.is_dir())):
            note(text)
    if found.others:
        note(api.discovery.others_note(found.others, verbose=verbose))
    return status


_LINE_CHARS: Final = 120


@click.command()
@click.argument(
    "code",
    required=False,
    shell_complete=lambda _, __, begun: [rule.code for rule in rules.list_rules() if rule.code.startswith(begun)],
)
@json_option
def rule(*, code: str | None, as_json: bool) -> None:
    """Explain a validation rule, or list all rules.

    CODE is the code in brackets after a problem. Without it, all rules are listed.

    \b
    evalmeta rule
    evalmeta rule history-order
    """
    if code is None:
        entries = rules.list_rules()
        if as_json:
            print_json([_rule_json(rule) for rule in entries])
            return
        rows = [(rule.code, rule.orgs, rule.documented, rule.demand) for rule in entries]
        print_table(["Code", "Orgs", "Documented", "Demand"], rows)
        return
    entry = rules.find_rule(code)
    if as_json:
        print_json(_rule_json(entry))
    elif wants_colour():
        from rich.console import Console
        from rich.markdown import Markdown
        from rich.theme import Theme

        # No background: it would stand out on a light terminal.
        console = Console(file=sys.stdout, force_terminal=True, theme=Theme({"markdown.code": "bold cyan"}))
        page = Markdown(rules.read_page(entry), code_theme="ansi_dark")
        console.print(page, width=min(console.width, _LINE_CHARS))
    else:
        click.echo(rules.read_page(entry), nl=False)


def _rule_json(entry: Rule) -> JsonObject:
    return {
        "code": entry.code,
        "documented": entry.documented.value,
        "orgs": entry.orgs.value,
        "demand": entry.demand,
        "page": rules.read_page(entry),
    }
