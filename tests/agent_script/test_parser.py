"""Scripts as a whole: every block and construct of the language, damaged scripts, and limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_script.scripts import EVERYTHING, subagent
from evalmeta import limits
from evalmeta.agent_script.nodes import (
    Binary,
    Collect,
    If,
    Literal,
    ModelValue,
    Position,
    Reference,
    Run,
    Set,
    Template,
    Text,
    Transition,
    field_text,
)
from evalmeta.agent_script.parser import parse_script

LINES = EVERYTHING.splitlines(keepends=True)


def test_every_construct_is_read() -> None:
    script, problems = parse_script(EVERYTHING)
    assert problems == ()
    assert field_text(script.config, "developer_name") == "Flower_Shop"
    assert [name for name, _ in script.messages] == ["welcome", "error"]
    assert script.messages[1][1].parts == ("Something is wilting.\nPlease try again.",)
    assert isinstance(script.system_instructions[0], Text)
    assert [block.key for block in script.blocks] == ["system", "language", "connection"]
    assert [(agent.kind, agent.name) for agent in script.subagents] == [
        ("start_agent", "greeter"),
        ("subagent", "orders"),
        ("topic", "complaints"),
    ]
    assert script.start is script.subagents[0]
    assert script.subagents[1].description == "Takes orders,\n  and asks back."
    assert script.connected_subagents[0].target == "agentforce://Wholesale"


def test_variables_have_modifiers_types_defaults_and_sources() -> None:
    variables = {variable.name: variable for variable in parse_script(EVERYTHING).script.variables}
    assert [variable.type for variable in variables.values()] == [
        "string",
        "list[object]",
        "boolean",
        "number",
        "object",
        "date",
        "string",
    ]
    assert variables["customer_name"].description == "The customer's name"
    assert variables["limit"].default == Literal(3.5, Position(21, 29))
    assert variables["session_id"].is_linked
    assert not variables["limit"].is_linked
    assert str(variables["session_id"].source) == "@MessagingSession.Id"


def test_actions_have_inputs_outputs_and_targets() -> None:
    count, log = parse_script(EVERYTHING).script.subagents[0].actions
    assert [(parameter.name, parameter.type) for parameter in count.inputs] == [
        ("bouquets", "list[object]"),
        ("most", "number"),
    ]
    assert [parameter.name for parameter in count.outputs] == ["count"]
    assert (count.label, count.target, log.target) == ("Count bouquets", "flow://Count", "apex://Log")


def test_bindings_have_targets_guards_inputs_and_callbacks() -> None:
    greeter, orders, _ = parse_script(EVERYTHING).script.subagents
    order, learn, escalate = greeter.bindings
    assert (str(order.target), str(order.to)) == ("@utils.transition", "@subagent.orders")
    assert isinstance(order.guards[0], Binary)
    assert isinstance(learn.inputs[0].value, ModelValue)
    assert str(escalate.target) == "@utils.escalate"
    ask, buy = orders.bindings
    assert str(ask.target) == "@connected_subagent.Wholesale"
    assert [item.name for item in buy.inputs] == ["kind", "number"]
    assert [type(statement) for statement in buy.callbacks] == [Set, Transition]


def test_procedures_have_their_statements_in_order() -> None:
    greeter, orders, complaints = parse_script(EVERYTHING).script.subagents
    text, choice = greeter.instructions
    assert isinstance(text, Text)
    assert text.template.parts[-1] == ".\nAsk what they need."
    assert isinstance(choice, If)
    assert isinstance(choice.otherwise[0], If)
    (run,) = choice.otherwise[0].then
    assert isinstance(run, Run)
    assert [item.name for item in run.inputs] == ["bouquets", "most"]
    assert [type(statement) for statement in run.callbacks] == [Set, Run]
    assert isinstance(choice.otherwise[0].otherwise[0], Set)
    assert isinstance(orders.before_reasoning[0], If)
    assert isinstance(orders.after_reasoning[0], Set)
    assert orders.system_instructions
    assert [key for key, _ in complaints.procedures] == ["on_exit"]


def test_lists_of_values_and_of_blocks_are_items() -> None:
    language, connection = parse_script(EVERYTHING).script.blocks[1:]
    assert [item[0].text for item in language.fields[1].items] == ["fr", "de"]
    assert [[field.key for field in item] for item in connection.fields[0].items] == [["name", "target"], ["name"]]


def test_each_node_has_its_line_and_column() -> None:
    script = parse_script(
        "config:\n  a: 1\r\n\tb: @x.y\nstart_agent one:\n\treasoning:\n\t\tinstructions: | Hi {!@variables.z}\n"
    ).script
    reference = script.config[0].fields[0].value if script.config[0].fields else script.config[1].value
    assert isinstance(reference, Reference)
    assert reference.position == Position(3, 5)
    (text,) = script.subagents[0].instructions
    assert isinstance(text, Text)
    assert text.template.parts[1] == Reference("variables", "z", Position(6, 24))


def test_a_damaged_script_gives_all_its_problems_and_all_that_can_be_read() -> None:
    script, problems = parse_script(
        "config\n"
        "variables:\n"
        '    a: mutable string = "open\n'
        "    b: mutable\n"
        "start_agent one:\n"
        "    reasoning:\n"
        "        actions:\n"
        "            go: @utils.transition to\n"
        "            stay: @actions.Stay\n"
        "                with x=(1\n"
        "    after_reasoning:\n"
        "        set @variables.a 1\n"
        "        transition @subagent.two\n"
        "        else:\n"
        "            run\n"
        "subagent two:\n"
        '    description: "fine"\n'
    )
    assert [(problem.position.line, problem.message) for problem in problems] == [
        (1, "the line is not an entry `key: value`"),
        (3, "the string is not closed"),
        (4, "the variable 'b' has no type"),
        (8, "an expression is missing"),
        (10, "the bracket ( is not closed"),
        (10, "')' is missing after the expression"),
        (12, "'=' is missing after the variable"),
        (13, "'to' is missing after 'transition'"),
        (14, "'else' is not expected here"),
    ]
    assert [agent.name for agent in script.subagents] == ["one", "two"]
    assert [binding.name for binding in script.subagents[0].bindings] == ["go", "stay"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    before_reasoning:\n        elif @a.b:\n            set x = 1\n", "'elif' is not expected here"),
        ("    on_init:\n        with a=1\n", "'with' is not expected here"),
        ("    on_init:\n        available when True\n", "'available' is not expected here"),
        ("    on_init:\n        if True:\n        set x = 1\n", "a branch has no statements"),
        ("    on_init:\n        set x = 1\n            set y = 2\n", "nothing can be indented below 'set'"),
        ("    description: 'text'\n", 'the character "\'" has no meaning here'),
        ("    description: |\n        {!@variables.a\n", "the expression {! is not closed"),
        ("    set x = 1\n", "'set' begins a statement, which is not expected here"),
        ("    before_reasoning: 3\n", "a text or statements are expected"),
        ("    before_reasoning: (1\n", "the bracket ( is not closed"),
        ("    label: 1 2\n", "a number is not expected here"),
        ('    label: "a\\d"\n', "\\d is not an escape of strings"),
        ("    on_init:\n        run @actions.A\n            set x = 1\n            with a=1\n", "`with` stands after"),
    ],
)
def test_what_is_wrong_is_said(body: str, message: str) -> None:
    assert message in parse_script(subagent(body)).problems[0].message


@pytest.mark.parametrize(
    "line",
    [
        'label: "a" canary',
        'label: "canary',
        "label: a canary",
        'label: 1 "canary"',
        "label: {a: 1, canary 2}",
        "label: {canary 2}",
        "canary",
        "canary one two",
        "on_init:\n        canary is here",
        "on_init:\n        run @actions.A\n            with canary 1",
    ],
)
def test_no_message_shows_a_part_of_a_value_which_may_be_secret(line: str) -> None:
    problems = parse_script(subagent(f"    {line}\n")).problems
    assert problems
    assert "canary" not in str(problems)


def test_a_misspelt_statement_is_told_what_was_probably_meant() -> None:
    [problem] = parse_script(subagent("    on_init:\n        sett @variables.a = 1\n")).problems
    assert problem.hint.startswith("Did you mean set?")


def test_a_block_may_be_empty() -> None:
    script, problems = parse_script("connection slack:\n    empty\n")
    assert (problems, [block.name for block in script.blocks]) == ((), ["slack"])


def test_a_variable_can_be_collected() -> None:
    body = '    reasoning:\n        instructions: ->\n            collect @variables.a\n                message: "?"\n'
    script, problems = parse_script(subagent(body))
    assert problems == ()
    assert isinstance(script.subagents[0].instructions[0], Collect)


def test_an_empty_script_is_a_problem() -> None:
    assert parse_script("# nothing\n").problems[0].message == "the script is empty"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#" * (limits.MAX_SCRIPT_BYTES + 1), "characters; at most"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(400)), "blocks are nested more than 50 levels deep"),
        ("a: " + "(" * 5_000 + ")" * 5_000, "nested more than 50 levels deep"),
        ("a: " + "not " * 5_000 + "b", "nested more than 50 levels deep"),
        ("a: " + "1 + " * 5_000 + "1", "more than 250 operators"),
        ("a: b" + ".c" * 5_000, "more than 250 operators"),
        ("a: " + "1" * 5_000, "a whole number is larger than 9,223,372,036,854,775,807"),
        ("on_init: ->\n if a:\n  set b = 1\n" + " else if a:\n  set b = 1\n" * 500, "more than 100 branches"),
    ],
)
def test_limits_are_problems(text: str, message: str) -> None:
    assert any(message in problem.message for problem in parse_script(text).problems)


@given(st.data())
def test_any_change_of_a_script_gives_a_script_with_problems_in_the_file(data: st.DataObject) -> None:
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(lines) - 1))
        column = data.draw(st.integers(0, len(lines[place])))
        text = data.draw(
            st.sampled_from(['"', "(", "}", "{!", "|", ":", "\n", "  ", "\t", "if ", "- ", "->", "@", "\\", "#", ""])
        )
        lines[place] = lines[place][:column] + text + lines[place][column + data.draw(st.integers(0, 3)) :]
    text = "".join(lines)
    last = text.count("\n") + 1
    assert all(
        1 <= problem.position.line <= last and problem.position.column >= 1 for problem in parse_script(text).problems
    )


@given(st.text(st.sampled_from(list('ab :|"\n\t->{!}()[]@.,=#\\1'))))
def test_any_text_is_read_without_an_error(text: str) -> None:
    first = parse_script(text)
    assert first == parse_script(text)


def test_templates_keep_their_lines_and_deeper_indentation() -> None:
    body = '    description: |\n        One\n\n          two # no comment\n      three\n    label: "x"\n'
    (agent,) = parse_script(subagent(body)).script.subagents
    assert agent.description == "One\n\n  two # no comment\nthree"
    assert agent.label == "x"
    assert isinstance(agent.fields[0].value, Template)


def test_a_binding_may_have_its_target_and_its_inputs_on_one_line() -> None:
    body = "    reasoning:\n        actions:\n            go: @utils.transition to @subagent.two, with a=1\n"
    script, problems = parse_script(subagent(body))
    assert problems == ()
    [binding] = script.subagents[0].bindings
    assert (str(binding.target), str(binding.to)) == ("@utils.transition", "@subagent.two")
    assert [given.name for given in binding.inputs] == ["a"]
