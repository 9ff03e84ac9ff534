from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import MessageUnreadable
from evalmeta.protocol.metadata_api import AsyncResult, DeployDetails, DeployMessage, DeployOptions, RetrieveResult
from evalmeta.protocol.soap import from_node, read_boolean, to_nodes
from evalmeta.xmlio.nodes import read_node
from evalmeta.xmlio.writer import node, render
from protocol.messages import ALL, made


@given(st.sampled_from(ALL).flatmap(made))
def test_every_message_survives_the_way_through_xml(value: object) -> None:
    sent = render(node("result", to_nodes(value)))
    assert from_node(type(value), read_node(sent, label="a message")) == value


def test_field_names_are_the_apis_own() -> None:
    names = [to_node.name for to_node in to_nodes(DeployOptions())]
    assert names[2:5] == ["checkOnly", "ignoreWarnings", "performRetrieve"]


def test_a_field_without_a_value_is_not_written() -> None:
    names = {to_node.name for to_node in to_nodes(DeployMessage("", "package.xml", "package.xml", success=True))}
    assert names.isdisjoint({"id", "lineNumber", "columnNumber", "problem", "problemType"})


def test_unknown_elements_are_ignored() -> None:
    source = node("result", [node("done", "1"), node("checkpoint", "?"), node("id", "0Af")])
    assert from_node(AsyncResult, source) == AsyncResult(done=True, id="0Af")


def test_a_field_without_a_default_must_come() -> None:
    with pytest.raises(MessageUnreadable, match="<result> has no <done>"):
        from_node(AsyncResult, node("result", [node("id", "0Af")]))


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        (DeployOptions, "checkOnly", "yes"),
        (DeployOptions, "checkOnly", ""),
        (DeployMessage, "lineNumber", "6a"),
        (DeployMessage, "lineNumber", "9" * 5000),
        (RetrieveResult, "zipFile", "a"),
        (RetrieveResult, "zipFile", "\u00e9"),
    ],
)
def test_a_value_of_another_type_is_unreadable(kind: type, name: str, text: str) -> None:
    with pytest.raises(MessageUnreadable, match=f"<{name}> is "):
        from_node(kind, node("result", [node(name, text), *_required(kind, but=name)]))


def _required(kind: type, *, but: str) -> list[object]:
    texts = {DeployMessage: {"componentType": "", "fullName": "", "fileName": "", "success": "true"}}
    also = {RetrieveResult: {"id": "", "status": "", "done": "true", "success": "true"}}
    return [node(name, text) for name, text in {**texts, **also}.get(kind, {}).items() if name != but]


def test_repeated_elements_become_a_tuple() -> None:
    failure = DeployMessage("", "A", "a", success=False)
    details = DeployDetails(component_failures=(failure, failure))
    assert [to_node.name for to_node in to_nodes(details)] == [
        "componentFailures",
        "componentFailures",
        "runTestResult",
    ]


def test_an_unsupported_field_type_is_an_error() -> None:
    @dataclass(frozen=True)
    class Odd:
        words: list[str | int] | None = None

    with pytest.raises(TypeError, match="the type of words is not supported"):
        from_node(Odd, node("odd"))


@given(st.sampled_from(ALL).flatmap(made))
def test_elements_are_in_the_order_of_the_wsdl(value: object) -> None:
    names = [to_node.name for to_node in to_nodes(value)]
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("True", True), (" 1 ", True), ("0", False), ("FALSE", False), ("", None)]
)
def test_a_boolean_is_read_in_any_case_and_as_a_number(text: str, *, value: bool | None) -> None:
    read = [read_boolean("done", text, otherwise=otherwise) for otherwise in (True, False)]
    assert read == ([True, False] if value is None else [value, value])


def test_a_boolean_that_is_neither_is_unreadable() -> None:
    with pytest.raises(MessageUnreadable, match="<done> is 'yes', not true or false"):
        read_boolean("done", "yes", otherwise=True)
