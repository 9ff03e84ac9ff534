"""Rules about custom scorers (AiAgentScorerDefinition)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.model.agent_scorer import LIGHTNING_TYPES
from evalmeta.model.problem import quote
from evalmeta.validation.rule import ERROR, WARNING, Finding, RuleTable, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.agent_scorer import ScorerVersion
    from evalmeta.validation.definition_rules import DefinitionScope
    from evalmeta.xmlio.reader import Step

AGENT_SCORERS: Final[RuleTable[DefinitionScope, Finding]] = RuleTable()


@rule("scorer-name-too-long", AGENT_SCORERS, documented=ERROR, orgs=ERROR)
def find_scorer_name_too_long(scope: DefinitionScope) -> Iterator[Finding]:
    """The API name of a custom scorer, which is its file's name, has at most 35 characters."""
    length, most = len(scope.full_name), limits.MAX_SCORER_NAME_CHARS
    if length > most:
        message = f"the file name has {length} characters; the API name of a scorer has at most {most}"
        yield Finding((), message, "Rename the file.")


@rule("scorer-type-unknown", AGENT_SCORERS, documented=WARNING, orgs=WARNING)
def find_scorer_type_unknown(scope: DefinitionScope) -> Iterator[Finding]:
    """A scorer of the data type LightningType has a lightningType that the sf CLI knows."""
    scorer = scope.scorer
    if scorer.lightning_type is None and scorer.data_type == "LightningType":
        hint = f"Add one of {', '.join(LIGHTNING_TYPES)}."
        yield Finding((), "the scorer has no <lightningType>, and its dataType is LightningType", hint)
    elif scorer.lightning_type is not None and scorer.lightning_type not in LIGHTNING_TYPES:
        message = f"{quote(scorer.lightning_type)} is not a known lightningType"
        yield Finding((("lightningType", 0),), message, f"Write one of {', '.join(LIGHTNING_TYPES)}.")


@rule("scorer-versions", AGENT_SCORERS, documented=ERROR, orgs=ERROR)
def find_scorer_versions(scope: DefinitionScope) -> Iterator[Finding]:
    """A custom scorer has at least one version, and its versions have different numbers, from 1."""
    if not scope.scorer.versions:
        yield Finding((), "the scorer has no version", "Add a <scorerVersion> with the versionNumber 1.")
    seen: set[int] = set()
    for place, version in enumerate(scope.scorer.versions):
        number = version.number
        if number is None:
            continue
        if number < 1 or number in seen:
            what = "belongs to an earlier version" if number in seen else "is less than 1"
            hint = "Number the versions 1, 2, 3 and so on."
            yield Finding((_step(place), ("versionNumber", 0)), f"the version number {number} {what}", hint)
        seen.add(number)


@rule("scorer-engine", AGENT_SCORERS, documented=ERROR, orgs=ERROR)
def find_scorer_engine(scope: DefinitionScope) -> Iterator[Finding]:
    """A scorer version whose engine is PromptTemplate names its prompt template in engineRef."""
    for place, version in enumerate(scope.scorer.versions):
        if version.engine == "PromptTemplate" and not version.engine_ref.strip():
            hint = "Write the prompt template's API name into <engineRef>."
            yield Finding((_step(place), ("engine", 0)), "the engine PromptTemplate has no prompt template", hint)


@rule("scorer-outputs", AGENT_SCORERS, documented=ERROR, orgs=ERROR)
def find_scorer_outputs(scope: DefinitionScope) -> Iterator[Finding]:
    """A scorer version has at most 101 output values, each once and not blank, and at most one fallback."""
    for place, version in enumerate(scope.scorer.versions):
        for steps, message, hint in _output_findings(version):
            yield Finding((_step(place), *steps), message, hint)


@rule("scorer-associations", AGENT_SCORERS, documented=ERROR, orgs=ERROR)
def find_scorer_associations(scope: DefinitionScope) -> Iterator[Finding]:
    """A samplingRate is from 0 to 1, and at most one version of a scorer is active; its status is Available."""
    active: int | None = None
    for place, version in enumerate(scope.scorer.versions):
        for index, association in enumerate(version.associations):
            steps = (_step(place), ("agentAssociation", index))
            rate = association.sampling_rate
            if rate is not None and not _is_rate(rate):
                message = f"the samplingRate {quote(rate)} is not a number from 0 to 1"
                yield Finding((*steps, ("samplingRate", 0)), message, "Write 0.1 to score about 10% of sessions.")
            if not association.is_active:
                continue
            if version.status != "Available":
                message = f"the association is active, and the status of its version is {quote(version.status)}"
                yield Finding((*steps, ("isActive", 0)), message, "Set isActive to false, or the status to Available.")
            if active not in (None, place):
                hint = "Set isActive to false in all versions but one."
                yield Finding((*steps, ("isActive", 0)), "an earlier version of the scorer is active too", hint)
            active = place if active is None else active


def _output_findings(version: ScorerVersion) -> Iterator[Finding]:
    outputs, most = version.outputs, limits.MAX_SCORER_OUTPUTS
    if len(outputs) > most:
        message = f"the version has {len(outputs)} output values; at most {most} are valid"
        yield Finding((("outputEnumValue", most),), message, "Remove some of them.")
    seen: set[str] = set()
    has_fallback = False
    for index, output in enumerate(outputs):
        step = ("outputEnumValue", index)
        if not output.value.strip():
            yield Finding((step, ("value", 0)), "the output value is empty", "Write the label that it gives.")
        elif output.value in seen:
            message = f"the output value {quote(output.value)} occurs more than once"
            yield Finding((step, ("value", 0)), message, "Keep one of them.")
        seen.add(output.value)
        if output.is_fallback and has_fallback:
            message = "an earlier output value is the fallback"
            yield Finding((step, ("isFallback", 0)), message, "Set isFallback to false in all values but one.")
        has_fallback = has_fallback or output.is_fallback


def _is_rate(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def _step(place: int) -> Step:
    return "scorerVersion", place
