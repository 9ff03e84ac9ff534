"""The worst files within the limits against parsing and schema-validating the same bytes with lxml."""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING

from lxml import etree

from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.validation.validator import validate_component, validate_manifest
from evalmeta.xmlio.structure import schema_dir
from timing import Pair, compare
from worst_cases import DEFINITIONS, Worst, worst_definitions, worst_manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def measure_definitions() -> tuple[str, Pair]:
    worst = chain.from_iterable(map(worst_definitions, DEFINITIONS))
    return _measure(
        worst,
        lambda data: validate_component(EVALUATION_DEFINITION, data, label="d", full_name="D"),
        "AiEvaluationDefinition.xsd",
    )


def measure_manifests() -> tuple[str, Pair]:
    return _measure(worst_manifests(), lambda data: validate_manifest(data, label="package.xml"), "package.xsd")


def _measure(files: Iterable[Worst], validate: Callable[[bytes], object], xsd: str) -> tuple[str, Pair]:
    schema = etree.XMLSchema(etree.parse(schema_dir() / xsd))
    slowest = max(files, key=lambda worst: _seconds(validate, worst.data))
    pair = compare(lambda: validate(slowest.data), lambda: schema.validate(etree.fromstring(slowest.data)), rounds=3)
    return f"validate the worst file for {xsd} ({slowest.name}) / lxml parse + XSD", pair


def _seconds(validate: Callable[[bytes], object], data: bytes) -> float:
    begun = time.perf_counter()
    validate(data)
    return time.perf_counter() - begun
