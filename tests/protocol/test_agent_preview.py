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
