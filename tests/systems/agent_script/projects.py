"""Projects with an agent in Agent Script, a scripted model and doubles, and conversations with the agent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from bundles import METADATA
from evalmeta.model.definition import ContextVariable
from evalmeta.model.evaluation import Case, Turn
from evalmeta.systems.agent_script.subject import AgentScriptSubject

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalmeta.model.generated_data import GeneratedData

SHOP: Final = """\
system:
    instructions: "You work for a bicycle shop."
config:
    developer_name: "Bike_Shop"
variables:
    customer_id: linked string
        source: @MessagingSession.CustomerId
        description: "Who writes"
    verified: mutable boolean = False
    ticket: mutable string = ""
        description: "The number of the repair ticket"
    price: mutable number = 0
    visits: mutable number = 0
    log: mutable string = ""
start_agent reception:
    description: "Decides who helps"
    reasoning:
        instructions: ->
            | Greet customer {!@variables.customer_id}.
            if @variables.verified:
                | The customer is known.
        actions:
            to_repairs: @utils.transition to @subagent.repairs
                description: "For repairs"
            to_office: @utils.transition to @subagent.office
                description: "For invoices"
                available when @variables.verified
            human: @utils.escalate
                description: "A person takes over"
subagent repairs:
    description: "Repairs"
    before_reasoning:
        set @variables.visits = @variables.visits + 1
        run @actions.check_customer
            with id=@variables.customer_id
            set @variables.verified = @outputs.known
    actions:
        check_customer:
            inputs:
                id: string
            outputs:
                known: boolean
            target: "flow://Check_Customer"
        find_ticket:
            description: "Finds a ticket"
            inputs:
                number: string
                    is_required: True
                    description: "The ticket's number"
                detail: boolean
            outputs:
                state: string
                cost: number
            target: "flow://Find_Ticket"
        notify:
            inputs:
                text: string
            outputs:
                sent: boolean
            target: "apex://Notify"
    reasoning:
        instructions: ->
            | Ask for the ticket, then call {!@actions.look_up}.
            if @variables.price > 100:
                | It is expensive: {!@variables.price}.
        actions:
            keep: @utils.setVariables
                with ticket=...
            look_up: @actions.find_ticket
                available when @variables.verified
                with number=...
                with detail=True
                set @variables.price = @outputs.cost
                run @actions.notify
                    with text="ticket " + @outputs.state
                    set @variables.log = "notified"
            pay: @actions.find_ticket
                with number=@variables.ticket
                if @outputs.cost > 0:
                    transition to @subagent.office
    after_reasoning:
        set @variables.log = @variables.log + "!"
subagent office:
    description: "Invoices"
    reasoning:
        instructions: "Talk about {!@variables.price} euros."
"""
KNOWN: Final = "- inputs: {id: C1}\n  outputs: {known: true}\n- outputs: {known: false}\n"
TICKETS: Final = """\
- inputs: {number: "7", detail: true}
  outputs: {state: ready, cost: 120}
- inputs: {number: "8"}
  error: the archive is locked
- inputs: {number: "9"}
  outputs: {state: open, cost: 5}
"""
DOUBLES: Final = {"check_customer": KNOWN, "find_ticket": TICKETS, "notify": "- outputs: {sent: true}\n"}


def write_project(
    folder: Path, *, script: str = SHOP, rules: str | None = None, doubles: Mapping[str, str] = DOUBLES
) -> Path:
    """Write a Salesforce DX project with the agent Bike_Shop; return the script's path."""
    bundle = folder / "force-app/main/default/aiAuthoringBundles/Bike_Shop"
    bundle.mkdir(parents=True)
    (folder / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "force-app", "default": true}]}')
    (bundle / "Bike_Shop.agent").write_text(script)
    (bundle / "Bike_Shop.bundle-meta.xml").write_bytes(METADATA)
    (folder / "actions").mkdir()
    for name, rows in doubles.items():
        (folder / f"actions/{name}.yaml").write_text(rows)
    if rules is not None:
        (folder / "rules").mkdir()
        (folder / "rules/Bike_Shop.yaml").write_text(rules)
    return bundle / "Bike_Shop.agent"


def converse(
    folder: Path, *utterances: str, context: Mapping[str, str] | None = None, **settings: object
) -> list[GeneratedData]:
    """Return the answers of the agent in one conversation."""
    values = {"adapter": "agent_script", "bundle": "Bike_Shop", **settings}
    subject = AgentScriptSubject.model_validate(values).bind(root=folder)
    variables = tuple(ContextVariable(name, value) for name, value in (context or {}).items())
    case = Case(1, tuple(Turn(utterance, ()) for utterance in utterances), context_variables=variables)

    async def answers() -> list[GeneratedData]:
        session = await subject.open(case)
        try:
            return [await session.ask(utterance) for utterance in utterances]
        finally:
            await session.close()
            await subject.close()

    return asyncio.run(answers())
