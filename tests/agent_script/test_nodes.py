"""The syntax tree of Agent Script."""

from __future__ import annotations

from evalmeta.agent_script.nodes import Field, Literal, Position, Reference, Template, field_text

HERE = Position(1, 1)


def test_references_are_written_as_in_scripts() -> None:
    assert str(Reference("subagent", "Billing", HERE)) == "@subagent.Billing"
    assert str(Reference("utils", "", HERE)) == "@utils"


def test_the_text_of_a_field_is_its_string_or_its_template_without_expressions() -> None:
    template = Template(("Hello, ", Reference("variables", "name", HERE), "!"), HERE)
    fields = (
        Field("label", "", Literal("Billing", HERE), (), (), HERE),
        Field("description", "", template, (), (), HERE),
        Field("count", "", Literal(3, HERE), (), (), HERE),
    )
    assert [field_text(fields, key) for key in ("label", "description", "count", "target")] == [
        "Billing",
        "Hello, !",
        "",
        "",
    ]
