from __future__ import annotations

import pytest

from evalmeta.api.endpoints import endpoint_settings
from evalmeta.errors import UsageError


@pytest.mark.parametrize(
    ("url", "adapter", "asked"),
    [
        ("http://127.0.0.1:8000", "openai", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1", "openai", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/chat/completions", "openai", "http://127.0.0.1:8000/v1/chat/completions"),
        ("http://127.0.0.1:8000/ask", "http", "http://127.0.0.1:8000/ask"),
    ],
)
def test_the_path_of_a_url_decides_how_the_agent_is_asked(url: str, adapter: str, asked: str) -> None:
    settings = endpoint_settings(url)
    assert (settings["adapter"], settings["url"]) == (adapter, asked)


def test_a_url_of_the_responses_api_is_asked_by_it() -> None:
    settings = endpoint_settings("http://127.0.0.1:8000/v1/responses", model="m")
    assert settings == {
        "adapter": "openai",
        "url": "http://127.0.0.1:8000/v1/responses",
        "model": "m",
        "api": "responses",
    }
    assert "api" not in endpoint_settings("http://127.0.0.1:8000/v1", model="m")


def test_a_url_with_a_model_is_an_endpoint_for_chat_completions() -> None:
    settings = endpoint_settings("https://host/ask", model="m", api_key_env="KEY")
    assert settings == {"adapter": "openai", "url": "https://host/ask", "model": "m", "api_key_env": "KEY"}


def test_only_the_host_of_openai_gets_its_key() -> None:
    assert endpoint_settings("https://api.openai.com/v1")["api_key_env"] == "OPENAI_API_KEY"
    assert "api_key_env" not in endpoint_settings("https://api.openai.com.example/v1")


@pytest.mark.parametrize("url", ["http://me:secret@host/v1", "ftp://host/v1", "http:///v1", "http://["])
def test_other_urls_are_refused_and_no_password_is_shown(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        endpoint_settings(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("query", ["api_key=secret", "v=1&api-key=secret", "Token=secret", "key=secret"])
def test_a_key_in_the_query_is_refused_because_reports_would_show_it(query: str) -> None:
    with pytest.raises(UsageError, match="contains a password or a key") as refused:
        endpoint_settings(f"http://host/v1?{query}")
    assert "secret" not in str(refused.value)
    assert endpoint_settings("http://host/v1?api-version=2")["url"] == "http://host/v1?api-version=2"


def test_a_model_needs_a_url() -> None:
    with pytest.raises(UsageError, match="--model needs a URL"):
        endpoint_settings("desk:answer", model="m")


def test_an_adapter_before_a_url_names_an_agent_of_the_adapter() -> None:
    settings = endpoint_settings("a2a:http://127.0.0.1:9999/desk", api_key_env="KEY")
    assert settings == {"adapter": "a2a", "url": "http://127.0.0.1:9999/desk", "api_key_env": "KEY"}


@pytest.mark.parametrize(
    ("url", "options", "why"),
    [
        ("a2a:http://127.0.0.1", {"model": "m"}, "--model is for URLs of endpoints, not for the adapter a2a"),
        ("a2a:ftp://127.0.0.1", {}, "is not a valid URL"),
        ("a2a:http://me:secret@host", {}, "a password or a key"),
        ("a2a:http://127.0.0.1", {"api_key_env": "sk-1"}, "is not a valid name"),
        ("command:http://127.0.0.1", {}, "is not a valid URL"),
    ],
)
def test_other_names_of_adapters_and_other_options_are_refused(url: str, options: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        endpoint_settings(url, **options)  # type: ignore[arg-type] # all are texts
