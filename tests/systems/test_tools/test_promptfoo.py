from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import FormatError, NotFound
from evalmeta.formats.document import Reading
from evalmeta.formats.files import digest_of
from evalmeta.systems.test_tools.promptfoo import translate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Judge = Callable[..., dict[str, str]]
    Asked = Callable[..., list[str]]

CONFIG = """\
prompts: ['Answer: {{question}}']
providers: [openai:gpt-5]
"""


def test_each_prompt_and_each_value_of_a_variable_is_a_test_case(asked: Asked) -> None:
    tests = "prompts: ['A {{q}}', 'B {{q}} {{p}}']\ntests:\n- vars: {q: [1, 2], p: x}\n"
    assert asked("promptfooconfig.yaml", tests) == ["A 1", "B 1 x", "A 2", "B 2 x"]


def test_a_test_inherits_variables_and_assertions(verdicts: Judge) -> None:
    config = f"""{CONFIG}
defaultTest:
  vars: {{question: Hi}}
  assert: [{{type: contains, value: '{{{{question}}}}'}}]
tests:
- assert: [{{$ref: '#/assertionTemplates/short'}}]
assertionTemplates:
  short: {{type: regex, value: '^.{{1,20}}$'}}
"""
    assert verdicts("promptfooconfig.yaml", config, "Hi there") == {
        'contains "Hi"': "PASS",
        "matches ^.{1,20}$": "PASS",
    }


def test_the_tests_of_other_files_and_of_scenarios_are_read(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/a.csv").write_text("question,__expected,__metadata:area\nfrom a table?,contains:x,web\n")
    (tmp_path / "more/b.jsonl").write_text('{"vars": {"question": "from lines?"}}\n')
    (tmp_path / "more/c.yaml").write_text("- vars: {question: from YAML?}\n")
    (tmp_path / "more/d.json").write_text('[{"vars": {"question": "from JSON?"}}]')
    (tmp_path / "prompt.txt").write_text("{{question}}\n")
    config = """\
prompts: [file://prompt.txt]
tests: [file://more/a.csv, 'file://more/[bcd].*', {vars: {question: inline?}}]
scenarios:
- config: [{vars: {question: one?}}, {vars: {question: two?}}]
  tests: [{assert: [{type: contains, value: x}]}]
"""
    config = config.replace("'file://more/[bcd].*'", "file://more/b.jsonl, file://more/*.yaml, file://more/d.json")
    assert asked("promptfooconfig.yaml", config) == [
        *("from a table?", "from lines?", "from YAML?", "from JSON?", "inline?", "one?", "two?")
    ]


def test_a_prompt_of_messages_is_a_conversation(asked: Asked) -> None:
    config = """\
prompts:
- '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{q}}"}]'
tests: [{vars: {q: Hi}}]
"""
    assert asked("promptfooconfig.yaml", config) == ["Hi"]


@pytest.mark.parametrize(
    "test",
    [
        {"vars": {"question": "Hi"}, "assert": [], "threshold": 0.5},
        {"vars": {"question": "Hi"}, "assert": [], "options": {"transform": "output.trim()"}},
        {"vars": {"question": "Hi"}, "assert": [], "assertScoringFunction": "file://score.js"},
        {"vars": {"other": "Hi"}, "assert": []},
        {"vars": {"question": "Hi"}, "asert": [{"type": "contains", "value": "x"}]},
    ],
)
def test_what_changes_a_verdict_and_is_not_kept_is_undecided(verdicts: Judge, test: object) -> None:
    config = {"prompts": ["{{ question }}"], "tests": [test]}
    assert list(verdicts("promptfooconfig.json", config, "Hello").values()) == ["UNDECIDED"]


def test_a_single_assertion_without_a_list_is_judged(verdicts: Judge) -> None:
    shared = {"assert": [{"type": "contains", "value": "Hello"}]}
    config = {"prompts": ["a"], "defaultTest": shared, "tests": [{"assert": {"type": "contains", "value": "Bye"}}]}
    assert sorted(verdicts("promptfooconfig.json", config, "Hello").values()) == ["FAILURE", "PASS"]


def test_a_file_of_tests_without_a_list_does_not_vanish_beside_others(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("tests:\n- vars: {a: b}\n")
    config = {"prompts": ["a"], "tests": [{}, "file://more.yaml"]}
    with pytest.raises(FormatError, match=r"more\.yaml has no list of tests"):
        asked("promptfooconfig.json", config)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"prompts": ["a"], "tests": []}, "has no tests"),
        ({"prompts": ["a"], "tests": ["file://tests.py"]}, "tests that tests.py makes or holds cannot be read"),
        ({"prompts": ["file://prompt.py"], "tests": [{}]}, "is made by a program"),
        ({"prompts": [3], "tests": [{}]}, "a prompt is not a text"),
        ({"prompts": ["a"], "tests": [{"vars": [1]}]}, "'vars' is not a mapping"),
        ({"prompts": ["a"], "tests": [3]}, "a test is not a mapping"),
        ({"prompts": ["a"], "tests": [{"assert": [{"$ref": "#/x"}]}]}, "the assertion template '#/x' does not exist"),
        ({"prompts": ["a"], "tests": [{}], "scenarios": "file://s.yaml"}, "scenarios must be mappings"),
        ({"prompts": ["a"], "scenarios": [{"config": [{}], "tests": "file://t.yaml"}]}, "tests of a scenario must be"),
        ({"prompts": ["a"], "tests": [{}], "defaultTest": [{}]}, "'defaultTest' is not a mapping"),
        ({"prompts": ["a"], "tests": "file://no/*.yaml"}, "names the tests 'no/\\*.yaml', which are 0 files"),
        ({"prompts": ["{{a}}"], "tests": [{"vars": {n: list(range(60)) for n in "abc"}}]}, "more than 100,000"),
    ],
)
def test_a_configuration_that_cannot_be_read_says_why(asked: Asked, config: object, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        asked("promptfooconfig.json", config)


def test_a_change_of_a_file_with_tests_changes_the_digest(tmp_path: Path) -> None:
    path, tests = tmp_path / "promptfooconfig.yaml", tmp_path / "tests.csv"
    path.write_text(f"{CONFIG}tests: ['file://*.csv']\n")
    digests = set()
    for expected in "ab":
        tests.write_text(f"question,__expected\nHi,{expected}\n")
        digests.add(digest_of(path, Reading()))
    assert len(digests) == 2


def test_a_file_with_tests_that_is_missing_is_named(asked: Asked) -> None:
    with pytest.raises(NotFound, match=r"promptfooconfig\.yaml names a file that cannot be read: .*gone\.csv"):
        asked("promptfooconfig.yaml", f"{CONFIG}tests: file://gone.csv\n")


def test_a_list_of_tests_is_read_without_a_configuration_and_other_values_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tests.yaml"
    path.write_text("- vars: {q: Hi}\n  assert: [{type: contains, value: x}]\n- vars: {q: Bye}\n")
    cases = translate(path, label="tests.yaml").cases
    assert [(case.line, case.values["input"]) for case in cases] == [(1, "Hi"), (3, "Bye")]
    path.write_text("just text\n")
    with pytest.raises(FormatError, match=r"tests\.yaml is not a configuration of promptfoo"):
        translate(path, label="tests.yaml")


def test_shared_values_and_variables_are_read_from_the_files_that_a_configuration_names(tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text("assert: [{type: contains, value: x}]\n")
    (tmp_path / "vars.yaml").write_text("q: [Hi, Bye]\n")
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(
        "description: Greetings\nevaluateOptions: {repeat: 3}\nsharing: true\nproviders: [openai:gpt-5]\n"
        "prompts: [{raw: 'Say {{q}}'}]\ndefaultTest: file://shared.yaml\ntests: [{vars: file://vars.yaml}]\n"
    )
    translation = translate(path, label="p.yaml")
    assert [case.values["input"] for case in translation.cases] == ["Say Hi", "Say Bye"]
    assert {case.values["contains"] for case in translation.cases} == {"x"}
    assert (translation.head, translation.iterations) == ({"name": "Greetings"}, 3)
    assert [text.partition(",")[0] for text in translation.left_out] == ["the setting sharing", "providers"]
