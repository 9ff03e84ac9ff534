"""What scorers, judges and people say of answers, or expect of them, as MLflow has it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from evalmeta.model.json_value import plain_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.model.json_value import JsonObject, JsonValue

DEFAULT_NAME: Final = "feedback"


class AssessmentSourceType(StrEnum):
    """Who gave an assessment."""

    SOURCE_TYPE_UNSPECIFIED = "SOURCE_TYPE_UNSPECIFIED"
    LLM_JUDGE = "LLM_JUDGE"
    AI_JUDGE = "LLM_JUDGE"
    HUMAN = "HUMAN"
    CODE = "CODE"


@dataclass(frozen=True, slots=True)
class AssessmentSource:
    """The kind and the name of who gave an assessment."""

    source_type: str
    source_id: str | None = "default"


@dataclass(frozen=True, slots=True)
class AssessmentError:
    """Why an assessment has no value."""

    error_code: str
    error_message: str | None = None
    stack_trace: str | None = None


@dataclass(slots=True)
class Expectation:
    """What a person expects of an answer."""

    name: str
    value: object = None
    source: AssessmentSource | None = None
    trace_id: str | None = None
    metadata: Mapping[str, str] | None = None
    span_id: str | None = None


@dataclass(slots=True)
class Feedback:
    """What a scorer, a judge or a person says of an answer."""

    name: str = DEFAULT_NAME
    value: object = None
    error: Exception | AssessmentError | str | None = None
    source: AssessmentSource | None = None
    trace_id: str | None = None
    metadata: Mapping[str, str] | None = None
    span_id: str | None = None
    create_time_ms: int | None = None
    last_update_time_ms: int | None = None
    rationale: str | None = None
    overrides: str | None = None
    valid: bool = True

    def __post_init__(self) -> None:
        """Use the source CODE by default, and keep errors as objects of one kind."""
        self.source = self.source or AssessmentSource(AssessmentSourceType.CODE)
        if isinstance(self.error, Exception):
            stack = "".join(traceback.format_exception(self.error))
            self.error = AssessmentError(type(self.error).__name__, str(self.error), stack)
        elif isinstance(self.error, str):
            self.error = AssessmentError("ASSESSMENT_ERROR", self.error)

    @property
    def error_message(self) -> str | None:
        """Return the message of the error."""
        return getattr(self.error, "error_message", None)

    @property
    def error_code(self) -> str | None:
        """Return the code of the error."""
        return getattr(self.error, "error_code", None)


def assessment_json(noted: Feedback | Expectation) -> JsonObject:
    """Return an assessment as MLflow writes it."""
    source = noted.source or AssessmentSource(AssessmentSourceType.CODE)
    by: JsonObject = {"source_type": str(source.source_type), "source_id": source.source_id}
    kind = "feedback" if isinstance(noted, Feedback) else "expectation"
    value: dict[str, JsonValue] = {"assessment_name": noted.name, "source": by}
    said: dict[str, JsonValue] = {"value": plain_value(noted.value)}
    value[kind] = said
    if not isinstance(noted, Feedback):
        return value
    if noted.error is not None:
        said["error"] = {"error_code": noted.error_code, "error_message": noted.error_message}
    return {**value, "rationale": noted.rationale}


def read_assessments(values: Iterable[JsonValue]) -> Iterator[Feedback | Expectation]:
    """Yield the feedback and the expectations that MLflow wrote; anything else is ignored."""
    for value in values:
        if not isinstance(value, dict):
            continue
        by, rationale = value.get("source"), value.get("rationale")
        given = by if isinstance(by, dict) else {}
        source = AssessmentSource(str(given.get("source_type", "")), str(given.get("source_id", "")))
        name = str(value.get("assessment_name") or value.get("name") or "")
        if isinstance(said := value.get("feedback"), dict):
            reason = rationale if isinstance(rationale, str) and rationale else None
            yield Feedback(name, said.get("value"), _read_error(said.get("error")), source=source, rationale=reason)
        elif isinstance(said := value.get("expectation"), dict):
            yield Expectation(name, said.get("value"), source=source)


def _read_error(value: JsonValue) -> AssessmentError | None:
    if not isinstance(value, dict):
        return None
    return AssessmentError(str(value.get("error_code", "")), str(value.get("error_message", "")))
