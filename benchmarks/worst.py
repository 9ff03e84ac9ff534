"""The worst files within the limits against parsing and schema-validating the same bytes with lxml."""

from __future__ import annotations

import time
from itertools import chain, islice
from typing import TYPE_CHECKING

from lxml import etree

from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.validation.validator import validate_component, validate_manifest
from evalmeta.xmlio.structure import schema_dir
from rows import Result, Row, seconds
from timing import compare, of_work
from worst_cases import DEFINITIONS, Worst, worst_definitions, worst_manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def measure_definitions(*, rounds: int, groups: str) -> Result:
    worst = chain.from_iterable(map(worst_definitions, groups.split() or DEFINITIONS))
    return _measure(
        worst,
        lambda data: validate_component(EVALUATION_DEFINITION, data, label="d", full_name="D"),
        "AiEvaluationDefinition.xsd",
        rounds,
    )


def measure_manifests(*, rounds: int, count: int) -> Result:
    return _measure(
        islice(worst_manifests(), count),
        lambda data: validate_manifest(data, label="package.xml"),
        "package.xsd",
        rounds,
    )


def _measure(files: Iterable[Worst], validate: Callable[[bytes], object], xsd: str, rounds: int) -> Result:
    schema = etree.XMLSchema(etree.parse(schema_dir() / xsd))
    slowest = max(files, key=lambda worst: _seconds(validate, worst.data))

    def floor() -> None:
        schema.validate(etree.fromstring(slowest.data))

    result = seconds(compare(lambda: of_work(lambda: validate(slowest.data)), lambda: of_work(floor), rounds=rounds))
    return result._replace(note=slowest.name)


def _seconds(validate: Callable[[bytes], object], data: bytes) -> float:
    begun = time.perf_counter()
    validate(data)
    return time.perf_counter() - begun


ROWS = (
    Row(
        "validate-worst",
        "validate the definition within the limits that takes longest",
        "lxml: parsing, XSD",
        measure_definitions,
        {"rounds": 3, "groups": ""},
        {"rounds": 1, "groups": "attributes"},
    ),
    Row(
        "validate-worst-manifest",
        "validate the manifest within the limits that takes longest",
        "lxml: parsing, XSD",
        measure_manifests,
        {"rounds": 3, "count": 1_000},
        {"rounds": 1, "count": 1},
    ),
)
