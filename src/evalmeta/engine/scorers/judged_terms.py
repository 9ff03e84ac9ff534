"""The terms of judged metrics. They stand apart because pydantic checks them, which most runs need not load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from evalmeta import limits
from evalmeta.errors import RaterError

if TYPE_CHECKING:
    from evalmeta.model.definition import Expectation


class _NamedRubric(BaseModel):
    """A criterion for the agent's work, and its name in results."""

    model_config = ConfigDict(frozen=True)

    id: str
    text: str


_Texts: TypeAlias = Annotated[
    tuple[str, ...], AfterValidator(lambda texts: tuple(text for text in texts if text.strip()))
]


class Terms(BaseModel):
    """The terms of a judged metric; unknown keys are ignored. The threshold is on the score's own scale."""

    model_config = ConfigDict(frozen=True)

    threshold: Annotated[float | None, Field(strict=True, allow_inf_nan=False)] = None
    num_samples: Annotated[int | None, Field(strict=True, ge=1, le=limits.MAX_RATER_SAMPLES)] = None
    aggregate: Literal["majority", "share"] = "majority"
    facts: _Texts = ()
    guidelines: _Texts = ()
    rubrics: tuple[_NamedRubric, ...] = ()


def read_terms(expectation: Expectation) -> Terms:
    """Return the terms of an expectation; raise RaterError if one is not valid."""
    try:
        return Terms.model_validate({name: value for name, value in expectation.terms.items() if value is not None})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise RaterError(f"the term {place} is not valid: {fault['msg']}, not {fault['input']!r:.50}") from error
