"""Requests of the preview API, as @salesforce/agents sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import MessageUnreadable
from evalmeta.protocol import agent_preview

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject

ASSET: JsonObject = {"type": "AFScript", "name": "AFScript", "content": "system:\n"}
MESSAGE: JsonObject = {"sequenceId": 7, "type": "Text", "text": "Hello"}


def test_variables_have_the_values_of_their_types() -> None:
    members = [{"name": "Id", "type": "Text", "value": "7"}, {"name": "Open", "type": "Boolean", "value": True}]
    variables = [
        {"name": "Case", "type": "Object", "value": members},
        {"name": "Total", "type": "Number", "value": 1.5},
        {"name": "Nothing", "type": "Text"},
        {"type": "Text", "value": "without a name"},
    ]
    asked = agent_preview.read_preview_request({"agentDefinition": {"a": 1}, "variables": [*variables]})
    assert asked.variables == {"Case": {"Id": "7", "Open": True}, "Total": 1.5, "Nothing": None}
    assert not asked.is_simulated


@pytest.mark.parametrize("assets", [[], [ASSET, ASSET], [{**ASSET, "type": "Text"}], [{**ASSET, "content": None}]])
def test_one_script_is_compiled(assets: list[JsonObject]) -> None:
    assert agent_preview.read_script_request({"assets": [ASSET]}) == "system:\n"
    with pytest.raises(MessageUnreadable, match="one asset of the type AFScript"):
        agent_preview.read_script_request({"assets": [*assets]})


@pytest.mark.parametrize("fault", [{"sequenceId": "7"}, {"sequenceId": True}, {"type": "Image"}, {"text": ""}])
def test_a_message_needs_a_number_and_a_text(fault: JsonObject) -> None:
    assert agent_preview.read_preview_message({"message": MESSAGE}).text == "Hello"
    with pytest.raises(MessageUnreadable, match="sequenceId"):
        agent_preview.read_preview_message({"message": {**MESSAGE, **fault}})


def test_variables_do_not_change_during_a_session() -> None:
    with pytest.raises(MessageUnreadable, match="variables cannot change"):
        agent_preview.read_preview_message({"message": MESSAGE, "variables": [{"name": "a"}]})


DEFINITION: JsonObject = {
    "globalConfiguration": {"defaultAgentUser": "shop@example.com", "agentType": "AgentforceServiceAgent"},
    "agentVersion": {
        "developerName": None,
        "stateVariables": [
            {"developerName": "visits", "dataType": "number"},
            {"developerName": "known", "dataType": "boolean"},
            {"developerName": "name", "dataType": "string"},
        ],
    },
}


def body(configuration: JsonObject | None = None, *, bypass_user: bool = True) -> JsonObject:
    definition = DEFINITION if configuration is None else {**DEFINITION, "globalConfiguration": configuration}
    return agent_preview.preview_body(
        definition,
        version="v3",
        key="k",
        instance_url="https://desk.my.salesforce.com",
        bypass_user=bypass_user,
        simulates=True,
        variables=[],
    )


def test_a_request_for_a_session_has_the_keys_of_the_library() -> None:
    # scriptAgent.js of @salesforce/agents 2.3.1, in its order.
    assert [*body()] == [
        *("agentDefinition", "enableSimulationMode", "externalSessionKey", "instanceConfig", "variables", "parameters"),
        *("streamingCapabilities", "richContentCapabilities", "bypassUser", "executionHistory", "conversationContext"),
    ]
    definition = body()["agentDefinition"]
    assert isinstance(definition, dict)
    assert definition["agentVersion"] == {**DEFINITION["agentVersion"], "developerName": "v3"}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("configuration", "bypass_user", "expected"),
    [
        (None, True, True),
        (None, False, False),
        ({"defaultAgentUser": ""}, True, False),
        ({"defaultAgentUser": "a@b.c", "agentType": "AgentforceEmployeeAgent"}, True, False),
    ],
)
def test_an_agent_without_a_user_of_its_own_acts_as_the_caller(
    configuration: JsonObject | None, bypass_user: object, expected: object
) -> None:
    assert body(configuration, bypass_user=bool(bypass_user))["bypassUser"] is expected


def test_variables_of_a_script_have_types_of_the_api() -> None:
    assert agent_preview.state_types(DEFINITION) == {"visits": "Number", "known": "Boolean"}


def test_a_script_that_is_not_compiled_has_errors_with_places() -> None:
    error: JsonObject = {"errorType": "SyntaxError", "description": "Unknown key", "lineStart": 6, "colStart": 29}
    reply: JsonObject = {"status": "failure", "compiledArtifact": None, "errors": [error]}
    assert agent_preview.read_compiled(reply) == ({}, ["6:29: Unknown key [SyntaxError]"])
    assert agent_preview.read_compiled({"status": "success", "compiledArtifact": {"a": 1}}) == ({"a": 1}, [])
    for silent in ({}, {"status": "success"}, {"status": "failure"}):
        definition, errors = agent_preview.read_compiled({**silent})
        assert (definition, len(errors)) == ({}, 1)
