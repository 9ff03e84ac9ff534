"""The reference of the Python API, from docstrings, and of evalmeta.toml, from the models of its settings."""

from __future__ import annotations

import inspect
import json
import re
from importlib import import_module
from typing import TYPE_CHECKING

from evalmeta.model import settings
from evalmeta.model.entry_points import ENTRY_POINTS
from evalmeta.model.run_options import RunOptions, Scoring

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel

MODULES = ("evalmeta", "evalmeta.adk", "evalmeta.ballerina", "evalmeta.databricks", "evalmeta.mlflow.genai")
RETURNED = (
    "evalmeta.api.runs.finished:FinishedRun",
    "evalmeta.api.runs.finished:FinishedRuns",
    "evalmeta.model.run:Run",
    "evalmeta.model.run:CaseResult",
    "evalmeta.model.run:TestResult",
    "evalmeta.model.run:Summary",
    "evalmeta.model.run:Verdict",
    "evalmeta.model.definition:HistoryMessage",
    "evalmeta.model.definition:Parameter",
    "evalmeta.model.definition:PromptInput",
    "evalmeta.engine.interfaces:Rubric",
    "evalmeta.engine.interfaces:Rating",
)
HEADINGS = {"Args": "Parameters", "Attributes": "Attributes", "Raises": "Raises", "Returns": "Returns"}
SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):\n((?:(?: {4}.*)?\n?)+)", re.MULTILINE)
ITEM = re.compile(r"^ {4}(\*{0,2}\w+): ", re.MULTILINE)
LINE = 100


def describe_api() -> Iterator[str]:
    """Yield the Markdown about the public names of each module, and about what they return."""
    for name in MODULES:
        module = import_module(name)
        yield f"## {name}\n\n"
        public = [(known, getattr(module, known)) for known in module.__all__]
        for title, wanted in (("Functions", inspect.isfunction), ("Classes", inspect.isclass)):
            links = [f"[`{known}`](#{_anchor(name, known)})" for known, thing in public if wanted(thing)]
            if links:
                yield f"**{title}:** {', '.join(links)}\n\n"
        for known, thing in public:
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield from _describe(f"{name}.{known}", thing)
    uses = "The functions return these objects, pass them to your functions, or take them as parts of others."
    yield f"## Returned objects\n\n{uses}\n\n"
    for path in RETURNED:
        module_name, _, returned = path.partition(":")
        yield from _describe(f"{module_name}.{returned}", getattr(import_module(module_name), returned))


def _anchor(module: str, name: str) -> str:
    return f"{module}.{name}".lower().replace(".", "")


def _describe(name: str, thing: object) -> Iterator[str]:
    yield f"### {name}\n\n```python\n{_signature(name.rpartition('.')[2], thing)}\n```\n\n{_prose(thing)}"
    methods = list(_methods(thing)) if inspect.isclass(thing) else []
    if methods:
        yield "**Methods and properties**\n\n"
        yield "".join(f"- `{call}`: {text}\n" for call, text in methods) + "\n"


def _signature(name: str, thing: object) -> str:
    if inspect.isclass(thing) and not hasattr(thing, "__dataclass_fields__") and "__init__" not in vars(thing):
        return f"class {name}"
    word = "class" if inspect.isclass(thing) else "async def" if inspect.iscoroutinefunction(thing) else "def"
    signature = inspect.signature(thing)  # type: ignore[arg-type]
    parameters = [_parameter(parameter) for parameter in _with_star(signature)]
    result = "" if word == "class" else f" -> {signature.return_annotation}"
    line = f"{word} {name}({', '.join(parameters)}){result}"
    if len(line) <= LINE:
        return line
    return f"{word} {name}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){result}"


def _with_star(signature: inspect.Signature) -> Iterator[inspect.Parameter | str]:
    starred = False
    for parameter in signature.parameters.values():
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        yield parameter


def _parameter(parameter: inspect.Parameter | str) -> str:
    if isinstance(parameter, str) or parameter.default is parameter.empty:
        return str(parameter).replace("'", "")
    default = repr(parameter.default)
    shown = default if len(default) < 40 and "<" not in default else "..."  # noqa: PLR2004 - longer than a value
    return f"{parameter.name}: {parameter.annotation} = {shown}"


def _methods(thing: type) -> Iterator[tuple[str, str]]:
    for name, member in vars(thing).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        parameters = [_parameter(one) for one in _with_star(inspect.signature(function)) if str(one) not in "self, cls"]
        yield name if isinstance(member, property) else f"{name}({', '.join(parameters)})", _first_line(function)


def _first_line(function: object) -> str:
    return " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())


def _prose(thing: object) -> str:
    """Return a docstring in Google's style as Markdown."""
    text = inspect.getdoc(thing) or ""
    parts = SECTION.split(text + "\n")
    prose = parts[0].strip() + "\n\n"
    for title, body in zip(parts[1::3], parts[2::3], strict=True):
        prose += f"**{HEADINGS[title]}**\n\n{_items(body)}\n"
    return prose


def _items(body: str) -> str:
    names = ITEM.split(body)
    if len(names) == 1:
        return f"{_flat(body)}\n"
    return "".join(f"- `{name}`: {_flat(text)}\n" for name, text in zip(names[1::2], names[2::2], strict=True))


def _flat(text: str) -> str:
    return " ".join(text.split())


def attributes(thing: object) -> dict[str, str]:
    """Return what the docstring of a class says about each attribute."""
    body = dict(zip(*[iter(SECTION.split((inspect.getdoc(thing) or "") + "\n")[1:])] * 2, strict=False))
    names = ITEM.split(body.get("Attributes", ""))
    return {name: _flat(text) for name, text in zip(names[1::2], names[2::2], strict=True)}


TABLES: tuple[tuple[str, type[BaseModel], object], ...] = (
    ("`[validate]`", settings.ValidateSettings, None),
    ("`[run]`", settings.RunSettings, RunOptions),
    ("`[score]`", settings.ScoreSettings, Scoring),
    ("`[org]`", settings.OrgSettings, None),
    ("`[adk]`", settings.AdkSettings, settings.AdkSettings),
    ("`[databricks]`", settings.DatabricksSettings, None),
    ("`[redact]`", settings.RedactSettings, settings.RedactSettings),
    ("`[store]`", settings.StoreSettings, settings.StoreSettings),
    ('`[prices."MODEL"]`', settings.PriceSettings, settings.PriceSettings),
    ("`[[quarantine]]`", settings.QuarantineSettings, settings.QuarantineSettings),
    *(
        (f'`[subjects.NAME]` with `adapter = "{name}"`', settings.subject_adapter(name), None)
        for name in ENTRY_POINTS["subjects"]
    ),
    *(
        (f'`[raters.NAME]` with `adapter = "{name}"`', settings.rater_adapter(name), None)
        for name in ENTRY_POINTS["rater_settings"]
    ),
)


def describe_adapters() -> Iterator[str]:
    """Yield the Markdown table of the adapters for agents, whose sections have their names."""
    yield "| adapter | the agent is |\n|---|---|\n"
    yield from (
        f"| [{name}](#{name}) | {settings.subject_adapter(name).agent} |\n" for name in ENTRY_POINTS["subjects"]
    )
    yield "| another name | added by an [installed package](#adapters-of-packages) |\n"


def describe_settings() -> Iterator[str]:
    """Yield the Markdown about every table of evalmeta.toml."""
    for title, model, documented in TABLES:
        schema = model.model_json_schema()
        texts = {name: re.sub(r"\bNone\b", "unset", text).rstrip(".") for name, text in attributes(documented).items()}
        prose = SECTION.sub("", (inspect.getdoc(model) or "") + "\n").strip()
        head, line = ("| meaning |", "---|") if texts else ("|", "")
        yield f"## {title}\n\n{prose}\n\n| key | value | default {head}\n|---|---|---|{line}\n"
        for key, field in schema["properties"].items():
            if key != "adapter":
                meaning = f" {texts.get(key, '')} |" if texts else ""
                yield f"| `{key}` | {_value(field, schema)} | {_default(schema, key, field)} |{meaning}\n"
        yield "\n"


def _default(schema: Mapping[str, object], key: str, field: Mapping[str, object]) -> str:
    if key in schema.get("required", ()):
        return "required"
    default = field.get("default")
    return "unset" if default in (None, "", [], {}) else f"`{json.dumps(default)}`"


def _value(field: Mapping[str, object], schema: Mapping[str, object]) -> str:
    if "anyOf" in field:
        return " or ".join(_value(choice, schema) for choice in field["anyOf"] if choice.get("type") != "null")
    if "enum" in field:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in field["enum"])
    if field.get("format") in {"path", "date"}:
        return str(field["format"])
    kind = field.get("type", "any value")
    if kind == "array":
        return f"list of {_plural(field['items'], schema)}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"table of {_plural(field['additionalProperties'], schema)}"
    return {"boolean": "`true` or `false`", "object": "table"}.get(kind, kind + _range(field))


def _plural(field: Mapping[str, object], schema: Mapping[str, object]) -> str:
    value = _value(field, schema)
    kind, _, rest = value.partition(",")
    return value if "`" in value or " " in kind else f"{kind}s" + (f",{rest}" if rest else "")


def _range(field: Mapping[str, object]) -> str:
    low = field.get("minimum", field.get("exclusiveMinimum"))
    high = field.get("maximum", field.get("exclusiveMaximum"))
    least = f"more than {low}" if "exclusiveMinimum" in field else f"at least {low}"
    parts = ([least] if low is not None else []) + ([f"at most {high:,g}"] if high is not None else [])
    return f", {', '.join(parts)}" if parts else ""
