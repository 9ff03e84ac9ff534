"""`evalmeta rule`: explain the rules of `evalmeta validate`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.theme import Theme

from evalmeta.cli.output import json_option, print_json, print_table, wants_colour
from evalmeta.validation import rules

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject
    from evalmeta.validation.rules import RuleEntry


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
        # No background: it would stand out on a light terminal.
        console = Console(file=sys.stdout, force_terminal=True, theme=Theme({"markdown.code": "bold cyan"}))
        page = Markdown(rules.read_page(entry), code_theme="ansi_dark")
        console.print(page, width=min(console.width, _LINE_CHARS))
    else:
        click.echo(rules.read_page(entry), nl=False)


def _rule_json(entry: RuleEntry) -> JsonObject:
    return {
        "code": entry.code,
        "documented": entry.documented.value,
        "orgs": entry.orgs.value,
        "demand": entry.demand,
        "page": rules.read_page(entry),
    }
