from __future__ import annotations

import re

import evalmeta
from evalmeta.model.settings import Settings
from reference import attributes, describe_api, describe_settings

API = "".join(describe_api())


def test_every_public_name_has_a_section_that_says_what_it_is() -> None:
    sections = dict(re.findall(r"^### evalmeta\.(\w+)\n\n```python\n.*?\n```\n\n(.*?)$", API, re.DOTALL | re.MULTILINE))

    assert [name for name in evalmeta.__all__ if not sections.get(name)] == []


def test_the_lists_of_names_lead_to_sections() -> None:
    headings = {title.lower().replace(".", "") for title in re.findall(r"^### (.+)$", API, re.MULTILINE)}

    assert set(re.findall(r"\]\(#([^)]+)\)", API)) - headings == set()


def test_every_parameter_of_evaluate_is_described() -> None:
    section = API.partition("### evalmeta.evaluate\n")[2].partition("\n### ")[0]

    assert {"what", "subject", "journal", "on_results"} <= set(re.findall(r"^- `(\w+)`: \w", section, re.MULTILINE))


def test_attributes_are_read_over_several_lines() -> None:
    assert attributes(evalmeta.GeneratedData)["topic"] == (
        "the API name of the chosen topic; empty if the agent chose none, None if it was not reported."
    )


def test_every_table_of_the_settings_is_described() -> None:
    tables = set(re.findall(r"^## `\[+(\w+)", "".join(describe_settings()), re.MULTILINE))

    assert {field.alias or name for name, field in Settings.model_fields.items()} - tables == {"columns", "tags"}
