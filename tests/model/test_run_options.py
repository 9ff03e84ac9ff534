from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import click
import numpy as np
import pytest
from pydantic import ValidationError

from evalmeta import limits
from evalmeta.cli.commands.agent_test.run import run
from evalmeta.model.run_options import RUN_OPTIONS, SCORING_OPTIONS, Option, RunOptions, Scoring, invalid_option
from evalmeta.model.settings import Settings
from evalmeta.protocol.runs import read_options, write_options
from reference import attributes

ROOT = Path(__file__).parent.parent.parent
TABLES = {"running": "run", "policy": "run", "scoring": "score"}
OPTIONS = [
    pytest.param(owner, option, id=option.name)
    for owner, options in ((RunOptions, RUN_OPTIONS), (Scoring, SCORING_OPTIONS))
    for option in options
]
WITH_BOUNDS = [param for param in OPTIONS if param.values[1].bounds]
IN_SETTINGS = [param for param in OPTIONS if param.values[1].group in TABLES]


def other_value(option: Option) -> object:
    """Return a value that is allowed and not the default."""
    numbers = [limits.MAX_INTEGER if number is None else number for number in option.bounds or ()]
    texts = ["other"] if option.kind == "text" else []
    lists = [(1, 2)] if option.kind in {"integers", "pair"} else []
    return next(value for value in [*reversed(numbers), *option.choices, *texts, *lists] if value != option.default)


def beyond(option: Option) -> float:
    """Return a number that is too small."""
    assert option.bounds
    return option.bounds[0] - 1


def chosen(owner: type, option: Option, value: object) -> RunOptions:
    changed = replace(owner(), **{option.name: value})
    return changed if isinstance(changed, RunOptions) else RunOptions(scoring=changed)


def settings_with(option: Option, value: object, *, key: str = "") -> Settings:
    assert option.group
    return Settings.model_validate({TABLES[option.group]: {key or option.name: value}})


@pytest.mark.parametrize(("owner", "option"), OPTIONS)
def test_every_option_goes_over_the_wire_under_its_name(owner: type, option: Option) -> None:
    options = chosen(owner, option, other_value(option))
    written = write_options(options)
    assert option.wire in (written if owner is RunOptions else written["scoring"])  # type: ignore[operator]
    assert read_options(written) == options != RunOptions()
    assert invalid_option(options) is None


@pytest.mark.parametrize("option", [*RUN_OPTIONS, *SCORING_OPTIONS], ids=lambda option: option.name)
def test_every_option_of_a_group_has_a_flag_with_its_help(option: Option) -> None:
    flags = [param for param in run.params if option.flag in param.opts and isinstance(param, click.Option)]
    assert [flag.help for flag in flags] == ([option.help] if option.group else [])
    page = (ROOT / "docs/commands/tests.md").read_text()
    assert bool(re.search(rf"^  {option.flag} ", page, re.MULTILINE)) == bool(option.group)


@pytest.mark.parametrize(("owner", "option"), IN_SETTINGS)
def test_every_option_of_a_table_is_a_setting_and_stands_in_the_reference(owner: type, option: Option) -> None:
    options = chosen(owner, option, other_value(option))
    for key in filter(None, (option.name, option.alias)):
        assert settings_with(option, other_value(option), key=key).run_options() == options
    assert f"\n| `{option.name}` | " in (ROOT / "docs/settings.md").read_text()


def test_the_page_lists_the_options_that_salesforce_orgs_ignore() -> None:
    flags = ", ".join(f"`{option.flag}`" for option in RUN_OPTIONS if option.needs_ours)
    assert f"\n| {flags} | the org applies them | ignored with a warning" in (ROOT / "docs/running.md").read_text()


@pytest.mark.parametrize(("owner", "option"), OPTIONS)
def test_every_option_is_described_for_python(owner: type, option: Option) -> None:
    assert attributes(owner)[option.name]


@pytest.mark.parametrize(("owner", "option"), WITH_BOUNDS)
def test_a_number_beyond_its_bounds_is_refused_everywhere(owner: type, option: Option) -> None:
    number = beyond(option)
    assert f"{option.wire} is {number}; " in (invalid_option(chosen(owner, option, number)) or "")
    with pytest.raises(click.ClickException):
        run.make_context("run", [option.flag, f"{number:.0f}"])
    if option.group in TABLES:
        with pytest.raises(ValidationError):
            settings_with(option, number)


@pytest.mark.parametrize("value", [True, float("nan"), "x", [1]])
@pytest.mark.parametrize(("owner", "option"), WITH_BOUNDS)
def test_what_is_no_number_is_refused_in_python(owner: type, option: Option, value: object) -> None:
    assert f"{option.wire} is {value!r}; a number from " in (invalid_option(chosen(owner, option, value)) or "")


def test_numbers_of_other_types_are_allowed() -> None:
    options = RunOptions(max_cost=Decimal("0.5"), seed=2**63 - 1, iterations=np.int64(2), min_pass_rate=np.float32(0.5))  # type: ignore[arg-type]
    assert invalid_option(options) is None
