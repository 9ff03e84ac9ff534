"""What the model may call: bindings of all kinds, and entries that call nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.agent_script.evaluation import ScriptFault
from evalmeta.agent_script.parser import parse_script
from evalmeta.model.definition import ContextVariable
from evalmeta.model.evaluation import Case, Turn
from evalmeta.systems.agent_script.state import State
from evalmeta.systems.agent_script.tools import actions_of, callable_tools, offers

if TYPE_CHECKING:
    from evalmeta.agent_script.nodes import Script

HEAD = """\
variables:
    ticket: mutable string = ""
        description: "The number of the ticket"
    customer: linked string
        source: @MessagingSession.CustomerId
connected_subagent weather:
    target: "agent://Weather"
    description: "Knows the weather"
    inputs:
        city: string
start_agent one:
    actions:
        find:
            description: "Finds"
            inputs:
                number: string
                    is_required: True
                detail: boolean
            target: "flow://Find"
    reasoning:
        actions:
"""


def script(*bindings: str) -> Script:
    lines = "".join(f"            {line}\n" for binding in bindings for line in binding.split("\n"))
    parsed, problems = parse_script(HEAD + lines)
    assert problems == ()
    return parsed


def offered(parsed: Script) -> dict[str, tuple[str, list[tuple[str, bool]]]]:
    """Return the description and the inputs, with whether they are required, of what the model may call."""
    state = State(parsed, Case(1, (Turn("Hi", ()),)))
    tools = [offer.tool for offer in offers(parsed, parsed.subagents[0], state)]
    return {tool.name: (tool.description, [(known.name, known.is_required) for known in tool.inputs]) for tool in tools}


def test_an_entry_without_a_target_is_the_action_of_its_name_with_all_inputs() -> None:
    assert offered(script("find:")) == {"find": ("Finds", [("number", True), ("detail", False)])}


def test_an_entry_may_name_another_entry_that_names_an_action() -> None:
    parsed = script("look: @actions.find", 'again: @actions.look\n    description: "Once more"\n    with number=...')
    assert offered(parsed) == {
        "look": ("Finds", [("number", True), ("detail", False)]),
        "again": ("Once more", [("number", True)]),
    }


def test_a_connected_agent_is_called_with_its_inputs_and_answers_with_a_response() -> None:
    parsed = script("ask: @connected_subagent.weather")
    assert offered(parsed) == {"ask": ("Knows the weather", [("city", False)])}
    [weather] = actions_of(parsed)["weather"]
    assert [output.name for output in weather.outputs] == ["response"]


def test_the_model_chooses_variables_that_it_may_set_and_other_utilities_have_no_inputs() -> None:
    parsed = script("keep: @utils.setVariables\n    with ticket=...", "human: @utils.escalate")
    assert offered(parsed) == {"keep": ("", [("ticket", False)]), "human": ("", [])}


@pytest.mark.parametrize(
    ("binding", "fault"),
    [
        ("look: @actions.search", "the script has no action 'search'"),
        ("ask: @connected_subagent.news", "the script has no connected agent 'news'"),
        ("look: @actions.find\n    with nummer=...", "the action 'find' has no input 'nummer'"),
        ("keep: @utils.setVariables\n    with customer=...", "the linked variable 'customer' cannot be set"),
        ("keep: @utils.setVariables\n    with tickets=...", "only a variable of the script can be set"),
        ('nothing: "text"', "the entry 'nothing' of reasoning.actions calls nothing"),
    ],
)
def test_an_entry_that_calls_nothing_is_a_fault_with_its_line_and_is_never_a_tool(binding: str, fault: str) -> None:
    parsed = script("find:", binding)
    with pytest.raises(ScriptFault, match=fault) as caught:
        offered(parsed)
    assert caught.value.position.line >= HEAD.count("\n") + 2
    assert [tool.name for tool in callable_tools(parsed, parsed.subagents[0])] == ["find"]


@pytest.mark.parametrize("name", ["customer", "$Context.customer", "MessagingSession.CustomerId", "CustomerId"])
def test_a_linked_variable_begins_with_the_context_variable_that_it_or_its_source_names(name: str) -> None:
    parsed = script("find:")
    state = State(parsed, Case(1, (Turn("Hi", ()),), context_variables=(ContextVariable(name, "C1"),)))
    assert state.values == {"ticket": "", "customer": "C1"}


@pytest.mark.parametrize(
    ("lightning", "kind"),
    [
        ("lightning__dateType", "string"),
        ("lightning__integerType", "number"),
        ("lightning__booleanType", "boolean"),
        ("lightning__recordInfoType", "object"),
        ("c__Repair", "object"),
    ],
)
def test_the_model_reads_the_type_of_a_value_that_the_script_declares_as_an_object(lightning: str, kind: str) -> None:
    declared = (
        f'day: object\n                    complex_data_type_name: "{lightning}"\n                detail: boolean'
    )
    parsed, problems = parse_script(HEAD.replace("detail: boolean", declared) + "            look: @actions.find\n")
    assert problems == ()
    (tool,) = callable_tools(parsed, parsed.subagents[0])
    properties = tool.schema["properties"]
    assert isinstance(properties, dict)
    assert properties["day"] == {"type": kind, "description": ""}
