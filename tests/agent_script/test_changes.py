from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from agent_script.scripts import EVERYTHING
from evalmeta.agent_script.changes import changed_subagents, reachable_subagents
from evalmeta.agent_script.parser import parse_script

if TYPE_CHECKING:
    from evalmeta.agent_script.nodes import Script

DESK = """\
system:
    instructions: "Be brief."
config:
    developer_name: "Desk"
variables:
    limit: mutable number = 3
actions:
    Log:
        target: "apex://Log"
start_agent router:
    reasoning:
        instructions: "Choose."
        actions:
            loans: @utils.transition to @subagent.Loans
            fees: @utils.transition to @subagent.Fees
subagent Loans:
    label: "Loans"
    description: "Lends books"
    actions:
        Renew:
            target: "flow://Renew"
    reasoning:
        instructions: ->
            # Renewals come first.
            | Renew books.
        actions:
            renew: @actions.Renew
            pay: @utils.transition to @subagent.Fees
            back: @utils.transition to @start_agent.router
subagent Fees:
    description: "Takes fees"
    reasoning:
        instructions: "Take fees."
subagent Rooms:
    reasoning:
        instructions: "Book rooms."
        actions:
            back: @utils.transition to @start_agent.router
"""


def script(text: str) -> Script:
    read, problems = parse_script(text)
    assert not problems
    return read


def change(*edits: tuple[str, str]) -> frozenset[str] | None:
    text = DESK
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return changed_subagents(script(DESK), script(text))


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("Renew books.", "Renew all books.", {"Loans"}),
        ("flow://Renew", "flow://Renew_All", {"Loans"}),
        ("            pay: @utils.transition to @subagent.Fees\n", "", {"Loans"}),
        ('"Take fees."', '"Take fees. "', {"Fees"}),
        ("subagent Rooms:", "subagent Halls:", {"Rooms", "Halls"}),
        ("            # Renewals come first.\n", "", set()),
        ("            | Renew books.", "\n            | Renew books.  # soon", {"Loans"}),
        ('developer_name: "Desk"\n', 'developer_name: "Desk"\n\n# more\n', set()),
    ],
)
def test_only_the_subagents_that_differ_have_changed(old: str, new: str, names: set[str]) -> None:
    assert change((old, new)) == names


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"Be brief."', '"Be polite."'),
        ('developer_name: "Desk"', 'developer_name: "Desk"\n    agent_label: "Desk"'),
        ("number = 3", "number = 4"),
        ("apex://Log", "apex://Note"),
        ('"Choose."', '"Choose well."'),
        ("start_agent router:\n", 'start_agent router:\n    label: "Router"\n'),
        ('description: "Lends books"', 'description: "Lends and renews"'),
        ('label: "Loans"', 'label: "Lending"'),
        ("subagent Rooms:", "topic Rooms:"),
        ("subagent Loans:", 'language:\n    default_locale: "fr"\nsubagent Loans:'),
    ],
)
def test_what_subagents_share_may_change_all_conversations(old: str, new: str) -> None:
    assert change((old, new)) is None


def test_another_order_of_subagents_may_change_all_conversations() -> None:
    start = DESK.index("subagent Loans:")
    fees, rooms = DESK.index("subagent Fees:"), DESK.index("subagent Rooms:")
    moved = DESK[:start] + DESK[fees:rooms] + DESK[start:fees] + DESK[rooms:]
    assert changed_subagents(script(DESK), script(moved)) is None


def test_true_is_not_one() -> None:
    text = 'start_agent one:\n    reasoning:\n        instructions: "a"\nsubagent two:\n    x: {}\n'
    assert changed_subagents(script(text.format("True")), script(text.format("1"))) == {"two"}


WORDS = [match.span() for match in re.finditer(r"\w+", EVERYTHING)]


def test_a_change_of_any_word_of_a_script_is_a_change_or_a_mistake() -> None:
    """What the parser would drop could change without being noticed."""
    before = script(EVERYTHING)
    unnoticed = []
    for start, end in WORDS:
        line = EVERYTHING.count("\n", 0, start)
        after, problems = parse_script(f"{EVERYTHING[:end]}x{EVERYTHING[end:]}")
        if not problems and changed_subagents(before, after) == frozenset():
            unnoticed.append((line + 1, EVERYTHING[start:end]))
    comments = [number for number, line in enumerate(EVERYTHING.splitlines(), 1) if line.lstrip().startswith("#")]
    assert [place for place in unnoticed if place[0] not in comments] == []


def test_a_line_less_is_a_change_or_a_mistake() -> None:
    before, lines = script(EVERYTHING), EVERYTHING.splitlines(keepends=True)
    unnoticed = []
    for number, line in enumerate(lines):
        after, problems = parse_script("".join([*lines[:number], *lines[number + 1 :]]))
        if not problems and changed_subagents(before, after) == frozenset():
            unnoticed.append(line.strip())
    assert [line for line in unnoticed if line and not line.startswith("#")] == []


def test_a_subagent_leads_to_its_targets_and_the_start_leads_nowhere_by_itself() -> None:
    reached = reachable_subagents(script(DESK))
    assert reached["Loans"] == {"Loans", "Fees", "router"}
    assert (reached["Fees"], reached["Rooms"], reached["router"]) == ({"Fees"}, {"Rooms", "router"}, {"router"})


def test_a_subagent_that_the_start_calls_leads_back_to_it() -> None:
    calls = script(DESK.replace("fees: @utils.transition to @subagent.Fees", "fees: @subagent.Fees"))
    assert reachable_subagents(calls)["Fees"] == {"Fees", "router"}


def test_a_subagent_leads_over_others_and_back_to_those_that_call_it() -> None:
    calls = DESK.replace(
        "            back: @utils.transition to @start_agent.router\nsub", "            ask: @subagent.Rooms\nsub"
    )
    assert calls.count("@subagent.Rooms") == 1
    reached = reachable_subagents(script(calls))
    assert reached["Rooms"] == reached["Loans"] == {"Loans", "Fees", "Rooms", "router"}


def test_the_ways_of_all_versions_count() -> None:
    without = script(DESK.replace("            pay: @utils.transition to @subagent.Fees\n", ""))
    assert reachable_subagents(without)["Loans"] == {"Loans", "router"}
    assert reachable_subagents(without, script(DESK))["Loans"] == {"Loans", "Fees", "router"}
