"""The project's settings: `evalmeta.toml` as pydantic models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetPydanticSchema,
    JsonValue,
    Tag,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from evalmeta import limits
from evalmeta.model.quarantine import Quarantine, Quarantines, day_of, end_fault, names_of_test, parse_day
from evalmeta.model.run_options import RUN_OPTIONS, SCORING_OPTIONS, Option, RunOptions, Scoring

Profile = Literal["orgs", "documented"]
AdkDialect = Literal["auto", "python", "typescript"]
MissingData = Literal["undecided", "adk"]
RuleSetting = Literal["error", "warning", "off"]
VariableType = Literal["Text", "Number", "Boolean", "Date", "DateTime", "Money", "Ref", "Object", "List", "Json"]

Given: TypeAlias = Mapping[str, object]
"""Values that replace those of settings, by the names of the settings."""
_NOTHING: Final[Given] = {}
_TARGET = r"^[\w.]+:[\w.]+$"


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PythonSubject(_Table):
    """An agent that is a Python object: `target = "module:name"`, imported from the project's folder.

    `retry_on` lists the agent's transient exceptions, such as `httpx.ReadTimeout`, which are retried.
    """

    adapter: Literal["python"]
    target: Annotated[str, Field(pattern=_TARGET)]
    retry_on: tuple[str, ...] = ()


class ReplaySubject(_Table):
    """Recorded answers in `file`: results of a run, or JSON Lines; the path is relative to the project's folder."""

    adapter: Literal["replay"]
    file: Path


class OpenAISubject(_Table):
    """An endpoint for OpenAI's chat completions; `url` with or without `/chat/completions` at its end.

    `api_key_env` is the environment variable with the key. `system` is sent as the first message. `extra` is added to
    every request (temperature, tools ...). `${NAME}` in a header is replaced by an environment variable.
    """

    adapter: Literal["openai"]
    model: str
    url: str = "https://api.openai.com/v1"
    api_key_env: str = ""
    system: str = ""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)


class HttpSubject(_Table):
    """An HTTP endpoint with JSON requests and responses.

    `request` is the body; it may contain `{{utterance}}`, `{{history}}`, `{{context}}`, `{{context.NAME}}` and
    `{{session}}`. `answer`, `topic`, `actions` and the rest are JSONPaths into the response. `${NAME}` in a header is
    replaced by an environment variable. With `omits_empty`, a topic or actions that their path does not find are empty
    instead of unknown.
    """

    adapter: Literal["http"]
    url: str
    method: Literal["POST", "PUT"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    request: dict[str, JsonValue] = {"utterance": "{{utterance}}"}
    answer: str = "$.answer"
    topic: str = ""
    actions: str = ""
    omits_empty: bool = False
    action_name: str = "$.name"
    action_input: str = "$.input"
    action_output: str = "$.output"
    session: str = ""
    input_tokens: str = ""
    output_tokens: str = ""
    trace: str = ""


class CommandSubject(_Table):
    """A program that reads JSON objects from stdin and writes JSON objects to stdout, one per line.

    Every worker has its own process, which is restarted if it dies.
    """

    adapter: Literal["command"]
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    environment: dict[str, str] = Field(default_factory=dict)


class AgentforceSubject(_Table):
    """An agent in a Salesforce org, reached through the Agent API.

    `agent_id` is the BotDefinition's id. `org` is an alias or username of a login. Instead, `token_env` can be an
    environment variable with an access token, with `instance_url` as the org's My Domain. `bypass_user` lets the agent
    act as its own user. `variable_types` are the types of context variables. With `traces = false`, no plan traces are
    requested, and topics and actions are unknown.
    """

    adapter: Literal["agentforce"]
    agent_id: Annotated[str, Field(pattern=r"^0Xx[0-9A-Za-z]{12}(?:[0-9A-Za-z]{3})?$")]
    org: str = ""
    token_env: str = ""
    instance_url: str = ""
    url: Annotated[str, Field(pattern=r"/v1/?$")] = "https://api.salesforce.com/einstein/ai-agent/v1"
    bypass_user: bool = True
    variable_types: dict[str, VariableType] = Field(default_factory=dict)
    traces: bool = True


class RecordedSubject(_Table):
    """The answers that the file of the evaluation already contains: only of runs of such files, never in settings."""

    adapter: Literal["recorded"]


class PluginSubject(_Table):
    """An adapter of an installed package, which reads its own keys."""

    model_config = ConfigDict(frozen=True, extra="allow")

    adapter: str


class RulesRater(_Table):
    """The offline rater; `embed` is a function that returns vectors for a list of texts."""

    adapter: Literal["rules"]
    embed: Annotated[str, Field(pattern=f"^$|{_TARGET}")] = ""


class LlmRater(_Table):
    """Language models as rater: any models at an OpenAI-compatible `url`, else model names of pydantic-ai.

    `models` instead of `model` lets several models vote. `url` ends before `/chat/completions`. `api_key_env` is the
    environment variable with the key. `samples` is the number of judgements for each answer, by default one of each
    model. `temperature = "default"` uses the model's default. `timeout` is the time limit of one answer in seconds,
    `concurrency` the number of requests at a time. With `cache = false`, known ratings are requested again.

    `instructions`, `examples` (a file with labelled pairs, relative to the project's folder) and `choices` (the scores,
    0 to 5, of named verdicts) are the project's own rubric.
    """

    adapter: Literal["llm"]
    model: str = ""
    models: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    url: str = ""
    api_key_env: str = ""
    samples: Annotated[int, Field(ge=1, le=limits.MAX_RATER_SAMPLES)] | None = None
    temperature: Annotated[
        float | None, Field(ge=0, le=2), BeforeValidator(lambda value: None if value == "default" else value)
    ] = 0.0
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    timeout: Annotated[float, Field(gt=0, le=limits.MAX_CASE_TIMEOUT_SECONDS)] = limits.HTTP_TIMEOUT_SECONDS
    concurrency: Annotated[int, Field(ge=1, le=limits.MAX_CONCURRENCY)] = limits.RATER_CONCURRENCY
    cache: bool = True
    instructions: Annotated[str, Field(max_length=limits.MAX_INSTRUCTION_CHARS)] = ""
    examples: Path | None = None
    choices: dict[Annotated[str, Field(min_length=1)], Annotated[float, Field(ge=0, le=5)]] = Field(
        default_factory=dict
    )

    @property
    def model_names(self) -> tuple[str, ...]:
        """Return the models that vote, or the only one."""
        return self.models or (self.model,)

    @property
    def sample_count(self) -> int:
        """Return the number of judgements for each answer."""
        return self.samples or len(self.model_names)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if fault := self._fault():
            raise PydanticCustomError("rater", "{fault}", {"fault": fault})
        return self

    def _fault(self) -> str:
        if bool(self.model) == bool(self.models):
            return "needs either model or models" if self.model else "the key 'model' is missing"
        if len(set(self.models)) < len(self.models):
            return "models names a model twice; use samples to ask each model several times"
        if self.sample_count < len(self.model_names):
            return f"samples is {self.samples}, but each of the {len(self.models)} models needs at least one"
        if self.choices and len(set(self.choices.values())) < 2:  # noqa: PLR2004 - a pass and a failure
            return "choices needs at least two verdicts with different scores"
        return ""


class PluginRater(_Table):
    """A rater of an installed package, which reads its own keys."""

    model_config = ConfigDict(frozen=True, extra="allow")

    adapter: str


SUBJECT_ADAPTERS: Final[Mapping[str, type[BaseModel]]] = {
    "python": PythonSubject,
    "replay": ReplaySubject,
    "openai": OpenAISubject,
    "http": HttpSubject,
    "command": CommandSubject,
    "agentforce": AgentforceSubject,
}
RATER_ADAPTERS: Final[Mapping[str, type[BaseModel]]] = {"rules": RulesRater, "llm": LlmRater}


VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
"""An environment variable in a header."""


def key_variables(table: BaseModel) -> tuple[str, ...]:
    """Return the environment variables from which a subject or a rater reads its keys.

    The client of a model that is named without a URL, such as `openai:gpt-4.1-mini`, reads the key of its provider.
    """
    named = [name for key in ("api_key_env", "token_env") if (name := getattr(table, key, ""))]
    headers = table.headers.values() if isinstance(table, OpenAISubject | HttpSubject) else ()
    models = table.model_names if isinstance(table, LlmRater) and not (table.url or named) else ()
    providers = [model.partition(":")[0].partition("-")[0] for model in models if ":" in model]
    return (
        *named,
        *(name for text in headers for name in VARIABLE.findall(text)),
        *(f"{provider.upper()}_API_KEY" for provider in providers),
    )


def _discriminator(known: Mapping[str, type[BaseModel]]) -> Discriminator:
    """Return a discriminator that chooses a table's model by its adapter; unknown names are names of plugins."""

    def tag(table: object) -> str | None:
        name = table.get("adapter") if isinstance(table, dict) else getattr(table, "adapter", None)
        is_plugin = not (name is None or name in known or isinstance(table, RecordedSubject))
        return "plugin" if is_plugin else name

    return Discriminator(tag)


SubjectSettings = Annotated[
    Annotated[PythonSubject, Tag("python")]
    | Annotated[ReplaySubject, Tag("replay")]
    | Annotated[OpenAISubject, Tag("openai")]
    | Annotated[HttpSubject, Tag("http")]
    | Annotated[CommandSubject, Tag("command")]
    | Annotated[AgentforceSubject, Tag("agentforce")]
    | Annotated[RecordedSubject, Tag("recorded")]
    | Annotated[PluginSubject, Tag("plugin")],
    _discriminator(SUBJECT_ADAPTERS),
]
RaterSettings = Annotated[
    Annotated[RulesRater, Tag("rules")] | Annotated[LlmRater, Tag("llm")] | Annotated[PluginRater, Tag("plugin")],
    _discriminator(RATER_ADAPTERS),
]


class ValidateSettings(_Table):
    """The profile of validation, and the severity of single rules by code."""

    profile: Profile = "orgs"
    rules: dict[str, RuleSetting] = Field(default_factory=dict)


def _table_of(name: str, says: str, options: Iterable[Option]) -> type[_Table]:
    """Return the model of a table whose keys are options of a run."""
    keys = {option.name: (option.annotation, _field(option)) for option in options}
    return create_model(name, __base__=_Table, __doc__=says, **keys)  # type: ignore[call-overload, no-any-return]


def _field(option: Option) -> object:
    least, most = option.bounds or (None, None)
    return Field(
        option.default,
        gt=least if option.is_above else None,
        ge=None if option.is_above else least,
        le=most,
        validation_alias=AliasChoices(option.name, option.alias) if option.alias else None,
    )


# What most projects set stands first in the reference, and in errors that list the known keys.
_FIRST: Final = {"concurrency", "case_timeout"}
_RUN: Final = [option for option in RUN_OPTIONS if option.group in {"running", "policy"}]
RunSettings: Final = _table_of(
    "RunSettings",
    "Defaults of `evalmeta test run`; `confidence` is another name for `min_pass_rate`.",
    sorted(_RUN, key=lambda option: option.name not in _FIRST),
)
ScoreSettings: Final = _table_of(
    "ScoreSettings",
    "How results are judged; `rater` is the name of a table under [raters], or `rules`.",
    SCORING_OPTIONS,
)


def _schema_of(table: type[_Table]) -> GetPydanticSchema:
    """Return the annotation of a key whose model is made at runtime, so that no type can name it."""
    return GetPydanticSchema(lambda _, handler: handler(table))


class AdkSettings(_Table):
    """How files of ADK are read.

    Attributes:
        dialect: the dialect of arrays before eval sets.
        missing: what missing data of a criterion means; None for what the criteria's file says.
        config: the file with the criteria, relative to the project's folder; None for test_config.json beside a file.
    """

    dialect: AdkDialect = "auto"
    missing: MissingData | None = None
    config: Path | None = None


class DatabricksSettings(_Table):
    """What evaluation sets of Databricks do not contain: guidelines for every answer, and the metrics to use."""

    global_guidelines: tuple[str, ...] = ()
    metrics: tuple[str, ...] | None = None


def _checked_text(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("quarantine", "is empty")
    return text


def _checked_case(case: object) -> object:
    is_number = isinstance(case, int) and not isinstance(case, bool) and case > 0
    if is_number or (isinstance(case, str) and case.strip()):
        return case
    raise PydanticCustomError("quarantine", "must be the number of a case, its utterance or its label")


def _checked_end(until: object) -> date:
    if (day := parse_day(str(until))) is None:
        raise PydanticCustomError("quarantine", "must be a day, such as 2027-01-31")
    if fault := end_fault(day):
        raise PydanticCustomError("quarantine", "{fault}", {"fault": fault})
    return day


class QuarantineSettings(_Table):
    """A known flaky or broken case, for tests that cannot hold `quarantine` themselves, such as definitions.

    Attributes:
        test: the name of a definition, or a file by its path, its name or its name without suffix.
        case: the number of the case, or its utterance, or its label.
        reason: why its result does not count.
        until: the last day, in UTC, on which it does not count; at most 366 days away.
    """

    test: Annotated[str, AfterValidator(_checked_text)]
    case: Annotated[int | str, BeforeValidator(_checked_case)]
    reason: Annotated[str, AfterValidator(_checked_text)]
    until: Annotated[date, BeforeValidator(_checked_end)]


class OrgSettings(_Table):
    """The default org of commands: an alias or username of a login; empty for the embedded org."""

    default: str = ""


class Settings(_Table):
    """The content of `evalmeta.toml`."""

    validate_: Annotated[ValidateSettings, Field(alias="validate")] = ValidateSettings()
    run: Annotated[_Table, _schema_of(RunSettings)] = RunSettings()
    score: Annotated[_Table, _schema_of(ScoreSettings)] = ScoreSettings()
    org: OrgSettings = OrgSettings()
    adk: AdkSettings = AdkSettings()
    databricks: DatabricksSettings = DatabricksSettings()
    subjects: dict[str, SubjectSettings] = Field(default_factory=dict)
    raters: dict[str, RaterSettings] = Field(default_factory=dict)
    tags: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    quarantine: tuple[QuarantineSettings, ...] = ()

    def quarantines_of(self, test: str, kind: str, *, started: float) -> Quarantines:
        """Return the quarantines of a test's cases for a run that started at a time; see `names_of_test`."""
        names = names_of_test(test, kind) if self.quarantine else ()
        own = (settings for settings in self.quarantine if settings.test in names)
        return Quarantines(
            day_of(started), {settings.case: Quarantine(settings.reason, settings.until) for settings in own}
        )

    def run_options(self, run: Given = _NOTHING, score: Given = _NOTHING) -> RunOptions:
        """Return [run] and [score] as the options of a run; `run` and `score` have values that replace theirs."""
        return RunOptions(
            **(self.run.model_dump() | dict(run)), scoring=Scoring(**(self.score.model_dump() | dict(score)))
        )
