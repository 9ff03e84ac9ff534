"""A turn is carried out as the language says: every deterministic part, and what the model may choose."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import SubjectBusy, SubjectError
from evalmeta.model.definition import ContextVariable
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.steps import StepKind, step_tree
from evalmeta.systems.agent_script.subject import AgentScriptSubject
from systems.agent_script.projects import DOUBLES, SHOP, converse, write_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.steps import Step

REPAIR = """\
rules:
  - {subagent: reception, utterance: "*repair*", call: to_repairs}
  - {subagent: repairs, utterance: "*7*", call: look_up, with: {number: "7"}}
  - {subagent: repairs, utterance: "*7*", answer: "It costs {!@variables.price}, {!@outputs.sent}."}
"""
CUSTOMER = {"CustomerId": "C1"}


def names(generated: GeneratedData) -> list[str]:
    return [action.name for action in generated.actions or ()]


def steps(generated: GeneratedData) -> list[Step]:
    def inside(around: tuple[Step, ...]) -> Iterator[Step]:
        for step in around:
            yield step
            yield from inside(step.steps)

    tree = step_tree(generated)
    assert tree is not None
    return list(inside(tree.steps))


def test_a_turn_has_its_topic_actions_state_handoffs_and_steps(tmp_path: Path) -> None:
    write_project(tmp_path, rules=REPAIR)
    [answer] = converse(tmp_path, "My repair 7", context=CUSTOMER)

    assert (answer.outcome, answer.topic) == ("It costs 120, True.", "repairs")
    assert names(answer) == ["check_customer", "find_ticket", "notify"]
    assert [action.input for action in answer.actions or ()] == [
        {"id": "C1"},
        {"number": "7", "detail": True},
        {"text": "ticket ready"},
    ]
    assert answer.state == {
        "customer_id": "C1", "verified": True, "ticket": "", "price": 120, "visits": 1, "log": "notified!",
    }  # fmt: skip
    assert answer.handoffs == ("repairs",)
    kinds = [(step.kind, step.name) for step in steps(answer) if step.kind is not StepKind.MODEL]
    assert kinds == [
        (StepKind.AGENT, "reception"),
        (StepKind.TOOL, "transition"),
        (StepKind.AGENT, "repairs"),
        (StepKind.TOOL, "check_customer"),
        (StepKind.TOOL, "find_ticket"),
        (StepKind.TOOL, "notify"),
    ]


def test_instructions_are_built_anew_before_each_choice(tmp_path: Path) -> None:
    write_project(tmp_path, rules=REPAIR)
    [answer] = converse(tmp_path, "My repair 7", context=CUSTOMER)
    asked = [str(step.input) for step in steps(answer) if step.kind is StepKind.MODEL]

    assert asked[0].split("\n")[:2] == ["You work for a bicycle shop.", "Greet customer C1."]
    assert "The customer is known." not in asked[0]
    assert "then call look_up" in asked[1]
    assert ["It is expensive" in text for text in asked] == [False, False, True]


def test_variables_and_the_subagent_stay_over_turns(tmp_path: Path) -> None:
    rules = f"{REPAIR}  - {{subagent: repairs, answer: 'visit {{!@variables.visits}}'}}\n"
    write_project(tmp_path, rules=rules)
    answers = converse(tmp_path, "My repair 7", "And now?", context=CUSTOMER)

    assert [(answer.outcome, answer.topic) for answer in answers][1] == ("visit 2", "repairs")
    assert (answers[1].handoffs, names(answers[1])) == ((), ["check_customer"])


def test_every_turn_can_begin_at_start_agent(tmp_path: Path) -> None:
    rules = f"{REPAIR}  - {{subagent: reception, answer: Welcome back}}\n"
    write_project(tmp_path, rules=rules)
    answers = converse(tmp_path, "My repair 7", "And now?", context=CUSTOMER, turns_begin="start_agent")
    assert [answer.topic for answer in answers] == ["repairs", "reception"]


@pytest.mark.parametrize(("verified", "offered"), [("true", True), ("false", False)])
def test_only_what_available_when_admits_is_offered(tmp_path: Path, verified: str, *, offered: bool) -> None:
    write_project(tmp_path, rules="rules:\n  - call: to_office\n  - answer: done\n")
    [answer] = converse(tmp_path, "Invoice", context={"verified": verified})
    assert (answer.topic == "office", answer.outcome) == (offered, "done")


def test_a_callback_can_transition_and_the_rest_of_the_turn_is_the_new_subagents(tmp_path: Path) -> None:
    rules = """\
rules:
  - {subagent: reception, call: to_repairs}
  - {subagent: repairs, call: keep, with: {ticket: "9"}}
  - {subagent: repairs, call: pay}
  - {subagent: office, answer: "An invoice"}
"""
    write_project(tmp_path, rules=rules)
    [answer] = converse(tmp_path, "Pay", context=CUSTOMER)
    assert (answer.topic, answer.handoffs) == ("office", ("repairs", "office"))
    assert answer.state is not None
    # after_reasoning of a subagent that was left is not carried out.
    assert (answer.state["ticket"], answer.state["log"]) == ("9", "")


def test_a_failed_action_has_its_error_and_no_callbacks(tmp_path: Path) -> None:
    rules = """\
rules:
  - {subagent: reception, call: to_repairs}
  - {subagent: repairs, call: look_up, with: {number: "8"}}
  - {subagent: repairs, answer: "Sorry, {!@variables.price}"}
"""
    write_project(tmp_path, rules=rules)
    [answer] = converse(tmp_path, "8", context=CUSTOMER)
    assert [(action.name, action.error) for action in answer.actions or ()] == [
        ("check_customer", None),
        ("find_ticket", "the archive is locked"),
    ]
    assert answer.outcome == "Sorry, 0"


def test_an_escalation_ends_the_turn_and_the_conversation(tmp_path: Path) -> None:
    connection = "connection messaging:\n    escalation_message: A colleague takes over.\n"
    script = connection.replace("A colleague takes over.", '"A colleague takes over."') + SHOP
    write_project(tmp_path, script=script, rules="rules:\n  - call: human\n")
    [answer] = converse(tmp_path, "A person, please")

    assert (answer.outcome, answer.topic, answer.handoffs) == ("A colleague takes over.", "reception", ("human",))
    with pytest.raises(SubjectError, match="handed off to a person"):
        converse(tmp_path, "A person, please", "Hello?")


def test_after_reasoning_says_where_the_next_turn_begins(tmp_path: Path) -> None:
    script = """\
start_agent first:
    reasoning:
        instructions: "First"
    after_reasoning:
        transition to @subagent.second
subagent second:
    reasoning:
        instructions: "Second"
"""
    write_project(tmp_path, script=script, rules="rules:\n  - answer: yes\n", doubles={})
    answers = converse(tmp_path, "a", "b")
    assert [(answer.topic, answer.handoffs) for answer in answers] == [("first", ("second",)), ("second", ())]


def test_a_subagent_can_be_called_and_returns_its_answer(tmp_path: Path) -> None:
    script = """\
start_agent first:
    reasoning:
        instructions: "First"
        actions:
            consult: @subagent.expert
subagent expert:
    reasoning:
        instructions: "Second"
"""
    rules = "rules:\n  - call: consult\n  - {subagent: expert, answer: an opinion}\n  - answer: I asked.\n"
    write_project(tmp_path, script=script, rules=rules, doubles={})
    [answer] = converse(tmp_path, "a")
    assert (answer.outcome, answer.topic, answer.handoffs) == ("I asked.", "first", ("expert", "first"))


def test_inputs_that_run_leaves_to_the_model_are_asked_for(tmp_path: Path) -> None:
    script = SHOP.replace("with id=@variables.customer_id", "with id=...")
    rules = "rules:\n  - {subagent: reception, call: to_repairs}\n  - {call: check_customer, with: {id: C1}}\n"
    write_project(tmp_path, script=script, rules=f"{rules}  - answer: Thanks\n")
    [answer] = converse(tmp_path, "a")
    assert [action.input for action in answer.actions or ()] == [{"id": "C1"}]
    assert answer.state is not None
    assert answer.state["verified"] is True


@pytest.mark.parametrize(
    ("inputs", "fault"),
    [
        ({"number": "7", "colour": "red"}, "look_up has no input colour"),
        ({"detail": True}, "look_up has no input detail"),
        ({}, "look_up needs number"),
    ],
)
def test_a_call_of_a_model_with_wrong_inputs_is_not_carried_out(
    tmp_path: Path, inputs: dict[str, object], fault: str
) -> None:
    chooser = f"""\
def choose(request):
    if request["subagent"] == "reception":
        return {{"call": "to_repairs"}}
    return "Hm" if "error" in str(request["messages"]) else {{"call": "look_up", "with": {inputs!r}}}
"""
    write_project(tmp_path)
    (tmp_path / "wrong_calls.py").write_text(chooser)
    [answer] = converse(tmp_path, "a", context=CUSTOMER, target="wrong_calls:choose")
    assert (answer.outcome, names(answer)) == ("Hm", ["check_customer"])
    assert fault in [step.error for step in steps(answer)]


@pytest.mark.parametrize(
    ("before", "fault"),
    [
        ("set @variables.customer_id = 1", "Bike_Shop.agent:18:13: the linked variable 'customer_id' cannot be set"),
        ("set @variables.price = @variables.ticket.number", "the member 'number' of a text is read"),
        ("set @variables.price = @outputs.cost", "@outputs.cost is only known in the callbacks of an action"),
        ("run @actions.find_ticket", "the script has no action 'find_ticket'"),
        ("transition to @subagent.nobody", "the target is not a subagent of the script"),
        ("transition to @subagent.repairs with reason=1", ":18:46: `with` of a transition cannot be carried out"),
        ("transition to @subagent.reception", f"did not answer within {limits.MAX_TURN_STEPS} steps"),
    ],
)
def test_what_a_script_cannot_do_is_an_error_with_its_line(tmp_path: Path, before: str, fault: str) -> None:
    described = '    description: "Decides who helps"\n'
    script = SHOP.replace(described, f"{described}    before_reasoning:\n        {before}\n")
    write_project(tmp_path, script=script, rules="rules:\n  - answer: fine\n")
    (tmp_path / "evalmeta.toml").write_text('[validate.rules]\nscript-reference = "off"\nscript-linked = "off"\n')
    with pytest.raises(SubjectError) as raised:
        converse(tmp_path, "a")
    assert fault in str(raised.value)


@pytest.mark.parametrize("below", ["with price=1", "set @variables.price = 1"])
@pytest.mark.parametrize(
    ("entry", "called"),
    [
        ("@utils.transition to @subagent.repairs", "@utils.transition"),
        ("@utils.escalate", "@utils.escalate"),
        ("@subagent.repairs", "@subagent.repairs"),
    ],
)
def test_what_stands_below_an_entry_and_cannot_be_carried_out_is_an_error_with_its_line(
    tmp_path: Path, entry: str, called: str, below: str
) -> None:
    first = "            to_repairs: @utils.transition to @subagent.repairs\n"
    assert first in SHOP
    script = SHOP.replace(first, f"            to_repairs: {entry}\n                {below}\n")
    write_project(tmp_path, script=script, rules=REPAIR)
    line = rf"Bike_Shop\.agent:24:\d+: what follows {called} cannot be carried out without an org"
    with pytest.raises(SubjectError, match=line):
        converse(tmp_path, "My repair 7", context=CUSTOMER)


def test_an_output_that_the_action_does_not_declare_is_an_error_with_its_line(tmp_path: Path) -> None:
    write_project(tmp_path, script=SHOP.replace("= @outputs.known", "= @outputs.knwon"), rules=REPAIR)
    (tmp_path / "evalmeta.toml").write_text('[validate.rules]\nscript-reference = "off"\n')
    with pytest.raises(SubjectError, match=r"Bike_Shop\.agent:36:39: the action has no output 'knwon'"):
        converse(tmp_path, "My repair 7", context=CUSTOMER)


@pytest.mark.parametrize(
    ("name", "is_known"),
    [
        ("customer_id", True),
        ("CustomerId", True),
        ("$Context.MessagingSession.CustomerId", True),
        ("EndUserLanguage", True),
        ("Channel", True),
        ("customerid", False),
        ("paid", False),
    ],
)
def test_a_context_variable_that_the_script_does_not_read_is_an_error(
    tmp_path: Path, name: str, *, is_known: bool
) -> None:
    script = SHOP.replace("Greet customer", "By {!@MessagingSession.Channel}: greet customer")
    write_project(tmp_path, script=script, rules="rules:\n  - answer: Hello\n")
    if is_known:
        assert converse(tmp_path, "a", context={name: "x"})[0].outcome == "Hello"
        return
    with pytest.raises(SubjectError, match=f"the script has no variable for '{name}', which the test case sets"):
        converse(tmp_path, "a", context={name: "x"})


def test_a_model_that_never_answers_ends_in_an_error(tmp_path: Path) -> None:
    write_project(tmp_path)
    (tmp_path / "chooser.py").write_text('def choose(request):\n    return {"call": "nothing"}\n')
    with pytest.raises(SubjectError, match=f"within {limits.MAX_TURN_STEPS} steps"):
        converse(tmp_path, "a", target="chooser:choose")


BUSY_ACTION = """\
from evalmeta.errors import SubjectBusy

busy = [SubjectBusy("too many requests")]


def find_ticket(number, detail):
    if busy:
        raise busy.pop()
    return {"state": "ready", "cost": 120}
"""
BUSY_ONCE = """\
from evalmeta.errors import SubjectBusy

busy = [SubjectBusy("too many requests")]


def choose(request):
    if request["subagent"] == "reception":
        return {"call": "to_repairs"}
    if busy:
        raise busy.pop()
    return " ".join(message["role"] for message in request["messages"])
"""


def asked_again(folder: Path, utterance: str, **settings: object) -> GeneratedData:
    """Return the second answer of a session whose first request found something busy."""
    values = {"adapter": "agent_script", "bundle": "Bike_Shop", **settings}
    subject = AgentScriptSubject.model_validate(values).bind(root=folder)
    case = Case(1, (Turn(utterance, ()),), context_variables=(ContextVariable("CustomerId", "C1"),))

    async def asked_twice() -> GeneratedData:
        session = await subject.open(case)
        with pytest.raises(SubjectBusy):
            await session.ask(utterance)
        return await session.ask(utterance)

    return asyncio.run(asked_twice())


def test_a_turn_that_is_asked_again_because_the_model_was_busy_happens_once(tmp_path: Path) -> None:
    write_project(tmp_path)
    (tmp_path / "busy_once.py").write_text(BUSY_ONCE)
    answer = asked_again(tmp_path, "repair", target="busy_once:choose")
    assert answer.outcome == "user assistant tool"
    assert (answer.state or {})["visits"] == 1


def test_a_turn_that_is_asked_again_begins_with_the_first_rule(tmp_path: Path) -> None:
    doubles = {name: rows for name, rows in DOUBLES.items() if name != "find_ticket"}
    write_project(tmp_path, rules=REPAIR, doubles=doubles)
    (tmp_path / "busy_action.py").write_text(BUSY_ACTION)
    answer = asked_again(tmp_path, "My repair 7", functions="busy_action")
    assert (answer.outcome, answer.topic) == ("It costs 120, True.", "repairs")
    assert names(answer) == ["check_customer", "find_ticket", "notify"]
