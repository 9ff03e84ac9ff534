from __future__ import annotations

import cProfile
import json
import pstats

import pytest

from evalmeta.errors import FormatError
from evalmeta.formats.diagnostics import Diagnostics, Record
from evalmeta.formats.sources import read_json


def record(text: str) -> tuple[Record, Diagnostics]:
    diagnostics, file = Diagnostics("x.json"), read_json(text.encode(), label="x.json")
    return Record(file, (), file.value, diagnostics, called="a turn"), diagnostics


def test_keys_are_read_in_every_spelling() -> None:
    found, _ = record('{"user_content": "hi"}')
    assert found.text("userContent", "user_content") == "hi"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "x.json:1:1: a turn is a list, not an object"),
        ('{\n  "name": 1}', "x.json:2:11: 'name' of a turn is a number, not a text"),
        ("{}", "x.json:1:1: a turn needs 'name'"),
    ],
)
def test_what_does_not_fit_is_a_problem_with_its_place(text: str, message: str) -> None:
    found, diagnostics = record(text)
    assert found.required_text("name") == ""
    with pytest.raises(FormatError) as caught:
        diagnostics.check()
    assert str(caught.value) == message


def test_unknown_keys_are_warnings_with_the_nearest_known_one() -> None:
    found, diagnostics = record('{"nmae": "x"}')
    found.check_keys("name")
    [note] = diagnostics.notes
    assert (note.message, note.hint) == ("a turn has no key 'nmae'; it is ignored", "Did you mean 'name'?")
    diagnostics.check()


def check_all(data: object, diagnostics: Diagnostics) -> None:
    file = read_json(json.dumps(data, indent=1).encode(), label="x.json")
    for case in Record(file, (), file.value, diagnostics, called="the file").records("cases", called="a case"):
        case.check_keys("utterance")
        case.required_text("utterance")


@pytest.mark.slow
def test_a_file_is_gone_through_once_however_many_problems_it_has() -> None:
    diagnostics, profile = Diagnostics("x.json"), cProfile.Profile()
    profile.runcall(check_all, {"cases": [{f"key{place}": 1 for place in range(40)}] * 1_000, "more": 1}, diagnostics)
    found = pstats.Stats(profile).stats  # type: ignore[attr-defined] # not in the type stubs
    decoded = sum(count for (_, _, name), (count, *_) in found.items() if name == "raw_decode")
    assert 2_000 < decoded < 50_000
    assert (len(diagnostics.notes), diagnostics.has_all_errors, diagnostics.has_all_warnings) == (1_000, True, True)
