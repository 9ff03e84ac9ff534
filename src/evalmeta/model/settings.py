"""The project's settings: `evalmeta.toml` as pydantic models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, Self, TypeAlias, cast

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetPydanticSchema,
    Tag,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from evalmeta import limits
from evalmeta.model.entry_points import OWN
from evalmeta.model.quarantine import Quarantine, Quarantines, day_of, end_fault, names_of_test, parse_day
from evalmeta.model.run_options import RUN_OPTIONS, SCORING_OPTIONS, Option, RunOptions, Scoring

if TYPE_CHECKING:
    from evalmeta.model.login import SignIn

Profile = Literal["orgs", "documented"]
AdkDialect = Literal["auto", "python", "typescript"]
MissingData = Literal["undecided", "adk"]
RuleSetting = Literal["error", "warning", "off"]

Given: TypeAlias = Mapping[str, object]
"""Values that replace those of settings, by the names of the settings."""
_NOTHING: Final[Given] = {}
TARGET: Final = r"^[\w.]+:[\w.]+$"


class Table(BaseModel):
    """A table of `evalmeta.toml`: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SubjectSettings(Table):
    """A table under [subjects]: the settings of an agent. Each adapter derives its settings from this class.

    Values are read by the class of their adapter (`model/entry_points.py`), or by PluginSubject.

    Attributes:
        agent: what the agent of the adapter is, in the reference.
        imports_code: whether `bind` runs code of the project or of a package, which may hang or exit.
    """

    agent: ClassVar[str] = ""
    imports_code: ClassVar[bool] = False

    adapter: str

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> object:
        """Return the agent: a subject, a function or an object with `open`; raise SettingsError if it cannot be used.

        Paths are relative to the project's folder `root`. `sign_in` returns sessions for agents in an org.
        """
        raise NotImplementedError

    def identity(self, root: Path) -> tuple[str, list[Path]]:  # noqa: ARG002 - adapters with files need the folder
        """Return the adapter and its target, which runs record, and the files in which the agent's source may be."""
        return self.adapter, []

    @property
    def login(self) -> str:
        """Return the login of `evalmeta org list` that the agent needs; empty for none."""
        return ""

    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables with the agent's keys."""
        return named_variables(self)


class PluginSubject(SubjectSettings):
    """An adapter of an installed package, which reads its own keys."""

    model_config = ConfigDict(frozen=True, extra="allow")
    imports_code = True


def subject_adapter(name: str) -> type[SubjectSettings]:
    """Return the settings of an adapter of evalmeta."""
    return cast("type[SubjectSettings]", OWN["subjects"][name].load())


def _read_by_adapter(
    table: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo[object]
) -> SubjectSettings:
    """Let the class of the adapter read a table."""
    if isinstance(table, SubjectSettings):
        return cast("SubjectSettings", read(table))
    name = table.get("adapter") if isinstance(table, dict) else None
    if name is None:
        raise PydanticKnownError("union_tag_not_found", {"discriminator": "tag()"})
    model = subject_adapter(name) if isinstance(name, str) and name in OWN["subjects"] else PluginSubject
    if info.mode == "json":
        # As in `package/settings.py`: files may not have texts for numbers, but lists for tuples.
        return model.model_validate_json(json.dumps(table), strict=True)
    return model.model_validate(table)


SubjectTable = Annotated[SubjectSettings, WrapValidator(_read_by_adapter)]
"""A table under [subjects], read by the class of its adapter."""


def named_variables(table: Table) -> tuple[str, ...]:
    """Return the environment variables that a table names as its keys."""
    return tuple(name for key in ("api_key_env", "token_env") if (name := getattr(table, key, "")))


class _Rater(Table):
    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables with the rater's keys."""
        return named_variables(self)


class RulesRater(_Rater):
    """The offline rater; `embed` is a function that returns vectors for a list of texts."""

    adapter: Literal["rules"]
    embed: Annotated[str, Field(pattern=f"^$|{TARGET}")] = ""


class LlmRater(_Rater):
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

    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables with the keys.

        The client of a model that is named without a URL, such as `openai:gpt-4.1-mini`, reads the key of its provider.
        """
        if self.url or self.api_key_env:
            return named_variables(self)
        providers = [model.partition(":")[0].partition("-")[0] for model in self.model_names if ":" in model]
        return tuple(f"{provider.upper()}_API_KEY" for provider in providers)

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


class PluginRater(_Rater):
    """A rater of an installed package, which reads its own keys."""

    model_config = ConfigDict(frozen=True, extra="allow")

    adapter: str


RATER_ADAPTERS: Final[Mapping[str, type[BaseModel]]] = {"rules": RulesRater, "llm": LlmRater}


def _discriminator(known: Mapping[str, type[BaseModel]]) -> Discriminator:
    """Return a discriminator that chooses a table's model by its adapter; unknown names are names of plugins."""

    def tag(table: object) -> str | None:
        name = table.get("adapter") if isinstance(table, dict) else getattr(table, "adapter", None)
        return name if name is None or name in known else "plugin"

    return Discriminator(tag)


RaterSettings = Annotated[
    Annotated[RulesRater, Tag("rules")] | Annotated[LlmRater, Tag("llm")] | Annotated[PluginRater, Tag("plugin")],
    _discriminator(RATER_ADAPTERS),
]


class ValidateSettings(Table):
    """The profile of validation, and the severity of single rules by code."""

    profile: Profile = "orgs"
    rules: dict[str, RuleSetting] = Field(default_factory=dict)


def _table_of(name: str, says: str, options: Iterable[Option]) -> type[Table]:
    """Return the model of a table whose keys are options of a run."""
    keys = {option.name: (option.annotation, _field(option)) for option in options}
    return create_model(name, __base__=Table, __doc__=says, **keys)  # type: ignore[call-overload, no-any-return]


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


def _schema_of(table: type[Table]) -> GetPydanticSchema:
    """Return the annotation of a key whose model is made at runtime, so that no type can name it."""
    return GetPydanticSchema(lambda _, handler: handler(table))


class AdkSettings(Table):
    """How files of ADK are read.

    Attributes:
        dialect: the dialect of arrays before eval sets.
        missing: what missing data of a criterion means; None for what the criteria's file says.
        config: the file with the criteria, relative to the project's folder; None for test_config.json beside a file.
    """

    dialect: AdkDialect = "auto"
    missing: MissingData | None = None
    config: Path | None = None


class DatabricksSettings(Table):
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


class QuarantineSettings(Table):
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


class OrgSettings(Table):
    """The default org of commands: an alias or username of a login; empty for the embedded org."""

    default: str = ""


class Settings(Table):
    """The content of `evalmeta.toml`."""

    validate_: Annotated[ValidateSettings, Field(alias="validate")] = ValidateSettings()
    run: Annotated[Table, _schema_of(RunSettings)] = RunSettings()
    score: Annotated[Table, _schema_of(ScoreSettings)] = ScoreSettings()
    org: OrgSettings = OrgSettings()
    adk: AdkSettings = AdkSettings()
    databricks: DatabricksSettings = DatabricksSettings()
    subjects: dict[str, SubjectTable] = Field(default_factory=dict)
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
