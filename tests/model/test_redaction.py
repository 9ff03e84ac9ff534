from __future__ import annotations

import os
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.redaction import _SHAPES, _compiled, child_environment, redacted, redacted_bytes, tokens_hidden

TOKEN = "00D000000000001!AQ4.secret_token"  # noqa: S105 - of no org


# Of no service: examples of documentation, or made up.
SECRETS: Final = (
    "sk-proj-0123456789abcdef_secret",
    "sk-ant-api03-Qx7ZpLmN4tRsVwYb-AbCdEfGhIj",
    "sk-or-v1-0123456789abcdef0123456789abcdef",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "gho_16C7e42F292c6912E7710c838347Ae178B4a",
    "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghijkl_MNOPQRSTUVWXYZ0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy",
    "xoxp-1234567890-abcdef",
    "xapp-1-A0123456789-abcdef",
    "glpat-ABCdef0123456789_xyz",
    "glrt-ABCdef0123456789_xyz",
    "AIzaSyDdI0hCZtE6vySjMm-WEfRq3CPzqKqqsHI",
    "ya29.a0AfH6SMBx0123456789abcdef",
    "GOCSPX-0123456789abcdefghij",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2VjcmV0",
    "eyJhbGciOi.eyJzdWIi.c2VjcmV0",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQ\nabc\n-----END PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\\nMIIE\\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn",
    "00D000000000001!AQ4.secret_token",
    "00D000000000001%21AQ4.secret",
    "5Aep861secretsecret",
    "force://PlatformCLI::secret@example.my.salesforce.com",
    "Bearer secretsecretsecret1",
    "basic c2VjcmV0OnNlY3JldA==",
    "OAuth 00Dx0000000BV7zAR8",
    "00D000000000001EAA!AQ4.secret",
    "force:/PlatformCLI::secret@example.my.salesforce.com",
    "Bearer secretsecretsecretsecretsecretsecret",
    "Bearer c2VjcmV0c2VjcmV0",
    "dapi0123456789abcdef0123456789abcdef",
    "dapi0123456789abcdef0123456789abcdef-2",
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "npm_0123456789abcdefghijABCDEFGHIJ012345",
)
# What is before a value, or after it, stays.
VALUES: Final = {
    "password=hunter2": "password=[secret]",
    "PASSWORD='correct horse'": "PASSWORD='[secret] horse'",
    '{"password": "hunter2"}': '{"password": "[secret]"}',
    "connect(user='ada', password='hunter2')": "connect(user='ada', password='[secret]')",
    "DB_PASSWORD=hunter2 x": "DB_PASSWORD=[secret] x",
    "client_secret=abc123def&x=1": "client_secret=[secret]&x=1",
    "?api_key=abcd1234&q=x": "?api_key=[secret]&q=x",
    "Authorization: Bearer abc123": "Authorization: [secret]",
    "authorization: Basic dXNlcjpwYXNz": "authorization: [secret]",
    "'Authorization': 'Token 0a1b2c3d'": "'Authorization': '[secret]'",
    "X-Api-Key: 0123abcd4567": "X-Api-Key: [secret]",
    "postgres://ada:hunter2@db/x": "postgres://ada:[secret]@db/x",
    "https://:tok3n@host/x": "https://:[secret]@host/x",
    "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG": "aws_secret_access_key=[secret]",
    "Server=db;Password=hunter2;Port=1": "Server=db;Password=[secret];Port=1",
    r"{\"password\": \"hunter8secret\"}": r"{\"password\": \"[secret]\"}",
    r"{\\\"token\\\":\\\"hunter8\\\\n\\\", 1}": r"{\\\"token\\\":\\\"[secret]\\\", 1}",
    r"body: \"password=hunter8secret\"": r"body: \"password=[secret]\"",
    r"{\"Authorization\": \"Basic dXNlcjpwYXNz\"}": r"{\"Authorization\": \"[secret]\"}",
    "Password: hunter5secret": "Password: [secret]",
    "the token: hunter25secret, and more": "the token: [secret], and more",
    'db_password: "hunter5secret"': 'db_password: "[secret]"',
    "password:hunter5": "password:[secret]",
    "Cookie: session=abcdef; theme=dark\nHost: x": "Cookie: [secret]\nHost: x",
    "Set-Cookie: sid=0a1b2c; Path=/; HttpOnly": "Set-Cookie: [secret]; HttpOnly",
    "{'cookie': 'session=abcdef'}": "{'cookie': '[secret]'}",
    "Name=ada;AccountKey=Zm9vYmFy0a/b+c==;Suffix=x": "Name=ada;AccountKey=[secret];Suffix=x",
    "https://x/f?sig=a1b2%2Bc3d4%3D&se=2": "https://x/f?sig=[secret]&se=2",
    "https://x/f?sv=2022-11-02&sig=a1b2%2Bc3d4%3D": "https://x/f?sv=2022-11-02&sig=[secret]",
    "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX x": "https://hooks.slack.com/services/[secret] x",
    "login --password hunter2 --port 80": "login --password [secret] --port 80",
    "login --token abcDef0123": "login --token [secret]",
    "['login', '--client-secret', 'hunter2']": "['login', '--client-secret', '[secret]']",
    "<password>correct horse</password>": "<password>[secret]</password>",
    '<n:accessToken type="x">abcdef</n:accessToken>': '<n:accessToken type="x">[secret]</n:accessToken>',
    "/login?next=%2Fa%3Fpassword%3Dhunter2%26x%3D1": "/login?next=%2Fa%3Fpassword%3D[secret]%26x%3D1",
    "a%26token%253Dhunter2%2526x": "a%26token%253D[secret]%2526x",
}
ORDINARY: Final = (
    "0XxWt000000123",
    "0XxWt0000001234AAA",
    "org 00D000000000001EAA, run 4KB000000000001GAA",
    "task-force",
    "a task-management-of-some-kind, part SK-10045",
    "sk-learn",
    "sk-learn-based-pipeline-for-classification",
    "sk-learn-version-2-based-model",
    "It has the form force://CLIENT:SECRET:REFRESH@INSTANCE.",
    "a basic test, the bearer of news",
    "basic internationalization",
    "the bearer understandsthismatter",
    "https://desk.example/services/Soap/m/66.0",
    "max_tokens=256",
    "tokens=1200",
    "password=None",
    "def connect(password=None):",
    "password=self.password",
    "password=os.environ['X']",
    "token=get_token()",
    "secret=True",
    "the password is wrong",
    "Forgot password? Reset it.",
    "password: must have at least 8 characters",
    "Authorization: required for all calls",
    "no Authorization header",
    "Authorization: documentation",
    "asia is a continent",
    "ASIA PACIFIC",
    "AKIA",
    "ghp_short",
    "github_pattern_matching",
    "xoxo, Ada",
    "glpat-",
    "AIza",
    "eyJ",
    "eyJ.a",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----",
    "primary_key=order_id()",
    "key=value",
    "keys=abcdef",
    "monkey=banana",
    "http://localhost:8080/a@b",
    "http://host:8080",
    "ada@example.com: hello",
    "mailto:ada@example.com",
    "12:30@noon",
    "order 10045-2231-99",
    "uuid 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "passport=AB123456",
    "compass=north-west",
    "tokenizer=bert-base-uncased",
    "secretary=Ada Lovelace",
    "Basic understanding of OAuth 2.0 flows",
    "bypass=yes-please",
    "global-warming-and-its-consequences",
    "risk-adjusted-returns-2024-v2-final",
    "disk-usage-report-2024-01-31-server1",
    "the token = the unit",
    "pwd=/home",
    "ya29",
    "C:\\key=abc",
    "desk-force-one-two-three-four-five-6a",
    r"{\"password\": \"\", \"tokens\": \"12\"}",
    r"{\"password\": null}",
    "token: the word",
    "token: 4096",
    "token: 12:30",
    "Token: sha256",
    "Unexpected token: item_2",
    "password: at least 8 characters",
    "def connect(password: str, token: int64 = 0):",
    "see token: https://docs.example/v2",
    "pwd: /home/ada1",
    "http://token:8080/path1",
    "arn:aws:secretsmanager:us-east-1:1234:secret:desk-1",
    "Cookie: required for all calls",
    "no cookie: log in again",
    "cookies=2",
    "dapi, dapi0123, dapifyabcdef",
    "hf_hub_download_of_a_model_with_a_long_name",
    "hf_model",
    "npm_config_registry, npm_lifecycle_event_of_a_package_with_a_name",
    "AccountKey=None",
    "the AccountKey = of an account",
    "account_key=customer_id",
    "?sig=none&x=1",
    "design=abcdef0123456789",
    "https://hooks.slack.com/services/",
    "https://hooks.slack.com/services/T.../B.../X...",
    "use --password to log in",
    "--token is required",
    "--token TOKEN",
    "--token $TOKEN_1",
    "--password --port 8080",
    "--max-token 4096",
    "--max-tokens 128000",
    "<password></password>",
    "<password>None</password>",
    "<passwordPolicy>strict</passwordPolicy>",
    "evalmeta login <password>",
    "password%3DNone",
    "q%3Dpassword%26tokens%3D1234",
)
# Texts in which a pattern could look at the same characters again and again.
REPEATED: Final = (
    *(
        "eyJ",
        "eyJa.",
        "-----BEGIN PRIVATE KEY-----",
        "password=",
        "sk-a-",
        "sk-a",
        "://a:",
        "a.-",
        "Bearer a",
        "bearer ",
    ),
    *(
        "password:",
        "password: ",
        "token: a",
        "cookie: a=b; ",
        "cookie:",
        "a=;cookie: ",
        "--",
        " --a-",
        " --token ",
        "<a",
    ),
    *("<password>", "<password ", "<password>a<", '\\"password\\": \\"', "password=\\", "password%3D", "%3Dtoken%26"),
    *("hooks.slack.com/services/a/", "&sig=", "&sig=a", "AccountKey=", "AccountKey=a", "dapi0", "hf_", "hf_a", "npm_a"),
    *("authorization: ", "00D", "ghp_", "force:/", 'secret="a"=token', "xoxb-", "oauth basic ", "secret  "),
)


@pytest.mark.parametrize("secret", SECRETS)
def test_what_has_the_shape_of_a_secret_is_hidden(secret: str) -> None:
    assert redacted(f"before {secret} after") == f"before [secret]{' after' * (secret[-6:] != 'b3Blbn')}"


@pytest.mark.parametrize("text", VALUES)
def test_the_value_of_a_secret_is_hidden_and_its_name_is_not(text: str) -> None:
    assert redacted(text) == VALUES[text]
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize("text", ORDINARY)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize("piece", REPEATED)
def test_long_texts_take_linear_time(piece: str) -> None:
    assert redacted(piece * (1_000_000 // len(piece)))


def test_each_shape_has_an_example() -> None:
    texts = (*SECRETS, *VALUES)
    unused = [
        pattern for signs, pattern in _SHAPES if not any(_compiled(pattern).search(text) for text in texts) or not signs
    ]
    assert unused == []


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
