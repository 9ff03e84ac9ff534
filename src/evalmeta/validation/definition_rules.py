"""Rules about definitions and custom scorers as a whole, and about all definitions of a project together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.model.agent_scorer import LIGHTNING_TYPES, AgentScorer, ScorerVersion, read_number
from evalmeta.model.expectations import scorer_kind, scorer_names
from evalmeta.model.problem import Location, quote
from evalmeta.model.registry import EVALUATION_DEFINITION, PARAMETER_API_VERSION, ApiVersion
from evalmeta.validation.rule import ERROR, WARNING, Finding, RuleTable, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.definition import Definition
    from evalmeta.xmlio.reader import Step


# Names may have megabytes: a repeated group would keep every repetition in memory.
_API_NAME: Final = re.compile(r"(?!.*__)[A-Za-z](?:[A-Za-z0-9_]*[A-Za-z0-9])?")
_NAME_HINT: Final = "Use letters, digits and single underscores; begin with a letter and do not end with an underscore."


@dataclass(frozen=True, slots=True)
class DefinitionScope:
    """What a rule about a definition can use."""

    definition: Definition
    full_name: str
    api_version: ApiVersion
    scorer: AgentScorer = field(default_factory=AgentScorer)


class NamedFile(NamedTuple):
    """The file of a definition: its component, its `<name>`, and the location of the name."""

    component: str
    name: str
    location: Location


# Those for custom scorers too are about "scorer".
DEFINITIONS: Final[RuleTable[DefinitionScope, Finding]] = RuleTable()
# Rules about an AiTestingDefinition as a whole, in addition to those about any definition.
TESTING_DEFINITIONS: Final[RuleTable[DefinitionScope, Finding]] = RuleTable()
# Rules about a custom scorer (AiAgentScorerDefinition).
AGENT_SCORERS: Final[RuleTable[DefinitionScope, Finding]] = RuleTable()
# Rules about all definitions of a project: they find files, messages and hints.
PROJECTS: Final[RuleTable[Sequence[NamedFile], tuple[NamedFile, str, str]]] = RuleTable()


def is_api_name(name: str) -> bool:
    """Return whether a name is a valid API name (reference, AiEvaluationDefinition, `name`)."""
    return bool(_API_NAME.fullmatch(name))


@rule("full-name-format", DEFINITIONS, documented=ERROR, orgs=ERROR, about=("scorer",))
def find_full_name_format(scope: DefinitionScope) -> Iterator[Finding]:
    """The file's name is a valid API name, because it is the component's full name."""
    name = scope.full_name
    if not is_api_name(name):
        yield Finding((), f"the file name {quote(name)} is not a valid API name", f"Rename the file. {_NAME_HINT}")
    elif len(name) > limits.MAX_API_NAME_CHARS:
        message = f"the file name has {len(name)} characters; an API name has at most {limits.MAX_API_NAME_CHARS}"
        yield Finding((), message, "Rename the file.")


@rule("name-format", DEFINITIONS, documented=ERROR, orgs=WARNING)
def find_name_format(scope: DefinitionScope) -> Iterator[Finding]:
    """`name` is a valid API name. Orgs also accept a label."""
    name = scope.definition.name
    if name.strip() and not is_api_name(name):
        is_label = scope.definition.type == EVALUATION_DEFINITION
        hint = f"{_NAME_HINT} Orgs accept it as a label, and sf writes labels here." if is_label else _NAME_HINT
        yield Finding((("name", 0),), f"the name {quote(name)} is not a valid API name", hint)


@rule("required-empty", DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_empty_required(scope: DefinitionScope) -> Iterator[Finding]:
    """A required name is not blank."""
    definition = scope.definition
    names: list[tuple[tuple[Step, ...], str]] = [
        ((("name", 0),), definition.name),
        ((("subjectName", 0),), definition.subject_name),
    ]
    for place, case in enumerate(definition.test_cases):
        inputs = (("testCase", place), ("inputs", 0))
        for index, variable in enumerate(case.inputs.context_variables):
            names.append(((*inputs, ("contextVariable", index), ("variableName", 0)), variable.name))
        for index, given in enumerate(case.inputs.prompt_inputs):
            names.append(((*inputs, ("promptInput", index), ("referenceName", 0)), given.reference_name))
    for steps, text in names:
        if not text.strip():
            yield Finding(steps, f"<{steps[-1][0]}> is empty", "Write a name; it is required.")


@rule("test-cases-missing", DEFINITIONS, documented=WARNING, orgs=WARNING)
def find_no_test_cases(scope: DefinitionScope) -> Iterator[Finding]:
    """A definition has at least one test case."""
    if not scope.definition.test_cases:
        yield Finding(
            (("testCase", 0),), "the definition has no test case", "Add a <testCase>; without one, a run tests nothing."
        )


@rule("test-cases-too-many", DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_too_many_test_cases(scope: DefinitionScope) -> Iterator[Finding]:
    """A definition has at most 1,000 test cases (Testing API Developer Guide, "Considerations")."""
    count = len(scope.definition.test_cases)
    if count > limits.MAX_TEST_CASES:
        message = f"the definition has {count:,} test cases; orgs accept at most {limits.MAX_TEST_CASES:,}"
        yield Finding((("testCase", limits.MAX_TEST_CASES),), message, "Split it into several definitions.")


@rule("type-version", DEFINITIONS, documented=ERROR, orgs=ERROR, about=("scorer",))
def find_type_before_its_version(scope: DefinitionScope) -> Iterator[Finding]:
    """The API version supports the definition's type."""
    kind = scope.definition.type
    if scope.api_version < kind.since:
        message = f"{kind.name} requires API version {kind.since}; the version in use is {scope.api_version}"
        yield Finding((), message, f"Set the version in the manifest or project to {kind.since}.")


@rule("parameter-version", DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_parameters_before_their_version(scope: DefinitionScope) -> Iterator[Finding]:
    """`parameter` requires API version 64.0 or later (reference, AiEvaluationTestCaseCritParam)."""
    if scope.api_version >= PARAMETER_API_VERSION:
        return
    for place, case in enumerate(scope.definition.test_cases):
        for index, expectation in enumerate(case.expectations):
            if expectation.parameters:
                steps = (("testCase", place), ("expectation", index), ("parameter", 0))
                needed = PARAMETER_API_VERSION
                message = f"<parameter> requires API version {needed}; the version in use is {scope.api_version}"
                yield Finding(steps, message, f"Set the version in the manifest or project to {needed}.")
                return


@rule("name-duplicate", PROJECTS, documented=ERROR, orgs=WARNING)
def find_names_twice(files: Sequence[NamedFile]) -> Iterator[tuple[NamedFile, str, str]]:
    """`name` is unique in the project, because it must be unique in an org.

    Definitions of different types may have the same name.
    """
    first: dict[tuple[str, str], NamedFile] = {}
    for file in files:
        other = first.setdefault((file.component.partition(":")[0], file.name), file)
        if other.component.casefold() != file.component.casefold():
            message = f"the name {file.name!r} is already used by {other.location.path}"
            yield file, message, "Choose a unique name."


@rule("name-mismatch", TESTING_DEFINITIONS, documented=ERROR, orgs=WARNING)
def find_name_elsewhere(scope: DefinitionScope) -> Iterator[Finding]:
    """`name` of an AiTestingDefinition equals the file's name."""
    name = scope.definition.name
    if is_api_name(name) and name != scope.full_name:
        hint = f"Write {scope.full_name}, or rename the file."
        yield Finding(
            (("name", 0),), f"the name {quote(name)} is not the name of the file, {quote(scope.full_name)}", hint
        )


@rule("description-too-long", TESTING_DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_description_too_long(scope: DefinitionScope) -> Iterator[Finding]:
    """`description` of an AiTestingDefinition, which is its label in the org, has at most 100 characters."""
    length, most = len(scope.definition.description or ""), limits.MAX_LABEL_CHARS
    if length > most:
        message = f"the description has {length} characters; orgs use it as a label, which has at most {most}"
        yield Finding((("description", 0),), message, "Shorten it.")


@rule("number-gap", TESTING_DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_number_gap(scope: DefinitionScope) -> Iterator[Finding]:
    """Test cases of an AiTestingDefinition are numbered 1, 2, 3 and so on, in any order."""
    count = len(scope.definition.test_cases)
    for place, case in enumerate(scope.definition.test_cases):
        if case.number is not None and not 1 <= case.number <= count:
            message = f"the test case has the number {case.number}; the numbers of {count} test cases are 1 to {count}"
            yield Finding((("testCase", place), ("number", 0)), message, "Number the test cases 1, 2, 3 and so on.")
            return


@rule("prompt-inputs-missing", TESTING_DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_prompt_inputs_missing(scope: DefinitionScope) -> Iterator[Finding]:
    """A test case of a prompt template has prompt inputs."""
    if scope.definition.subject_type != "PROMPT":
        return
    for place, case in enumerate(scope.definition.test_cases):
        if not case.inputs.prompt_inputs:
            steps = (("testCase", place), ("inputs", 0), ("promptInput", 0))
            hint = "Add a <promptInput> with <referenceName> and <value> for each input of the template."
            yield Finding(steps, "the test case has no prompt input", hint)


@rule("scorer-unsupported", TESTING_DEFINITIONS, documented=WARNING, orgs=WARNING)
def find_unsupported_scorers(scope: DefinitionScope) -> Iterator[Finding]:
    """A scorer supports the definition's subject type."""
    subject_type = scope.definition.subject_type
    for place, case in enumerate(scope.definition.test_cases):
        for index, scorer in enumerate(case.expectations):
            kind = None if scorer.is_custom else scorer_kind(scorer.name)
            if kind and subject_type not in kind.subjects and subject_type in scope.definition.type.subject_types:
                message = f"{scorer.name} does not support subjects of the type {subject_type}"
                hint = f"Scorers that support them: {', '.join(scorer_names(subject_type))}."
                yield Finding((("testCase", place), ("scorer", index), ("name", 0)), message, hint)


@rule("scorer-history-missing", TESTING_DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_history_missing(scope: DefinitionScope) -> Iterator[Finding]:
    """A test case with the scorer `task_resolution` has a conversation history."""
    for place, case in enumerate(scope.definition.test_cases):
        if case.inputs.conversation_history:
            continue
        for index, scorer in enumerate(case.expectations):
            kind = None if scorer.is_custom else scorer_kind(scorer.name)
            if kind and kind.needs_history:
                message = f"{scorer.name} judges a conversation, but the test case has no history"
                hint = "Add <conversationHistory> to its <inputs>, or remove the scorer."
                yield Finding((("testCase", place), ("scorer", index), ("name", 0)), message, hint)


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
        for finding in _output_findings(version):
            yield finding._replace(steps=(_step(place), *finding.steps))


@rule("scorer-associations", AGENT_SCORERS, documented=ERROR, orgs=ERROR)
def find_scorer_associations(scope: DefinitionScope) -> Iterator[Finding]:
    """A samplingRate is from 0 to 1, and at most one version of a scorer is active; its status is Available."""
    active: int | None = None
    for place, version in enumerate(scope.scorer.versions):
        for index, association in enumerate(version.associations):
            steps = (_step(place), ("agentAssociation", index))
            rate = association.sampling_rate
            number = read_number(rate)
            if rate is not None and (number is None or not 0 <= number <= 1):
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


def _step(place: int) -> Step:
    return "scorerVersion", place
