"""A script with every construct of the language, for tests."""

from __future__ import annotations

from typing import Final

EVERYTHING: Final = """\
# A shop for flowers.
system:
    instructions: "You sell flowers to {!@variables.customer_name}."
    messages:
        welcome: "Welcome to the flower shop!"
        error: |
            Something is wilting.
            Please try again.

config:
    developer_name: "Flower_Shop"
    agent_label: "Flower shop"
    default_agent_user: None

variables:
    customer_name: mutable string = ""
        description: "The customer's name"
    bouquets: mutable list[object] = []
    is_regular: mutable boolean = False
        description: "Whether the customer has ordered before"
    limit: mutable number = 3.5
    notes: mutable object = {"a": 1, b: [True, None]}
    opened: mutable date = 2026-03-08
    session_id: linked string
        source: @MessagingSession.Id

language:
    default_locale: "en_US"
    additional_locales:
        - "fr"
        - "de"

connection messaging:
    routes:
        - name: "first"
          target: "flow://First"
        -
          name: "second"

start_agent greeter:
    label: "Greeter"
    description: "Welcome customers"
    reasoning:
        instructions: ->
            | Greet {! @variables.customer_name if @variables.is_regular else "the customer" }.
              Ask what they need.

            # The next line is only for regular customers.
            if @variables.is_regular and not @variables.limit <= 0:
                | Thank them.
            else if @variables.bouquets is not None:
                run @actions.Count_Bouquets
                    with bouquets=@variables.bouquets, most=...
                    set @variables.limit = @outputs.count + 1
                    run @actions.Log
            else:
                set @variables.notes = @variables.notes[0].text
        actions:
            order: @utils.transition to @subagent.orders
                description: "Order flowers"
                available when @variables.limit > 0
            learn: @utils.setVariables
                with customer_name=...
            help: @utils.escalate
    actions:
        Count_Bouquets:
            description: "Counts"
            label: "Count bouquets"
            inputs:
                bouquets: list[object] = []
                    is_required: True
                most: number
            outputs:
                count: number
            target: "flow://Count"
        Log:
            target: "apex://Log"

subagent orders:
    description: |
        Takes orders,
          and asks back.
    system:
        instructions: "Be brief."
    before_reasoning:
        if @variables.customer_name == "":
            transition to @start_agent.greeter
    reasoning:
        instructions: |
            Take the order.
        actions:
            ask: @connected_subagent.Wholesale
            order: @actions.Order
                with kind="roses", number=(1 + 2) * 3
                set @variables.bouquets = @outputs.bouquets
                transition to @topic.complaints
    after_reasoning:
        set @variables.limit = -@variables.limit / len(@variables.bouquets)

topic complaints:
    description: "Listens"
    on_exit: ->
        set @variables.is_regular = True

connected_subagent Wholesale:
    target: "agentforce://Wholesale"
    description: "Sells in bulk"
    inputs:
        kind: string
    after_response:
        transition to @subagent.orders
"""


def subagent(body: str) -> str:
    """Return a script whose only subagent has a body, which begins in column 5."""
    return f"start_agent one:\n{body}"
