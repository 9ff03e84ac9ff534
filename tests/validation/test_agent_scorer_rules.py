from __future__ import annotations

import pytest

from evalmeta.model.registry import SCORER_DEFINITION
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.reader import NAMESPACE


def version(inside: str = "", *, status: str = "Available", number: int = 1) -> str:
    head = f"<label>l</label><status>{status}</status><versionNumber>{number}</versionNumber>"
    return f"<scorerVersion>{head}<engine><engineType>Manual</engineType></engine>{inside}</scorerVersion>"


def output(value: str) -> str:
    return f"<outputEnumValue><outcomeType>Pass</outcomeType><value>{value}</value></outputEnumValue>"


def agent(rate: str, *, active: str = "false") -> str:
    fields = f"<agentApiName>a</agentApiName><isActive>{active}</isActive><samplingRate>{rate}</samplingRate>"
    return f"<agentAssociation>{fields}</agentAssociation>"


def codes(*versions: str, name: str = "Polite", lightning_type: str = "lightning__textType") -> list[str]:
    head = "<dataType>LightningType</dataType><inputScope>Session</inputScope>"
    head += f"<lightningType>{lightning_type}</lightningType>" if lightning_type else ""
    text = f'<AiAgentScorerDefinition xmlns="{NAMESPACE}">{head}{"".join(versions)}</AiAgentScorerDefinition>'
    return [each.code for each in validate_component(SCORER_DEFINITION, text.encode(), label="d", full_name=name)]


def test_a_scorer_needs_a_version() -> None:
    assert (codes(), codes(version())) == (["scorer-versions"], [])


def test_versions_are_numbered_from_1() -> None:
    assert codes(version(number=0)) == ["scorer-versions"]


def test_a_name_has_at_most_35_characters() -> None:
    assert (codes(version(), name="a" * 35), codes(version(), name="a" * 36)) == ([], ["scorer-name-too-long"])


def test_a_version_has_at_most_101_output_values() -> None:
    values = [output(str(number)) for number in range(102)]
    assert codes(version("".join(values[:101]))) == []
    assert codes(version("".join(values))) == ["scorer-outputs"]
    assert codes(version(output(" "))) == ["scorer-outputs"]


@pytest.mark.parametrize("rate", ["0", "1.0", " 0.1 "])
def test_a_sampling_rate_is_a_share(rate: str) -> None:
    assert codes(version(agent(rate))) == []


@pytest.mark.parametrize("rate", ["1.1", "-1", "nan", "", "10%"])
def test_no_other_text_is_a_sampling_rate(rate: str) -> None:
    assert codes(version(agent(rate))) == ["scorer-associations"]


def test_only_an_available_version_is_active_and_only_one() -> None:
    active = agent("1", active="true")
    assert codes(version(active), version(number=2)) == []
    assert codes(version(active, status="Draft")) == ["scorer-associations"]
    assert codes(version(active), version(active, number=2)) == ["scorer-associations"]


def test_a_lightning_type_is_needed() -> None:
    assert codes(version(), lightning_type="") == ["scorer-type-unknown"]


@pytest.mark.parametrize("status", ["draft", ""])
def test_a_status_is_one_of_three(status: str) -> None:
    assert codes(version(status=status)) == ["value-invalid"]
