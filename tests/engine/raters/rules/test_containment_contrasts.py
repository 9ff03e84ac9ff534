from __future__ import annotations

import pytest

from evalmeta.engine.raters.rules.containment import (
    contraries,
    contrary_words,
    left_out,
    reversed_statement,
    swapped_roles,
)


@pytest.mark.parametrize(
    ("one", "other"), [("open", "closed"), ("eligible", "ineligible"), ("unpaid", "paid"), ("increases", "decrease")]
)
def test_words_that_exclude_each_other_are_found(one: str, other: str) -> None:
    assert contraries([one], [other]) == [other]
    assert contraries([one], [one, "table"]) == []


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        ("The gate is open.", "The gate is closed.", "expected open, got closed"),
        ("The gate is open.", "Hello. The gate isn't open.", ""),
        ("It is not available.", "It is unavailable.", ""),
        ("The gate is open.", "The gate is green.", ""),
        ("The gate is open.", "The gate is open.", ""),
        ("A red gate is open.", "A blue gate is closed.", ""),
    ],
)
def test_the_opposite_sentence_is_recognised(expected: str, actual: str, found: str) -> None:
    assert contrary_words(expected, actual) == found


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        ("Otto manages Clara.", "Clara manages Otto.", "otto and clara"),
        ("From Riga to Tartu.", "From Tartu to Riga.", "riga and tartu"),
        ("Acme acquired Globex.", "Globex was acquired by Acme.", ""),
        ("Ana and Bruno lead it.", "Bruno and Ana lead it.", ""),
        ("Big is Berlin.", "Berlin is big.", ""),
        ("One two three.", "Three one two.", ""),
    ],
)
def test_swapped_roles_are_found(expected: str, actual: str, found: str) -> None:
    assert swapped_roles(expected, actual) == found


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        ("Bring your pass and your ticket.", "Bring your pass.", "ticket"),
        ("The visa costs little, 15 euros.", "The visa costs little.", "15"),
        ("The owner is Jane Doe, the boss.", "The owner is Jane Doe.", ""),
        ("It is late.", "Late.", ""),
        ("It is late and dark.", "It is dark.", ""),
    ],
)
def test_an_answer_that_ends_early_is_recognised(expected: str, actual: str, found: str) -> None:
    assert left_out(expected, actual) == found


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("The capital of France is Paris.", "Paris is the capital of France.", True),
        ("Tom's manager is Ann.", "Ann's manager is Tom.", False),
        ("A dog is an animal.", "An animal is a dog.", False),
        ("The end.", "The end.", False),
    ],
)
def test_a_reversed_definition_is_recognised(expected: str, actual: str, same: bool) -> None:  # noqa: FBT001
    assert reversed_statement(expected, actual) is same
