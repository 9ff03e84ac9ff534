"""The project's settings: `evalmeta.toml` as pydantic models."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
)
from pydantic_core import PydanticCustomError

from evalmeta.model.entry_points import ENTRY_POINTS
from evalmeta.model.evaluation import (
    Quarantine,
    Quarantines,
    day_of,
    end_fault,
    names_of_test,
    parse_case_list,
    parse_day,
)
from evalmeta.model.run_options import RUN_OPTIONS, SCORING_OPTIONS, Option, RunOptions, Scoring
from evalmeta.model.store import read_store_url

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


class AdapterSettings(Table):
    """A table under [subjects] or [raters], which the class of its adapter reads (`model/entry_points.py`)."""

    adapter: str

    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables with the keys of the agent or the rater."""
        return tuple(name for key in ("api_key_env", "token_env") if (name := getattr(self, key, "")))


class SubjectSettings(AdapterSettings):
    """A table under [subjects]: the settings of an agent. Each adapter derives its settings from this class.

    Attributes:
        agent: what the agent of the adapter is, in the reference.
        imports_code: whether `bind` runs code of the project or of a package, which may hang or exit.
        tracing: how the key `traces` lets evalmeta read what the agent did: its traces are received, or its spans are
            read in this process. Empty: it has no such key, or one with another meaning.
        named_by: the keys that alone describe an agent. With `url`, `--agent ADAPTER:URL` names one, and its key is in
            the variable `api_key_env`; with `command`, `init` takes ADAPTER:COMMAND.
        is_described: whether `bind` returns a `DescribedSubject`, which says what it can be asked.
        parts_unknown: why its topics and tools are not known; empty if `bind` may return a `ListedSubject`.
    """

    agent: ClassVar[str] = ""
    imports_code: ClassVar[bool] = False
    tracing: ClassVar[Literal["", "received", "in process"]] = ""
    named_by: ClassVar[tuple[Literal["url", "command"], ...]] = ()
    is_described: ClassVar[bool] = False
    parts_unknown: ClassVar[str] = "its adapter cannot list them"

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> object:
        """Return the agent: a subject, a function or an object with `open`; raise SettingsError if it cannot be used.

        Paths are relative to the project's folder `root`. `sign_in` returns sessions for agents in an org.
        """
        raise NotImplementedError

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the adapter and its target, which runs record, and the files in which the agent's source may be."""
        return self.adapter, []

    @property
    def is_scripted(self) -> bool:
        """Return whether files of the project have its answers or its steps, so that only tests can be asked."""
        return False

    def proposed_doubles(self, root: Path) -> Mapping[Path, bytes]:
        """Return files to write with proposed answers of the agent's actions, if files of the project answer them.

        Only actions that nothing answers yet have one. Raise SettingsError if the agent cannot be used.
        """
        return {}

    @property
    def language_model(self) -> str:
        """Return the model whose price answers have that name none: its key `model`; empty if there is none."""
        return str(getattr(self, "model", ""))

    @property
    def reads_traces(self) -> bool:
        """Return whether evalmeta reads the agent's traces: its key `traces`."""
        return bool(self.tracing) and getattr(self, "traces", False) is True

    @property
    def login(self) -> str:
        """Return the login of `evalmeta org list` that the agent needs; empty for none."""
        return ""


def find_subject(subjects: Mapping[str, SubjectSettings], name: str) -> SubjectSettings | None:
    """Return the settings of an agent; `NAME@MODEL` is the agent NAME with another model, if it has one."""
    if name in subjects:
        return subjects[name]
    base, _, model = name.partition("@")
    known = subjects.get(base)
    return known.model_copy(update={"model": model}) if model and known and known.language_model else None


TracePort: TypeAlias = Annotated[int, Field(ge=0, le=65_535)]


class PluginSubject(SubjectSettings):
    """An adapter of an installed package, which reads its own keys when it binds the agent."""

    model_config = ConfigDict(frozen=True, extra="allow")
    imports_code = True
    tracing = "in process"
    parts_unknown = ""


class RaterSettings(AdapterSettings):
    """A table under [raters], as SubjectSettings is one under [subjects]."""


class RulesRater(RaterSettings):
    """The offline rater; `embed` is a function that returns vectors for a list of texts."""

    adapter: Literal["rules"]
    embed: Annotated[str, Field(pattern=f"^$|{TARGET}")] = ""


class PluginRater(RaterSettings):
    """A rater of an installed package, which reads its own keys."""

    model_config = ConfigDict(frozen=True, extra="allow")


def subject_adapter(name: str) -> type[SubjectSettings] | None:
    """Return the settings of an adapter for agents; None for other names than those of evalmeta."""
    point = ENTRY_POINTS["subjects"].get(name)
    return cast("type[SubjectSettings]", resolve_name(point)) if point else None


def rater_adapter(name: str) -> type[RaterSettings] | None:
    """Return the settings of an adapter for raters; None for other names than those of evalmeta."""
    point = ENTRY_POINTS["rater_settings"].get(name)
    return cast("type[RaterSettings]", resolve_name(point)) if point else None


_Settings = TypeVar("_Settings", SubjectSettings, RaterSettings)


def _by_adapter(base: type[_Settings], plugin: type[_Settings], own: Callable[[str], type[_Settings] | None]) -> object:
    """Return the annotation of a table that the class of its adapter reads; unknown names are those of packages."""

    def read(table: object, known: ValidatorFunctionWrapHandler, info: ValidationInfo[object]) -> _Settings:
        if isinstance(table, base):
            return cast("_Settings", known(table))
        name = table.get("adapter") if isinstance(table, dict) else None
        if name is None:
            raise PydanticCustomError("adapter_missing", "Field required")
        model = (own(name) if isinstance(name, str) else None) or plugin
        if info.mode == "json":
            # As in `package/settings.py`: files may not have texts for numbers, but lists for tuples.
            return model.model_validate_json(json.dumps(table), strict=True)
        return model.model_validate(table)

    return WrapValidator(read)


SubjectTable = Annotated[SubjectSettings, _by_adapter(SubjectSettings, PluginSubject, subject_adapter)]
RaterTable = Annotated[RaterSettings, _by_adapter(RaterSettings, PluginRater, rater_adapter)]


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


def _checked_pattern(pattern: str) -> str:
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise PydanticCustomError("redact", "must be a regular expression: {reason}", {"reason": str(error)}) from None
    if compiled.match(""):
        raise PydanticCustomError("redact", "must not match the empty text")
    return pattern


class RedactSettings(Table):
    """What is replaced with `[secret]` in agents' answers before they are judged, stored and reported.

    Attributes:
        patterns: regular expressions of Python, for the texts of answers, of actions' inputs and outputs, of traces, of
            retrieved passages and of states of sessions.
    """

    patterns: tuple[Annotated[str, AfterValidator(_checked_pattern)], ...] = ()


def _checked_store(url: str) -> str:
    try:
        has_password = bool(url) and read_store_url(url).has_password
    except ValueError as error:
        raise PydanticCustomError("store", "{fault}", {"fault": str(error)}) from None
    if has_password:
        fault = "must have no password: set PGPASSWORD or EVALMETA_STORE, or use ~/.pgpass"
        raise PydanticCustomError("store", "{fault}", {"fault": fault})
    return url


class StoreSettings(Table):
    """Where runs and definitions are stored for several machines.

    Attributes:
        url: the URL of a Postgres database, without a password; empty for the state folder. The environment variable
            EVALMETA_STORE goes before it.
    """

    url: Annotated[str, AfterValidator(_checked_store)] = ""


_Dollars: TypeAlias = Annotated[Decimal, Field(ge=0, le=1_000_000, decimal_places=6)]


class PriceSettings(Table):
    """What a model costs, in US dollars for a million tokens, before the list of the package `genai-prices`.

    Attributes:
        input: the price of the tokens of a request.
        output: the price of the tokens of a reply.
        cached_input: the price of tokens of a request that the provider had cached; None for that of `input`.
    """

    input: _Dollars
    output: _Dollars
    cached_input: _Dollars | None = None


class Settings(Table):
    """The content of `evalmeta.toml`."""

    validate_: Annotated[ValidateSettings, Field(alias="validate")] = ValidateSettings()
    run: Annotated[Table, _schema_of(RunSettings)] = RunSettings()
    score: Annotated[Table, _schema_of(ScoreSettings)] = ScoreSettings()
    org: OrgSettings = OrgSettings()
    adk: AdkSettings = AdkSettings()
    databricks: DatabricksSettings = DatabricksSettings()
    redact: RedactSettings = RedactSettings()
    store: StoreSettings = StoreSettings()
    subjects: dict[str, SubjectTable] = Field(default_factory=dict)
    raters: dict[str, RaterTable] = Field(default_factory=dict)
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    tags: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    columns: dict[str, str] = Field(default_factory=dict)
    quarantine: tuple[QuarantineSettings, ...] = ()

    def quarantines_of(self, test: str, kind: str, *, started: float) -> Quarantines:
        """Return the quarantines of a test's cases for a run that started at a time; see `names_of_test`."""
        names = names_of_test(test, kind) if self.quarantine else ()
        own = (settings for settings in self.quarantine if settings.test in names)
        return Quarantines(
            day_of(started), {settings.case: Quarantine(settings.reason, settings.until) for settings in own}
        )

    def tags_of(self, test: str, kind: str) -> dict[str, frozenset[int] | None]:
        """Return the tags of [tags] with the numbers of the test's cases, None for all; see `names_of_test`.

        Entries that are not valid are left out: a run with --tag reports them.
        """
        names = names_of_test(test, kind) if self.tags else frozenset[str]()
        tagged: dict[str, frozenset[int] | None] = {}
        for tag, entries in self.tags.items():
            for entry in entries:
                with suppress(ValueError):
                    cases, known = parse_case_list(entry, is_named=True), tagged.get(tag, frozenset())
                    if cases.name in names:
                        tagged[tag] = None if known is None or cases.numbers is None else known | cases.numbers
        return tagged

    def run_options(self, run: Given = _NOTHING, score: Given = _NOTHING) -> RunOptions:
        """Return [run] and [score] as the options of a run; `run` and `score` have values that replace theirs."""
        return RunOptions(
            **(self.run.model_dump() | dict(run)), scoring=Scoring(**(self.score.model_dump() | dict(score)))
        )
