"""A nightly run that is called again and asks only what is missing, as docs/library.md teaches."""

from pathlib import Path

import evalmeta

asked = []


def agent(question):
    asked.append(question)
    return {"outcome": f"About {question}"}


cases = [{"input": f"order {number}", "contains": f"order {number}"} for number in range(6)]
for _ in range(2):
    finished = evalmeta.evaluate(cases, agent, name="Nightly", journal=Path("results"))
    assert finished.succeeded, finished.report()
    assert len(asked) == finished.summary.total == len(cases)
