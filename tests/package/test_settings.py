from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalmeta.engine.subjects.python import PythonSubject
from evalmeta.errors import SettingsError
from evalmeta.model.entry_points import ENTRY_POINTS
from evalmeta.model.evaluation import Case, Evaluation, today
from evalmeta.model.settings import Settings
from evalmeta.package.settings import load_settings

LATEST = today() + timedelta(days=366)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "evalmeta.toml"


def refusal(file: Path, text: str) -> str:
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(file)
    return str(caught.value).replace(f"{file.parent}/", "")


def test_an_empty_file_gives_the_defaults(file: Path) -> None:
    file.touch()
    assert load_settings(file) == Settings()


def test_every_table_is_read(file: Path) -> None:
    file.write_text(
        '[validate]\nprofile = "orgs"\nrules = {history-order = "off"}\n[run]\nconfidence = 0.9\n'
        '[subjects.A]\nadapter = "python"\ntarget = "agent:answer"\n'
    )
    loaded = load_settings(file)
    assert (loaded.validate_.profile, loaded.validate_.rules) == ("orgs", {"history-order": "off"})
    assert loaded.run.min_pass_rate == 0.9
    assert loaded.subjects["A"] == PythonSubject(adapter="python", target="agent:answer")


def test_a_missing_file_is_an_error(file: Path) -> None:
    with pytest.raises(SettingsError, match="the file does not exist"):
        load_settings(file)


def test_invalid_toml_is_reported_with_line_and_column(file: Path) -> None:
    assert refusal(file, "[run]\nconcurrency = = 4\n") == "evalmeta.toml:2:15: this is not valid TOML: Invalid value."


def test_truncated_toml_is_reported_with_its_last_line(file: Path) -> None:
    assert refusal(file, "[run]\nx = ").startswith("evalmeta.toml:2: this is not valid TOML")


def test_excessive_nesting_is_an_error(file: Path) -> None:
    assert "nested too deeply" in refusal(file, "x = " + "[" * 100_000)


def test_an_unknown_key_names_its_line_and_the_nearest_known_key(file: Path) -> None:
    message = refusal(file, "[run]\niterations = 2\nconcurency = 4\n")
    assert message.startswith("evalmeta.toml:3:1: run.concurency is not a valid key. Did you mean concurrency?")
    assert "Known: concurrency, case_timeout, iterations" in message


def test_an_unknown_table_names_the_nearest_known_one(file: Path) -> None:
    assert "evalmeta.toml:1:2: vaildate is not a valid key. Did you mean validate?" in refusal(file, "[vaildate]\n")


def test_an_unknown_key_without_similar_ones_lists_the_valid_keys(file: Path) -> None:
    assert "Known: validate, run, score, org, adk, databricks, redact, store, subjects, raters, prices" in refusal(
        file, "zzz = 1\n"
    )


def test_a_value_out_of_range_says_what_is_allowed(file: Path) -> None:
    message = refusal(file, "[run]\nconcurrency = 0\n")
    assert message == "evalmeta.toml:2:1: run.concurrency must be greater than or equal to 1, not 0."


@pytest.mark.parametrize(
    "setting",
    [
        *("run.min_pass_rate", "run.min_decided", "run.case_timeout", "run.rate_limit", "score.threshold"),
        *("raters.r.temperature", "raters.r.timeout", "raters.r.choices.good"),
    ],
)
@pytest.mark.parametrize("number", ["nan", "inf"])
def test_a_number_that_is_not_finite_is_out_of_range(file: Path, setting: str, number: str) -> None:
    rater = '[raters.r]\nadapter = "llm"\nmodel = "m"\n'
    table, _, key = setting.rpartition(".")
    text = f"{rater}{key} = {number}\n" if table == "raters.r" else f"{rater}[{table}]\n{key} = {number}\n"
    assert f"{setting} must be " in refusal(file, text)


def test_a_rule_setting_lists_the_allowed_values(file: Path) -> None:
    message = refusal(file, '[validate.rules]\nhistory-order = "ignore"\n')
    assert message.startswith(
        "evalmeta.toml:2:1: validate.rules.history-order must be 'error', 'warning' or 'off', not 'ig"
    )


def test_a_subject_is_named_by_its_keys_alone(file: Path) -> None:
    message = refusal(file, '[subjects.My_Agent]\nadapter = "python"\ntarget = "no target"\n')
    assert message.startswith("evalmeta.toml:3:1: subjects.My_Agent.target must be module:name, not ")


def test_a_subject_key_has_the_nearest_key_of_its_adapter(file: Path) -> None:
    message = refusal(file, '[subjects.A]\nadapter = "replay"\nfile = "r.json"\nfle = "x"\n')
    assert message.startswith("evalmeta.toml:4:1: subjects.A.fle is not a valid key. Did you mean file?")


def test_a_missing_key_points_at_its_table(file: Path) -> None:
    message = refusal(file, '[run]\n[subjects.A]\nadapter = "python"\n')
    assert message == "evalmeta.toml:2:11: subjects.A.target is missing. Add target = ..."


def test_a_subject_without_adapter_says_so(file: Path) -> None:
    known = ", ".join(ENTRY_POINTS["subjects"])
    assert refusal(file, "[subjects.A]\n") == (
        f"evalmeta.toml:1:11: subjects.A has no adapter. Add adapter = ... Known: {known}."
    )


def test_an_unknown_adapter_lists_the_known_ones(file: Path) -> None:
    assert "Did you mean python? Known: python, replay," in refusal(file, '[subjects.A]\nadapter = "pyton"\n')


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('iterations = "3"', "run.iterations must be a whole number, not '3'. Write iterations = 3, without quotes."),
        ("iterations = 1.5", "run.iterations must be a whole number, not 1.5."),
        ("concurrency = true", "run.concurrency must be a whole number, not true."),
        ('min_pass_rate = "high"', "run.min_pass_rate must be a number, not 'high'."),
    ],
)
def test_a_text_is_not_a_number(file: Path, line: str, message: str) -> None:
    assert refusal(file, f"[run]\n{line}\n") == f"evalmeta.toml:2:1: {message}"


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ("my_agent.answer", "my_agent:answer"),
        ("agents.desk.answer", "agents.desk:answer"),
        ("src/my_agent.py:answer", "src.my_agent:answer"),
        ("my_agent", "my_agent:answer"),
        ("my agent", "my_agent:answer"),
    ],
)
def test_a_target_that_is_not_module_and_name_says_what_to_write(file: Path, target: str, written: str) -> None:
    message = refusal(file, f'[subjects.A]\nadapter = "python"\ntarget = "{target}"\n')
    assert message == (f"evalmeta.toml:3:1: subjects.A.target must be module:name, not '{target}'. Write {written}.")


def test_a_misspelt_key_adapter_is_found(file: Path) -> None:
    message = refusal(file, '[subjects.A]\nadaptor = "python"\n')
    assert message == "evalmeta.toml:2:1: subjects.A.adaptor is not a valid key. Did you mean adapter?"


def test_problems_are_sorted_by_line_and_a_misspelt_adapter_is_among_them(file: Path) -> None:
    file.write_text('[subjects.A]\nadapter = "pyton"\n[tags]\nslow = 1\n[run]\niterations = "2"\nretry = 1\n')
    with pytest.raises(SettingsError) as caught:
        load_settings(file)
    assert [(problem.location.line, problem.location.column) for problem in caught.value.problems] == [
        (2, 1),
        (4, 1),
        (6, 1),
        (7, 1),
    ]
    assert {problem.code for problem in caught.value.problems} == {"settings-invalid"}


def test_every_finding_has_its_own_line(file: Path) -> None:
    assert refusal(file, "[run]\nconcurrency = 0\niterations = 0\n").count("\n") == 1


def test_text_that_only_mentions_a_key_is_not_its_line(file: Path) -> None:
    message = refusal(
        file, '# concurrency = 0\n[subjects.A]\nadapter = """\nconcurrency = 0"""\n[run]\nconcurrency = 0\n'
    )
    assert "evalmeta.toml:6:1: run.concurrency" in message


def test_a_value_over_several_lines_has_no_known_line(file: Path) -> None:
    assert refusal(file, "[run]\nconcurrency = [\n1]\n").startswith(
        "evalmeta.toml: run.concurrency must be a whole number, not a list."
    )


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text() | st.from_regex(r"(\[(run|validate|subjects\.A)\]\n(\w+ = [\w.\"\[\]]*\n)*)*", fullmatch=True))
def test_any_text_gives_settings_or_a_settings_error(file: Path, text: str) -> None:
    file.write_bytes(text.encode())
    try:
        assert isinstance(load_settings(file), Settings)
    except SettingsError as error:
        assert str(error).startswith(str(file))  # noqa: PT017 - either outcome is right


def test_tags_name_the_cases_of_a_test_by_the_names_that_it_has(file: Path) -> None:
    lists = '["Desk:1-2", "Desk:2,4"]', '["AiEvaluationDefinition:Desk"]', '["desk.yaml:3", "desk", "1", "Desk:0x"]'
    file.write_text("[tags]\n" + "\n".join(f"tag{place} = {listed}" for place, listed in enumerate(lists)))
    settings = load_settings(file)
    assert settings.tags_of("Desk", "AiEvaluationDefinition") == {"tag0": {1, 2, 4}, "tag1": None}
    assert settings.tags_of("tests/desk.yaml", "AiEvaluationDefinition") == {"tag2": None}
    assert settings.tags_of("Other", "AiEvaluationDefinition") == {}
    tested = Evaluation("Desk", "", (), listed_tags={"a": frozenset({1}), "b": None, "own": None})
    assert tested.tags_of(Case(1, (), tags=("own",))) == ("own", "a", "b")
    assert tested.tags_of(Case(2, ())) == ("b", "own")


def test_a_quarantine_names_test_case_reason_and_last_day(file: Path) -> None:
    file.write_text('[[quarantine]]\ntest = "Desk"\ncase = 3\nreason = "flaky"\nuntil = 2026-01-31\n')
    [entry] = load_settings(file).quarantine
    assert (entry.test, entry.case, entry.reason, entry.until) == ("Desk", 3, "flaky", date(2026, 1, 31))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('case = 3\nreason = "flaky"', "1:3: quarantine[0].until is missing. Add until = ..."),
        ("case = 3\nuntil = 2026-01-31", "1:3: quarantine[0].reason is missing. Add reason = ..."),
        ('case = 3\nreason = " "\nuntil = 2026-01-31', "4:1: quarantine[0].reason is empty."),
        ('case = 3\nreason = "flaky"\nuntil = "soon"', "5:1: quarantine[0].until must be a day, such as 2027-01-31."),
        (
            'case = 3\nreason = "flaky"\nuntil = 9999-01-31',
            f"5:1: quarantine[0].until 9999-01-31 is more than 366 days away; the latest is {LATEST}.",
        ),
        (
            'case = 0\nreason = "flaky"\nuntil = 2026-01-31',
            "3:1: quarantine[0].case must be the number of a case, its utterance or its label.",
        ),
        (
            'case = 3\nreason = "flaky"\nuntill = 2026-01-31\nuntil = 2026-01-31',
            "5:1: quarantine[0].untill is not a valid key. Did you mean until? Known: test, case, reason, until.",
        ),
    ],
)
def test_a_quarantine_without_reason_or_near_end_is_an_error(file: Path, lines: str, message: str) -> None:
    assert refusal(file, f'[[quarantine]]\ntest = "Desk"\n{lines}\n') == f"evalmeta.toml:{message}"


def test_tables_of_adapters_have_lists_and_paths(file: Path) -> None:
    file.write_text(
        '[subjects.A]\nadapter = "command"\ncommand = ["node", "a.js"]\n'
        '[subjects.B]\nadapter = "replay"\nfile = "b.json"\n'
    )
    subjects = load_settings(file).subjects.values()
    assert [agent.model_dump(exclude={"adapter", "environment"}) for agent in subjects] == [
        {"command": ("node", "a.js"), "model": "", "traces": False},
        {"file": Path("b.json")},
    ]
    assert refusal(file, '[subjects.A]\nadapter = "command"\ncommand = "node"\n').startswith(
        "evalmeta.toml:3:1: subjects.A.command must be a list"
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mysql://me:hunter2@db/evals", "must be the URL of a store, but begins with 'mysql:'"),
        (
            "postgresql://me:hunter2@db/evals",
            "must have no password: set PGPASSWORD or EVALMETA_STORE, or use ~/.pgpass",
        ),
    ],
)
def test_the_url_of_a_store_is_checked_and_not_shown(file: Path, url: str, reason: str) -> None:
    said = refusal(file, f"[store]\nurl = '{url}'\n")
    assert f"evalmeta.toml:2:1: store.url {reason}" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("(", "must be a regular expression: missing )"), ("x*", "must not match the empty text"), ("", "must not match")],
)
def test_a_pattern_of_redaction_that_cannot_be_used_is_refused(file: Path, pattern: str, reason: str) -> None:
    assert f"evalmeta.toml:2:1: redact.patterns[0] {reason}" in refusal(file, f"[redact]\npatterns = ['{pattern}']\n")
