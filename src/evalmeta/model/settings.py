"""The project's settings: `evalmeta.toml` as checked values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from evalmeta import limits

__all__ = ["Profile", "PythonSubject", "ReplaySubject", "RuleSetting", "RunSettings", "Settings", "SubjectSettings"]

Profile = Literal["documented", "orgs"]
RuleSetting = Literal["error", "warning", "off"]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PythonSubject(_Table):
    """An agent that is a Python object: `target = "module:name"`, imported from the project's folder."""

    adapter: Literal["python"]
    target: Annotated[str, Field(pattern=r"^[\w.]+:[\w.]+$")]


class ReplaySubject(_Table):
    """Recorded answers, from a results file of a run (`file`, relative to the project's folder)."""

    adapter: Literal["replay"]
    file: Path


SubjectSettings = Annotated[PythonSubject | ReplaySubject, Field(discriminator="adapter")]


class ValidateSettings(_Table):
    """Which profile judges, and the severity of single rules by code."""

    profile: Profile = "documented"
    rules: dict[str, RuleSetting] = Field(default_factory=dict)


class RunSettings(_Table):
    """Defaults of `evalmeta test run`; `confidence` is another name for `min_pass_rate`."""

    concurrency: Annotated[int, Field(ge=1, le=limits.MAX_CONCURRENCY)] = limits.CONCURRENCY
    case_timeout: Annotated[float, Field(gt=0, le=limits.MAX_CASE_TIMEOUT_SECONDS)] = limits.CASE_TIMEOUT_SECONDS
    iterations: Annotated[int, Field(ge=1, le=limits.MAX_ITERATIONS)] = 1
    min_pass_rate: Annotated[float, Field(ge=0, le=1, validation_alias=AliasChoices("min_pass_rate", "confidence"))] = (
        1.0
    )
    undecided: Literal["ignore", "fail"] = "ignore"


class OrgSettings(_Table):
    """Which org commands talk to: an alias or username of a login; empty is the embedded org."""

    default: str = ""


class Settings(_Table):
    """Everything `evalmeta.toml` can say."""

    validate_: Annotated[ValidateSettings, Field(alias="validate")] = ValidateSettings()
    run: RunSettings = RunSettings()
    org: OrgSettings = OrgSettings()
    subjects: dict[str, SubjectSettings] = Field(default_factory=dict)
