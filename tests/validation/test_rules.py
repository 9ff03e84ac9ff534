from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evalmeta
from evalmeta.validation.rules import FIXED_CODES, all_rules, list_rules
from validation.samples import SAMPLE_PATHS, SNAPSHOT, code_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evalmeta.validation.rule import Rule

SOURCE = Path(evalmeta.__file__).parent
ROOT = SOURCE.parent.parent
FILE_ROOMS = ("xmlio", "validation", "package")
MAKERS = {"Problem", "Misfit", "rule", "_problem", "_refuse"}


def nodes(room: str = "") -> Iterator[ast.AST]:
    for path in (SOURCE / room).rglob("*.py"):
        yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def strings(parts: Iterable[ast.AST]) -> Iterator[str]:
    return (part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))


def arguments(call: ast.AST) -> list[ast.expr]:
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in MAKERS):
        return []
    return [*call.args[:3], *(keyword.value for keyword in call.keywords if keyword.arg == "code")]


@pytest.mark.parametrize("rule", all_rules(), ids=[rule.code for rule in all_rules()])
def test_every_rule_demands_something_in_one_sentence(rule: Rule) -> None:
    demand = rule.demand
    assert demand[0].isupper() or demand.startswith("`"), rule.code
    assert demand.endswith((".", ";", '").', ":")), rule.code


@pytest.mark.parametrize("code", [declared.code for declared in all_rules()])
def test_every_rule_has_all_that_belongs_to_it(code: str) -> None:
    """Name what a new rule lacks; `make docs` writes the beginning of its page and the line of its sample."""
    wanted = {
        f"a page: src/evalmeta/validation/pages/{code}.md": (SOURCE / f"validation/pages/{code}.md").exists(),
        f"a sample: metadata-samples/invalid/{code}.*": code in {code_of(sample) for sample in SAMPLE_PATHS},
        "its line in tests/validation/invalid_samples.txt (make docs)": f"[{code}]" in SNAPSHOT.read_text(),
        "its row in docs/validation.md (make docs)": f"pages/{code}.md" in (ROOT / "docs/validation.md").read_text(),
    }
    assert [f"{code} lacks {what}" for what, exists in wanted.items() if not exists] == []


def test_every_fixed_code_demands_something() -> None:
    assert all(demand[0].isupper() and demand.endswith(".") for demand in FIXED_CODES.values())


def test_codes_are_unique() -> None:
    codes = [rule.code for rule in list_rules()]
    assert len(codes) == len(set(codes)) == len(all_rules()) + len(FIXED_CODES)


@pytest.mark.slow
def test_every_code_in_the_list_is_used() -> None:
    used = Counter(strings(nodes()))
    assert [rule.code for rule in all_rules() if used[rule.code] < 1] == []
    assert [code for code in FIXED_CODES if used[code] < 2] == []


def test_every_code_that_is_used_is_in_the_list() -> None:
    found = {text for room in FILE_ROOMS for node in nodes(room) for text in strings(arguments(node))}
    codes = {text for text in found if re.fullmatch("[a-z]+(-[a-z]+)+", text)}
    assert codes - {rule.code for rule in list_rules()} == set()


def test_orgs_are_never_stricter_than_the_reference() -> None:
    order = ["warning", "error"]
    for rule in all_rules():
        assert order.index(rule.severity("orgs")) <= order.index(rule.severity("documented"))


def test_what_orgs_are_known_to_accept_is_a_warning_there() -> None:
    softer = {rule.code for rule in all_rules() if rule.documented is not rule.orgs}
    of_definitions = {"name-format", "name-mismatch", "name-duplicate"}
    of_inputs = {"history-topic", "history-index", "context-variable-twice", "context-variable-empty"}
    of_expectations = {"expected-value-missing", "actions-unreadable", "topic-unknown", "action-unknown"}
    of_parameters = {"parameter-too-long", "parameter-unused", "parameter-unknown"}
    of_agents = {"subject-unknown", "variable-unknown", "bundle-file-unknown"}
    assert softer == of_definitions | of_inputs | of_expectations | of_parameters | of_agents
