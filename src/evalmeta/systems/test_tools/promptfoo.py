"""Configurations of promptfoo (promptfooconfig.yaml), and its files with tests (YAML, JSON, JSON Lines, CSV).

Source: promptfoo.dev/docs/configuration, "Reference" and "Test cases". The prompt, filled with the variables of a test,
is its input. Several prompts, and variables with several values, make several test cases, as in promptfoo.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import FormatError, NotFound
from evalmeta.formats.document import LINES_NAMES, SPEC_NAMES, TABLE_NAMES, read_bytes
from evalmeta.formats.sources import read_json
from evalmeta.formats.translation import (
    Row,
    TranslatedCase,
    Translation,
    ask_inputs,
    ask_messages,
    kept_metadata,
    rows_of,
)
from evalmeta.formats.yaml_source import json_value, read_yaml
from evalmeta.model.json_value import json_text
from evalmeta.systems.test_tools.checks import CaseChecks
from evalmeta.systems.test_tools.promptfoo_checks import add_assertions, parse_expected

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from evalmeta.model.json_value import JsonObject, JsonValue


_FILE: Final = "file://"
_NAMED_FILE: Final = re.compile(r"""file://([^\s"',\]}]+)""")
_PLACEHOLDER: Final = re.compile(r"\{\{-?\s*([\w.]+)\s*-?\}\}")
_TEMPLATE: Final = re.compile(r"\{\{|\{%")
_TEST_KEYS: Final = ("description", "vars", "assert", "options", "metadata", "threshold", "assertScoringFunction")
_REFERENCE: Final = "#/assertionTemplates/"
# What changes the answer, or which parts of the checks must pass, before or beside the assertions.
_CHANGES: Final = ("transform", "postprocess", "transformVars", "prefix", "suffix", "storeOutputAs")
_KEPT_SETTINGS: Final = ("prompts", "tests", "defaultTest", "scenarios", "description", "assertionTemplates", "$schema")
_AGENTS: Final = "the agents; evalmeta asks the one of --agent or of evalmeta.toml"
_SETTINGS: Final = {"providers": f"providers, {_AGENTS}", "targets": f"targets, {_AGENTS}"}
_LEFT_OUT: Final = {
    **{name: f"{name} of the test, {_AGENTS}" for name in ("provider", "providers")},
    "providerOutput": "providerOutput of the test, a recorded answer: the agent is asked",
}


def translate(path: Path, *, label: str) -> Translation:
    """Read a configuration, or a file with tests; raise FormatError if a part of it is not supported."""
    if path.suffix.lower() in {*TABLE_NAMES, *LINES_NAMES}:
        return Translation(label, _Configuration({}, path, label).cases(_tests_of_file(path, label)))
    value, lines = _value(path, label)
    if isinstance(value, list):
        rows = [_test(item, line, label) for item, line in zip(value, lines, strict=True)]
        return Translation(label, _Configuration({}, path, label).cases(rows))
    if not isinstance(value, dict):
        raise FormatError(f"{label} is not a configuration of promptfoo", actions=["Write prompts: and tests:"])
    configuration = _Configuration(value, path, label)
    try:
        cases = configuration.cases(configuration.tests(lines))
    except NotFound as error:
        message = f"{label} names a file that cannot be read: {error}"
        raise NotFound(message, actions=["Paths in it are relative to its folder."]) from None
    if not cases:
        raise FormatError(f"{label} has no tests", actions=["Write at least one under tests:, with assert:."])
    description = value.get("description")
    head: JsonObject = {"name": description} if isinstance(description, str) else {}
    options = value.get("evaluateOptions")
    repeat = options.get("repeat") if isinstance(options, dict) else None
    iterations = repeat if isinstance(repeat, int) and 1 <= repeat <= limits.MAX_ITERATIONS else None
    known = {*_KEPT_SETTINGS, "evaluateOptions"}
    left_out = tuple(_SETTINGS.get(name, f"the setting {name}") for name in value if name not in known)
    return Translation(label, cases, head, iterations, left_out)


def files_of(path: Path) -> list[Path]:
    """Return the files that a configuration names with `file://`, and that exist."""
    names = dict.fromkeys(_NAMED_FILE.findall(read_bytes(path, limits.MAX_SPEC_BYTES).decode("utf-8", "replace")))
    files = [file for name in names for file in _files_named(path.parent, name) if file.is_file()]
    return files[: limits.MAX_CASE_FILES]


def _files_named(folder: Path, name: str) -> list[Path]:
    return sorted(folder.glob(name)) if "*" in name and not name.startswith("/") else [folder / name]


def _value(path: Path, label: str) -> tuple[JsonValue, list[int]]:
    """Return what a YAML or JSON file has, and the lines of its tests."""
    data = read_bytes(path)
    if path.suffix.lower() == ".json":
        file = read_json(data, label=label)
        return file.value, file.lines_of(("tests",) if isinstance(file.value, dict) else ())
    yaml = read_yaml(data, label=label)
    value = json_value(yaml.value)
    steps = ("tests",) if isinstance(value, dict) else ()
    tests = value.get("tests") if isinstance(value, dict) else value
    count = len(tests) if isinstance(tests, list) else 0
    return value, [yaml.place((*steps, index))[0] for index in range(count)]


def _test(item: JsonValue, line: int, label: str) -> Row:
    if not isinstance(item, dict):
        raise FormatError(f"{label}:{line}: a test is not a mapping", actions=["Write vars: and assert:."])
    return Row(line, item)


def _tests_of_file(path: Path, label: str) -> list[Row]:
    suffix = path.suffix.lower()
    if suffix in TABLE_NAMES:
        return [Row(row.line, _test_of_table(row.values)) for row in rows_of(path, label=label)]
    if suffix in SPEC_NAMES:
        value, lines = _value(path, label)
        if not isinstance(value, list):
            raise FormatError(f"{label} has no list of tests", actions=["Write '- ' before each test."])
        return [_test(item, line, label) for item, line in zip(value, lines, strict=True)]
    if suffix in {*LINES_NAMES, ".json"}:
        return rows_of(path, label=label)
    raise FormatError(
        f"{label}: tests that {path.name} makes or holds cannot be read",
        actions=["Export them as YAML, JSON, JSON Lines or CSV."],
    )


def _test_of_table(cells: JsonObject) -> JsonObject:
    """Return the test of a row, whose columns are variables, but for those that begin with two underscores."""
    variables = {name: cell for name, cell in cells.items() if not name.startswith("__")}
    expected = [str(cell) for name, cell in cells.items() if re.fullmatch(r"__expected\d*", name)]
    metadata = {
        name.removeprefix("__metadata:").removesuffix("[]"): cell
        for name, cell in cells.items()
        if name.startswith("__metadata:")
    }
    options = {name: cells[f"__{name}"] for name in ("prefix", "suffix") if f"__{name}" in cells}
    return {
        "vars": variables,
        "assert": [parse_expected(cell) for cell in expected],
        **({"description": cells["__description"]} if "__description" in cells else {}),
        **({"metadata": metadata} if metadata else {}),
        **({"options": options} if options else {}),
        **({"threshold": cells["__threshold"]} if "__threshold" in cells else {}),
    }


@dataclass(frozen=True, slots=True)
class _Configuration:
    """A configuration, by which tests become test cases."""

    value: JsonObject
    path: Path
    label: str

    def tests(self, lines: list[int]) -> list[Row]:
        """Return its tests, those of its scenarios, and those of the files that it names."""
        tests = self.value.get("tests")
        rows: list[Row] = []
        items = tests if isinstance(tests, list) else [] if tests is None else [tests]
        for index, item in enumerate(items):
            line = lines[index] if index < len(lines) else 0
            rows += self._named_tests(item) if isinstance(item, str) else [_test(item, line, self.label)]
        return [*rows, *self._scenarios()]

    def _scenarios(self) -> Iterator[Row]:
        for scenario in self._mappings(self.value.get("scenarios"), "scenarios"):
            configs = self._mappings(scenario.get("config"), "the config of a scenario")
            tests = self._mappings(scenario.get("tests"), "the tests of a scenario")
            for config, test in product(configs, tests or [{}]):
                yield Row(0, _joined(config, test))

    def _mappings(self, value: JsonValue, called: str) -> list[JsonObject]:
        """Return a list of mappings, empty if there is none; raise FormatError for anything else."""
        items = [] if value is None else value if isinstance(value, list) else [value]
        mappings: list[JsonObject] = [item for item in items if isinstance(item, dict)]
        if len(mappings) < len(items):
            raise FormatError(
                f"{self.label}: {called} must be mappings in this file", actions=["Write them here as a list."]
            )
        return mappings

    def _named_tests(self, name: str) -> list[Row]:
        name = name.removeprefix(_FILE)
        paths = _files_named(self.path.parent, name)
        if not paths or len(paths) > limits.MAX_CASE_FILES:
            raise FormatError(f"{self.label} names the tests {name!r}, which are {len(paths):,} files")
        return [row for path in paths for row in _tests_of_file(path, str(path))]

    def cases(self, rows: list[Row]) -> list[TranslatedCase]:
        """Return the test cases of tests, one for each prompt and each choice of values."""
        cases: list[TranslatedCase] = []
        prompts = self._prompts()
        shared = self.value.get("defaultTest")
        if isinstance(shared, str):
            shared = _value(self.path.parent / shared.removeprefix(_FILE), self.label)[0]
        if shared is not None and not isinstance(shared, dict):
            raise FormatError(f"{self.label}: 'defaultTest' is not a mapping", actions=["Write assert: or vars:."])
        for row in rows:
            test = _joined(shared or {}, row.values)
            for variables, prompt in product(self._choices(test.get("vars"), row), prompts):
                if len(cases) >= limits.MAX_TRANSLATED_CASES:
                    raise FormatError(f"{self.label} has more than {limits.MAX_TRANSLATED_CASES:,} test cases")
                cases.append(self._case(test, variables, prompt, row.line))
        return cases

    def _prompts(self) -> list[str | None]:
        prompts = self.value.get("prompts")
        items = prompts if isinstance(prompts, list) else [prompts]
        return [None if item is None else self._prompt(item) for item in items] or [None]

    def _prompt(self, item: JsonValue) -> str:
        if isinstance(item, dict):
            item = item.get("raw", item.get("id"))
        if not isinstance(item, str):
            raise FormatError(f"{self.label}: a prompt is not a text", actions=["Write the prompt, or file://NAME."])
        if not item.startswith(_FILE):
            return item
        path = self.path.parent / item.removeprefix(_FILE)
        if path.suffix.lower() not in {".txt", ".md", ".json", ".j2"}:
            raise FormatError(
                f"{self.label}: the prompt {item} is made by a program, which evalmeta does not run",
                actions=["Write the prompt as text, such as '{{message}}'."],
            )
        return read_bytes(path, limits.MAX_SPEC_BYTES).decode("utf-8", "replace").strip()

    def _choices(self, variables: JsonValue, row: Row) -> list[JsonObject]:
        """Return the variables of a test; a list of values is one choice each."""
        if isinstance(variables, str):
            variables = _value(self.path.parent / variables.removeprefix(_FILE), self.label)[0]
        if variables is not None and not isinstance(variables, dict):
            raise FormatError(f"{self.label}:{row.line}: 'vars' is not a mapping")
        named = dict(variables or {})
        values = [value if isinstance(value, list) else [value] for value in named.values()]
        return [dict(zip(named, chosen, strict=True)) for chosen in product(*values)]

    def _case(self, test: JsonObject, variables: JsonObject, prompt: str | None, line: int) -> TranslatedCase:
        checks = CaseChecks()
        add_assertions([_filled(self._resolved(item), variables) for item in _assertions(test)], checks)
        if "threshold" in test:
            checks.lose(f"the threshold {json_text(test['threshold'])} of the test; here all checks must pass")
        if "assertScoringFunction" in test:
            checks.lose("the assertScoringFunction")
        for key in test:
            if key in _LEFT_OUT:
                checks.left_out.append(_LEFT_OUT[key])
            elif key not in _TEST_KEYS:
                checks.lose(f"the key {key!r} of the test")
        options = test.get("options")
        for option in options if isinstance(options, dict) else ():
            if option in _CHANGES:
                checks.lose(f"the option {option} of the test")
            else:
                checks.left_out.append(f"the option {option} of the test")
        asked = self._asked(prompt, variables, checks)
        metadata = test.get("metadata")
        kept, left_out = kept_metadata(metadata if isinstance(metadata, dict) else {})
        description = test.get("description")
        called: JsonObject = {"name": description} if isinstance(description, str) and description else {}
        return TranslatedCase(
            {**called, **asked, **checks.keys(), **kept}, line, checks.unjudged, (*checks.left_out, *left_out)
        )

    def _resolved(self, assertion: JsonValue) -> JsonValue:
        reference = assertion.get("$ref") if isinstance(assertion, dict) else None
        if not isinstance(reference, str):
            return assertion
        templates = self.value.get("assertionTemplates")
        name = reference.removeprefix(_REFERENCE)
        if not isinstance(templates, dict) or name not in templates:
            raise FormatError(f"{self.label}: the assertion template {reference!r} does not exist")
        template: JsonValue = templates[name]
        return template

    def _asked(self, prompt: str | None, variables: JsonObject, checks: CaseChecks) -> JsonObject:
        if prompt is None:
            return ask_inputs(variables)
        text = json_text(_filled(prompt, variables))
        if _TEMPLATE.search(text):
            checks.lose("the prompt, which has a placeholder without a value or a part that is computed")
        if text.lstrip().startswith("["):
            with suppress(orjson.JSONDecodeError):
                messages: JsonValue = orjson.loads(text)
                if isinstance(messages, list) and (asked := ask_messages(messages)):
                    return asked
        return {"input": text}


def _joined(shared: JsonObject, test: JsonObject) -> JsonObject:
    """Return a test with what it shares with others: mappings are joined, and assertions are added."""
    joined = {**shared, **test}
    for name in ("vars", "metadata", "options"):
        parts = [part for part in (shared.get(name), test.get(name)) if isinstance(part, dict)]
        if parts:
            joined[name] = {key: value for part in parts for key, value in part.items()}
    return {**joined, "assert": [*_assertions(shared), *_assertions(test)]}


def _assertions(test: JsonObject) -> list[JsonValue]:
    """Return the assertions of a test, which may also write a single one without a list."""
    assertions = test.get("assert")
    return [] if assertions is None else assertions if isinstance(assertions, list) else [assertions]


def _filled(value: JsonValue, variables: Mapping[str, JsonValue]) -> JsonValue:
    """Return a value whose texts have the values of variables in the places of `{{name}}`."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda place: _value_at(place, variables), value)
    if isinstance(value, list):
        return [_filled(item, variables) for item in value]
    if isinstance(value, dict):
        return {name: _filled(item, variables) for name, item in value.items()}
    return value


def _value_at(place: re.Match[str], variables: Mapping[str, JsonValue]) -> str:
    value: JsonValue = dict(variables)
    for step in place[1].split("."):
        if not isinstance(value, dict) or step not in value:
            return place[0]
        value = value[step]
    return json_text(value)
