"""Endpoints that a URL names without settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

from evalmeta.errors import UsageError
from evalmeta.model.redaction import is_secret_name
from evalmeta.model.settings import subject_adapter
from evalmeta.protocol.json_fields import host_of

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject

_OPENAI_HOST: Final = "api.openai.com"
_OPENAI_MODEL: Final = "gpt-4.1-mini"
_OPENAI_PATH: Final = re.compile(r"/?|.*/v\d+\w*/?|.*/chat/completions/?|.*/responses/?")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*")


def is_url(text: str | None) -> bool:
    """Return whether a text is meant as a URL."""
    return text is not None and "://" in text


def endpoint_settings(url: str | None, *, model: str | None = None, api_key_env: str | None = None) -> JsonObject:
    """Return the settings of the agent at a URL, empty if the text is not a URL.

    `ADAPTER:URL` is an agent of that adapter, such as `a2a:https://agents.example.com`. A URL without a path, or one
    that ends in a version or in /chat/completions, is an endpoint for chat completions, and so is any URL with a model;
    one that ends in /responses is an endpoint for the Responses API. Others get `{"utterance": ...}` and must return
    `{"answer": ...}`.
    """
    if url is None or not is_url(url):
        if model is not None or api_key_env is not None:
            option = "--model" if model is not None else "--api-key-env"
            raise UsageError(f"{option} needs a URL: --agent http://127.0.0.1:8000/v1")
        return {}
    if settings := named_settings(url, api_key_env=api_key_env, option="--agent"):
        if model is not None:
            raise UsageError(f"--model is for URLs of endpoints, not for the adapter {settings['adapter']}")
        return {**settings}
    check_url(url, option="--agent")
    if api_key_env is not None:
        check_key_variable(api_key_env)
    if chat := chat_settings(url, model=model, api_key_env=api_key_env):
        return {"adapter": "openai", **chat}
    key: JsonObject = {"headers": {"Authorization": f"Bearer ${{{api_key_env}}}"}} if api_key_env else {}
    return {"adapter": "http", "url": url, **key}


def named_settings(text: str, *, api_key_env: str | None, option: str) -> dict[str, str]:
    """Return the settings of the agent that `ADAPTER:URL` names; empty for other texts, such as a URL alone."""
    name = named_adapter(text, "url")
    url = text.removeprefix(f"{name}:")
    if not name or not is_url(url):
        return {}
    check_url(url, option=f"{option} {name}:")
    if api_key_env:
        check_key_variable(api_key_env)
    return {"adapter": name, "url": url, **({"api_key_env": api_key_env} if api_key_env else {})}


def named_adapter(text: str, key: str) -> str:
    """Return the adapter in `ADAPTER:VALUE` whose agents the value of a key alone describes; empty for other texts."""
    name, colon, _ = text.partition(":")
    settings = subject_adapter(name) if colon else None
    return name if settings is not None and key in settings.named_by else ""


def chat_settings(url: str, *, model: str | None, api_key_env: str | None) -> dict[str, str]:
    """Return the settings of an endpoint for OpenAI's API; empty if the URL is probably of another kind."""
    path = urlsplit(url).path
    if not (model or _OPENAI_PATH.fullmatch(path)):
        return {}
    # The usual base URL of these servers ends in a version.
    base = url if path.strip("/") else f"{url.rstrip('/')}/v1"
    is_openai = host_of(base) == _OPENAI_HOST
    variable = api_key_env or ("OPENAI_API_KEY" if is_openai else "")
    keys = {"url": base, "model": model or (_OPENAI_MODEL if is_openai else "default")}
    if path.rstrip("/").endswith("/responses"):
        keys["api"] = "responses"
    return {**keys, "api_key_env": variable} if variable else keys


def check_key_variable(name: str) -> None:
    """Raise UsageError if a name is not that of an environment variable."""
    if not _VARIABLE.fullmatch(name):
        # It may be the key itself, so it is not shown.
        raise UsageError(
            "--api-key-env is not a valid name of an environment variable",
            actions=["Name the variable that has the key, not the key: --api-key-env OPENAI_API_KEY"],
        )


def check_url(url: str, *, option: str) -> None:
    """Raise UsageError if a URL is not valid, or contains a secret, which reports or settings would show."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        parts, is_valid = urlsplit(""), False
    if parts.username is not None or any(is_secret_name(name) for name, _ in parse_qsl(parts.query)):
        raise UsageError(
            "the URL of the agent contains a password or a key",
            actions=[f"Put the key into an environment variable, and name it: {option} URL --api-key-env NAME"],
        )
    if not is_valid:
        raise UsageError(
            f"{url!r} is not a valid URL of an agent", actions=[f"Write it like {option} http://127.0.0.1:8000/v1"]
        )
