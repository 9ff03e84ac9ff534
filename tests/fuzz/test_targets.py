"""Nothing that a stranger sends leads to an error but those that are promised; `make fuzz` tries a million inputs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.harness import feed, united
from fuzz.run import main
from fuzz.targets import TARGETS


@pytest.mark.parametrize("inputs", [100, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_leads_to_no_other_error(name: str, inputs: int) -> None:
    assert feed(name, range(inputs)).foreign == {}


@pytest.mark.parametrize("name", TARGETS)
@settings(deadline=None)
@given(st.data())
def test_bytes_and_words_of_the_format_lead_to_no_other_error(name: str, data: st.DataObject) -> None:
    words = st.lists(st.sampled_from(TARGETS[name].words), max_size=30).map(b"".join)
    TARGETS[name].feed(data.draw(st.binary() | words))


@pytest.mark.parametrize("name", TARGETS)
def test_a_number_always_stands_for_the_same_input(name: str) -> None:
    inputs = [TARGETS[name].input(number) for number in range(200)]
    assert inputs == [TARGETS[name].input(number) for number in range(200)]
    assert len(set(inputs)) > 100


def test_an_error_that_nobody_promised_is_told_with_the_first_input_that_led_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(TARGETS, "zip", replace(TARGETS["zip"], feed=lambda data: data.decode("ascii")))
    tally = united(feed("zip", [number]) for number in range(20))
    [(kind, number)] = tally.foreign.items()
    assert kind.startswith("UnicodeDecodeError in <lambda>, test_targets.py:")
    assert not TARGETS["zip"].input(number).isascii()
    assert tally.inputs == 20


def test_the_million_is_shared_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(8 * len(TARGETS)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(TARGETS) + 2
    assert lines[-1].split()[0] == str(8 * len(TARGETS))
