"""Evaluates twenty cases with a journal, and hangs in the eighth: python interrupted.py JOURNAL ASKED."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from evalmeta import Definition, Expectation, Inputs, RunOptions, TestCase, evaluate

COUNT, HANGS = 20, 8


def twenty(topic: str = "Orders") -> Definition:
    expected = (Expectation("topic_assertion", topic),)
    cases = tuple(TestCase(Inputs(f"question {number}"), expected, number) for number in range(1, COUNT + 1))
    return Definition("Twenty", "Desk", test_cases=cases)


def main(journal: str, asked: str) -> None:
    def answer(utterance: str) -> dict[str, str]:
        file = os.open(asked, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        os.write(file, f"{utterance}\n".encode())
        if utterance == f"question {HANGS}":
            time.sleep(60)
        return {"outcome": "Done.", "topic": "Orders"}

    evaluate(twenty(), answer, journal=Path(journal), options=RunOptions(concurrency=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
