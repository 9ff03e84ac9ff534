from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.redaction import child_environment, redacted, redacted_bytes, tokens_hidden

TOKEN = "00D000000000001!AQ4.secret_token"  # noqa: S105 - of no org


@pytest.mark.parametrize(
    "secret",
    [
        TOKEN,
        "00D000000000001EAA!AQ4.secret",
        "00D000000000001%21AQ4.secret",
        "eyJhbGciOi.eyJzdWIi.c2VjcmV0",
        "5Aep861secretsecret",
        "force://PlatformCLI::secret@example.my.salesforce.com",
        "force:/PlatformCLI::secret@example.my.salesforce.com",
        "sk-proj-0123456789abcdef_secret",
        "Bearer secretsecretsecret",
        "basic c2VjcmV0OnNlY3JldA==",
    ],
)
def test_what_has_the_shape_of_a_secret_is_hidden(secret: str) -> None:
    assert redacted(f"before {secret} after") == "before [secret] after"


@pytest.mark.parametrize(
    "text",
    [
        "org 00D000000000001EAA, run 4KB000000000001GAA",
        "It has the form force://CLIENT:SECRET:REFRESH@INSTANCE.",
        "a task-management-of-some-kind, part SK-10045",
        "a basic test, the bearer of news",
        "https://desk.example/services/Soap/m/66.0",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert redacted(text) == text


@given(st.text(), st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12), st.text())
def test_a_known_secret_is_hidden_at_any_position(before: str, secret: str, after: str) -> None:
    hidden = redacted_bytes(f"{before}{secret}{after}".encode(errors="replace"), [secret])
    assert secret.encode() not in hidden
    assert b"[secret]" in hidden


def test_a_known_secret_is_found_percent_encoded() -> None:
    assert redacted_bytes(b"?sid=00D000000000001%21AQ4.secret_token&x", [TOKEN]) == b"?sid=[secret]&x"


def test_what_is_too_short_for_a_secret_is_left_in_texts() -> None:
    assert redacted_bytes(b"an answer", ["", "a"]) == b"an answer"


def test_children_inherit_all_but_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"OPENAI_API_KEY": "the agent's own", "SF_TARGET_ORG": "dev", "ELSEWHERE": TOKEN}
    gone = {"SF_ACCESS_TOKEN": "x", "EVALMETA_CLIENT_SECRET": "x", "SFDX_AUTH_URL": "force://a:b:c@d"}
    for name, value in (kept | gone).items():
        monkeypatch.setenv(name, value)
    environment = child_environment(EVALMETA_HOME="there")
    assert environment == {name: value for name, value in os.environ.items() if name not in gone} | {
        "EVALMETA_HOME": "there"
    }


def test_a_token_in_place_of_an_alias_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SF_TARGET_ORG", TOKEN)
    assert "SF_TARGET_ORG" not in child_environment()


def test_tokens_are_hidden_from_agents_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SF_ACCESS_TOKEN", TOKEN)
    monkeypatch.setenv("OPENAI_API_KEY", "the agent's own")
    with tokens_hidden():
        assert ("SF_ACCESS_TOKEN" in os.environ, "OPENAI_API_KEY" in os.environ) == (False, True)
    assert os.environ["SF_ACCESS_TOKEN"] == TOKEN
